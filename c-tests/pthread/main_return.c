// main returns while threads run, sleep and wait: the process ends at once, with main's status.
#include "check.h"

#include <stdatomic.h>

static atomic_int running;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

static void *sleeps(void *arg)
{
    atomic_fetch_add(&running, 1);
    sleep(1000);
    return arg;
}

static void *waits(void *arg)
{
    pthread_mutex_lock(&mutex);
    atomic_fetch_add(&running, 1);
    for (;;)
        pthread_cond_wait(&cond, &mutex);
    return arg;
}

static void *computes(void *arg)
{
    atomic_fetch_add(&running, 1);
    for (;;)
        ;
    return arg;
}

static void at_exit(void)
{
    puts("atexit handler");
}

int main(void)
{
    atexit(at_exit);
    for (int i = 0; i < 50; i++) {
        start(sleeps, NULL);
        start(waits, NULL);
    }
    start(computes, NULL);
    while (atomic_load(&running) < 101)
        usleep(1000);
    return 7;
}
