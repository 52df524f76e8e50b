// Error-checking mutexes: EDEADLK for the owner who locks again, EPERM for everybody else who unlocks.
#include "check.h"

static pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static int holder;

static void *stranger(void *arg)
{
    struct timespec when = in_ms(CLOCK_REALTIME, 20);
    CHECK_ERR(pthread_mutex_unlock(&mutex), EPERM);
    CHECK_ERR(pthread_mutex_trylock(&mutex), EBUSY);
    CHECK_ERR(pthread_mutex_timedlock(&mutex, &when), ETIMEDOUT);
    when = in_ms(CLOCK_MONOTONIC, 20);
    CHECK_ERR(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &when), ETIMEDOUT);
    return arg;
}

static void *own(void *arg)
{
    struct timespec when = in_ms(CLOCK_REALTIME, 20000);
    CHECK_ERR(pthread_mutex_unlock(&mutex), EPERM);
    CHECK_OK(pthread_mutex_lock(&mutex));
    CHECK_EQ(holder, 0);
    holder = 1;
    for (int i = 0; i < 3; i++) {
        CHECK_ERR(pthread_mutex_lock(&mutex), EDEADLK);
        CHECK_ERR(pthread_mutex_trylock(&mutex), EBUSY);
        CHECK_ERR(pthread_mutex_timedlock(&mutex, &when), EDEADLK);
        CHECK_ERR(pthread_mutex_clocklock(&mutex, CLOCK_REALTIME, &when), EDEADLK);
        sched_yield();
        if ((long)arg % 10 == 0)
            usleep(200);
    }
    holder = 0;
    CHECK_OK(pthread_mutex_unlock(&mutex));
    CHECK_ERR(pthread_mutex_unlock(&mutex), EPERM);
    return arg;
}

static void check(void)
{
    enum { MANY = 100 };
    pthread_t threads[MANY];
    CHECK_ERR(pthread_mutex_unlock(&mutex), EPERM);
    CHECK_OK(pthread_mutex_lock(&mutex));
    CHECK_ERR(pthread_mutex_lock(&mutex), EDEADLK);
    CHECK_ERR(pthread_mutex_destroy(&mutex), EBUSY);
    join(start(stranger, NULL));
    for (long i = 0; i < MANY; i++)
        threads[i] = start(own, (void *)i);
    sleep_ms(10);
    CHECK_EQ(holder, 0);
    CHECK_OK(pthread_mutex_unlock(&mutex));
    for (int i = 0; i < MANY; i++)
        join(threads[i]);
}

int main(void)
{
    check();
    CHECK_OK(pthread_mutex_destroy(&mutex));

    pthread_mutexattr_t attr;
    CHECK_OK(pthread_mutexattr_init(&attr));
    CHECK_OK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK));
    CHECK_OK(pthread_mutex_init(&mutex, &attr));
    CHECK_OK(pthread_mutexattr_destroy(&attr));
    check();
    CHECK_OK(pthread_mutex_destroy(&mutex));
    puts("errorcheck mutexes: ok");
    return 0;
}
