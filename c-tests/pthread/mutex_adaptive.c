// Adaptive mutexes, and the other attributes of mutexes: protocol, ceiling, sharing, robustness.
#include "check.h"

static pthread_mutex_t mutex = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static long count;

static void *stranger(void *arg)
{
    struct timespec when = in_ms(CLOCK_REALTIME, 20);
    CHECK_ERR(pthread_mutex_trylock(&mutex), EBUSY);
    CHECK_ERR(pthread_mutex_timedlock(&mutex, &when), ETIMEDOUT);
    return arg;
}

static void *add(void *arg)
{
    for (int i = 0; i < 500; i++) {
        CHECK_OK(pthread_mutex_lock(&mutex));
        long now = count;
        if (i % 50 == 0)
            sched_yield();
        count = now + 1;
        CHECK_OK(pthread_mutex_unlock(&mutex));
    }
    return arg;
}

static void check(void)
{
    enum { MANY = 40 };
    pthread_t threads[MANY];
    CHECK_OK(pthread_mutex_lock(&mutex));
    CHECK_ERR(pthread_mutex_trylock(&mutex), EBUSY);
    CHECK_ERR(pthread_mutex_destroy(&mutex), EBUSY);
    join(start(stranger, NULL));
    CHECK_OK(pthread_mutex_unlock(&mutex));
    count = 0;
    for (int i = 0; i < MANY; i++)
        threads[i] = start(add, NULL);
    for (int i = 0; i < MANY; i++)
        join(threads[i]);
    CHECK_EQ(count, MANY * 500);
    CHECK_OK(pthread_mutex_destroy(&mutex));
}

static void init_and_check(const pthread_mutexattr_t *attr)
{
    CHECK_OK(pthread_mutex_init(&mutex, attr));
    check();
}

int main(void)
{
    pthread_mutexattr_t attr;
    int value;

    check();
    CHECK_OK(pthread_mutexattr_init(&attr));
    CHECK_OK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP));
    init_and_check(&attr);
    CHECK_OK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_NORMAL));

    CHECK_OK(pthread_mutexattr_getpshared(&attr, &value));
    CHECK_EQ(value, PTHREAD_PROCESS_PRIVATE);
    CHECK_OK(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    CHECK_OK(pthread_mutexattr_getpshared(&attr, &value));
    CHECK_EQ(value, PTHREAD_PROCESS_SHARED);
    CHECK_ERR(pthread_mutexattr_setpshared(&attr, 99), EINVAL);
    init_and_check(&attr);
    CHECK_OK(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_PRIVATE));

    CHECK_OK(pthread_mutexattr_getrobust(&attr, &value));
    CHECK_EQ(value, PTHREAD_MUTEX_STALLED);
    CHECK_OK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
    CHECK_OK(pthread_mutexattr_getrobust(&attr, &value));
    CHECK_EQ(value, PTHREAD_MUTEX_ROBUST);
    CHECK_ERR(pthread_mutexattr_setrobust(&attr, 99), EINVAL);
    CHECK_OK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_STALLED));

    CHECK_OK(pthread_mutexattr_getprotocol(&attr, &value));
    CHECK_EQ(value, PTHREAD_PRIO_NONE);
    CHECK_OK(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT));
    CHECK_OK(pthread_mutexattr_getprotocol(&attr, &value));
    CHECK_EQ(value, PTHREAD_PRIO_INHERIT);
    CHECK_ERR(pthread_mutexattr_setprotocol(&attr, 99), EINVAL);
    CHECK_OK(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_PROTECT));
    CHECK_OK(pthread_mutexattr_setprioceiling(&attr, 5));
    CHECK_OK(pthread_mutexattr_getprioceiling(&attr, &value));
    CHECK_EQ(value, 5);
    CHECK_ERR(pthread_mutexattr_setprioceiling(&attr, 1000), EINVAL);

    CHECK_OK(pthread_mutex_init(&mutex, NULL));
    CHECK_ERR(pthread_mutex_getprioceiling(&mutex, &value), EINVAL);
    CHECK_ERR(pthread_mutex_consistent(&mutex), EINVAL);
    CHECK_OK(pthread_mutex_destroy(&mutex));
    CHECK_OK(pthread_mutexattr_destroy(&attr));
    puts("adaptive mutexes and mutex attributes: ok");
    return 0;
}
