// Recursive mutexes: as often as one likes, by their owner only, also after the owner has slept.
#include "check.h"

static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static int inside;

static void *stranger(void *arg)
{
    struct timespec when = in_ms(CLOCK_REALTIME, 20);
    CHECK_ERR(pthread_mutex_trylock(&mutex), EBUSY);
    CHECK_ERR(pthread_mutex_timedlock(&mutex, &when), ETIMEDOUT);
    CHECK_ERR(pthread_mutex_unlock(&mutex), EPERM);
    return arg;
}

static void *nest(void *arg)
{
    struct timespec when = in_ms(CLOCK_REALTIME, 20000);
    int depth = (int)(long)arg % 7 + 1;
    for (int i = 0; i < depth; i++) {
        CHECK_OK(i % 3 == 0   ? pthread_mutex_lock(&mutex)
                 : i % 3 == 1 ? pthread_mutex_trylock(&mutex)
                              : pthread_mutex_timedlock(&mutex, &when));
        CHECK_EQ(inside, i);
        inside++;
        sched_yield();
    }
    usleep(200);
    for (int i = depth; i-- > 0;) {
        CHECK_EQ(inside, i + 1);
        inside--;
        CHECK_OK(pthread_mutex_unlock(&mutex));
        sched_yield();
    }
    return arg;
}

static void check(void)
{
    enum { DEEP = 1000, MANY = 100 };
    for (int i = 0; i < DEEP; i++)
        CHECK_OK(pthread_mutex_lock(&mutex));
    CHECK_ERR(pthread_mutex_destroy(&mutex), EBUSY);
    join(start(stranger, NULL));
    for (int i = 1; i < DEEP; i++)
        CHECK_OK(pthread_mutex_unlock(&mutex));
    join(start(stranger, NULL));
    CHECK_OK(pthread_mutex_unlock(&mutex));
    CHECK_ERR(pthread_mutex_unlock(&mutex), EPERM);

    pthread_t threads[MANY];
    for (long i = 0; i < MANY; i++)
        threads[i] = start(nest, (void *)i);
    for (int i = 0; i < MANY; i++)
        join(threads[i]);
    CHECK_EQ(inside, 0);
}

int main(void)
{
    check();
    CHECK_OK(pthread_mutex_destroy(&mutex));

    pthread_mutexattr_t attr;
    CHECK_OK(pthread_mutexattr_init(&attr));
    CHECK_OK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE));
    CHECK_OK(pthread_mutex_init(&mutex, &attr));
    CHECK_OK(pthread_mutexattr_destroy(&attr));
    check();
    CHECK_OK(pthread_mutex_destroy(&mutex));
    puts("recursive mutexes: ok");
    return 0;
}
