// Normal mutexes: lock, trylock, timedlock, clocklock, static and dynamic, destroy, hand-over between threads.
#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *try_it(void *arg)
{
    struct timespec when;
    CHECK_ERR(pthread_mutex_trylock(&mutex), EBUSY);
    when = in_ms(CLOCK_REALTIME, -1000);
    CHECK_ERR(pthread_mutex_timedlock(&mutex, &when), ETIMEDOUT);
    int64_t began = now_ns();
    when = in_ms(CLOCK_REALTIME, 30);
    CHECK_ERR(pthread_mutex_timedlock(&mutex, &when), ETIMEDOUT);
    CHECK_LASTED(began, 29);
    began = now_ns();
    when = in_ms(CLOCK_MONOTONIC, 30);
    CHECK_ERR(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &when), ETIMEDOUT);
    CHECK_LASTED(began, 30);
    when = in_ms(CLOCK_REALTIME, 30);
    CHECK_ERR(pthread_mutex_clocklock(&mutex, CLOCK_REALTIME, &when), ETIMEDOUT);
    CHECK_ERR(pthread_mutex_clocklock(&mutex, CLOCK_PROCESS_CPUTIME_ID, &when), EINVAL);
    when.tv_nsec = 1000000000;
    CHECK_ERR(pthread_mutex_timedlock(&mutex, &when), EINVAL);
    when.tv_nsec = -1;
    CHECK_ERR(pthread_mutex_timedlock(&mutex, &when), EINVAL);
    return arg;
}

static int holder; /* whom the mutex protects: 0 or a number */

static void *take(void *arg)
{
    struct timespec when = in_ms(CLOCK_REALTIME, 20000);
    struct timespec then = in_ms(CLOCK_MONOTONIC, 20000);
    long how = (long)arg;
    CHECK_OK(how % 3 == 0   ? pthread_mutex_lock(&mutex)
             : how % 3 == 1 ? pthread_mutex_timedlock(&mutex, &when)
                            : pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &then));
    CHECK_EQ(holder, 0);
    holder = 1;
    sched_yield();
    if (how % 10 == 0)
        usleep(500);
    holder = 0;
    CHECK_OK(pthread_mutex_unlock(&mutex));
    return arg;
}

static void contend(void)
{
    enum { MANY = 100 };
    pthread_t threads[MANY];
    CHECK_OK(pthread_mutex_lock(&mutex));
    for (long i = 0; i < MANY; i++)
        threads[i] = start(take, (void *)i);
    sleep_ms(20);
    CHECK_EQ(holder, 0);
    CHECK_OK(pthread_mutex_unlock(&mutex));
    for (int i = 0; i < MANY; i++)
        join(threads[i]);
}

int main(void)
{
    struct timespec when = in_ms(CLOCK_REALTIME, -1000);

    /* Alone; a free mutex is taken whatever the deadline says. */
    CHECK_OK(pthread_mutex_lock(&mutex));
    CHECK_ERR(pthread_mutex_trylock(&mutex), EBUSY);
    CHECK_OK(pthread_mutex_unlock(&mutex));
    CHECK_OK(pthread_mutex_trylock(&mutex));
    CHECK_OK(pthread_mutex_unlock(&mutex));
    CHECK_OK(pthread_mutex_timedlock(&mutex, &when));
    CHECK_OK(pthread_mutex_unlock(&mutex));
    CHECK_OK(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &when));
    CHECK_OK(pthread_mutex_unlock(&mutex));

    /* Held by main, tried by a thread. A normal mutex held by oneself is a deadlock, so it times out. */
    CHECK_OK(pthread_mutex_lock(&mutex));
    join(start(try_it, NULL));
    when = in_ms(CLOCK_REALTIME, 20);
    CHECK_ERR(pthread_mutex_timedlock(&mutex, &when), ETIMEDOUT);
    CHECK_OK(pthread_mutex_unlock(&mutex));

    contend();

    /* The same with one from pthread_mutex_init; destroyed while locked it stays what it was. */
    CHECK_OK(pthread_mutex_destroy(&mutex));
    CHECK_OK(pthread_mutex_init(&mutex, NULL));
    CHECK_OK(pthread_mutex_lock(&mutex));
    CHECK_ERR(pthread_mutex_destroy(&mutex), EBUSY);
    join(start(try_it, NULL));
    CHECK_OK(pthread_mutex_unlock(&mutex));
    contend();
    CHECK_OK(pthread_mutex_destroy(&mutex));

    /* An attribute that says "normal", and one that says "default". */
    int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_DEFAULT};
    for (int i = 0; i < 2; i++) {
        pthread_mutexattr_t attr;
        int type;
        CHECK_OK(pthread_mutexattr_init(&attr));
        CHECK_OK(pthread_mutexattr_gettype(&attr, &type));
        CHECK_EQ(type, PTHREAD_MUTEX_DEFAULT);
        CHECK_OK(pthread_mutexattr_settype(&attr, types[i]));
        CHECK_OK(pthread_mutexattr_gettype(&attr, &type));
        CHECK_EQ(type, types[i]);
        CHECK_ERR(pthread_mutexattr_settype(&attr, 99), EINVAL);
        CHECK_OK(pthread_mutex_init(&mutex, &attr));
        CHECK_OK(pthread_mutexattr_destroy(&attr));
        CHECK_OK(pthread_mutex_lock(&mutex));
        join(start(try_it, NULL));
        CHECK_OK(pthread_mutex_unlock(&mutex));
        contend();
        CHECK_OK(pthread_mutex_destroy(&mutex));
    }

    puts("normal mutexes: ok");
    return 0;
}
