// A thread calls exit: atexit handlers and stdio flushing, its status is the process's.
#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void at_exit(void)
{
    CHECK_OK(pthread_mutex_lock(&mutex)); /* a handler that locks */
    puts("atexit handler");
    CHECK_OK(pthread_mutex_unlock(&mutex));
}

static void *exits(void *arg)
{
    CHECK_OK(pthread_mutex_lock(&mutex));
    usleep(1000);
    CHECK_OK(pthread_mutex_unlock(&mutex));
    printf("buffered");
    exit((int)(long)arg);
}

int main(void)
{
    atexit(at_exit);
    puts("main");
    join(start(exits, (void *)33));
    return 0;
}
