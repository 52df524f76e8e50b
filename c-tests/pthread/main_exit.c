// main calls pthread_exit: the others go on, main can be joined, the last thread ends the process with status 0.
#include "check.h"

static pthread_t main_thread;

static void *joins_main(void *arg)
{
    CHECK(join(main_thread) == (void *)42);
    puts("main is joined");
    sleep_ms(30);
    puts("last thread");
    return arg;
}

static void *sleeper(void *arg)
{
    sleep_ms(20);
    return arg;
}

static void at_exit(void)
{
    puts("atexit handler");
}

static void cleanup(void *arg)
{
    (void)arg;
    puts("cleanup handler of main");
}

int main(void)
{
    CHECK_OK(atexit(at_exit));
    main_thread = pthread_self();
    for (int i = 0; i < 20; i++)
        CHECK_OK(pthread_detach(start(sleeper, NULL)));
    start(joins_main, NULL);
    pthread_cleanup_push(cleanup, NULL);
    pthread_exit((void *)42);
    pthread_cleanup_pop(0);
    return 7;
}
