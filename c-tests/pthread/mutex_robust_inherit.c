// Robust and priority-inheriting mutexes: EOWNERDEAD, consistent, ENOTRECOVERABLE; held across yields.
#include "check.h"

static pthread_mutex_t mutex;
static long count;

static void *dies_with_it(void *arg)
{
    CHECK_OK(pthread_mutex_lock(&mutex));
    sched_yield();
    usleep(1000);
    return arg;
}

static void *waits_for_it(void *arg)
{
    int got = pthread_mutex_lock(&mutex);
    CHECK_EQ(got, EOWNERDEAD);
    CHECK_OK(pthread_mutex_consistent(&mutex));
    CHECK_OK(pthread_mutex_unlock(&mutex));
    return arg;
}

static void *dies_while_awaited(void *arg)
{
    CHECK_OK(pthread_mutex_lock(&mutex));
    sleep_ms(30);
    return arg;
}

static void *add(void *arg)
{
    for (int i = 0; i < 200; i++) {
        CHECK_OK(pthread_mutex_lock(&mutex));
        long now = count;
        if (i % 20 == 0)
            usleep(100);
        else if (i % 10 == 0)
            sched_yield();
        count = now + 1;
        CHECK_OK(pthread_mutex_unlock(&mutex));
    }
    return arg;
}

static void contend(void)
{
    enum { MANY = 20 };
    pthread_t threads[MANY];
    count = 0;
    for (int i = 0; i < MANY; i++)
        threads[i] = start(add, NULL);
    for (int i = 0; i < MANY; i++)
        join(threads[i]);
    CHECK_EQ(count, MANY * 200);
}

int main(void)
{
    pthread_mutexattr_t attr;
    struct timespec when;
    CHECK_OK(pthread_mutexattr_init(&attr));
    CHECK_OK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));

    /* The owner dies; the next one repairs it. */
    CHECK_OK(pthread_mutex_init(&mutex, &attr));
    contend();
    join(start(dies_with_it, NULL));
    CHECK_ERR(pthread_mutex_lock(&mutex), EOWNERDEAD);
    CHECK_OK(pthread_mutex_consistent(&mutex));
    CHECK_OK(pthread_mutex_unlock(&mutex));
    contend();

    /* It dies while others wait. */
    pthread_t owner = start(dies_while_awaited, NULL);
    sleep_ms(10);
    pthread_t waiter = start(waits_for_it, NULL);
    join(owner);
    join(waiter);
    contend();

    /* The next one does not repair it: nobody will have it again. */
    join(start(dies_with_it, NULL));
    CHECK_ERR(pthread_mutex_trylock(&mutex), EOWNERDEAD);
    CHECK_OK(pthread_mutex_unlock(&mutex));
    CHECK_ERR(pthread_mutex_lock(&mutex), ENOTRECOVERABLE);
    when = in_ms(CLOCK_REALTIME, 20);
    CHECK_ERR(pthread_mutex_timedlock(&mutex, &when), ENOTRECOVERABLE);
    CHECK_OK(pthread_mutex_destroy(&mutex));
    CHECK_OK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_STALLED));

    /* Priority inheritance. */
    CHECK_OK(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT));
    CHECK_OK(pthread_mutex_init(&mutex, &attr));
    contend();
    CHECK_OK(pthread_mutex_lock(&mutex));
    CHECK_ERR(pthread_mutex_trylock(&mutex), EBUSY);
    CHECK_OK(pthread_mutex_unlock(&mutex));
    CHECK_OK(pthread_mutex_destroy(&mutex));
    CHECK_OK(pthread_mutexattr_destroy(&attr));
    puts("robust and inheriting mutexes: ok");
    return 0;
}
