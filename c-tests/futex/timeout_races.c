// Timeouts that race with wakes: a wake is never lost to a waiter whose time was up, no token is taken twice.
#include "check.h"

#include <semaphore.h>
#include <stdatomic.h>

enum { WAITERS = 20, TOKENS = 2000 };
static sem_t sem;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int tokens;
static atomic_int taken;

static int wanted(void)
{
    return atomic_load(&taken) < TOKENS;
}

static struct timespec soon(unsigned *seed)
{
    struct timespec when;
    clock_gettime(CLOCK_REALTIME, &when);
    when.tv_nsec += rand_r(seed) % 300 * 1000;
    if (when.tv_nsec >= 1000000000) {
        when.tv_sec++;
        when.tv_nsec -= 1000000000;
    }
    return when;
}

static void *take_sem(void *arg)
{
    unsigned seed = (unsigned)(long)arg;
    while (wanted()) {
        struct timespec when = soon(&seed);
        if (sem_timedwait(&sem, &when) == 0)
            atomic_fetch_add(&taken, 1);
        else
            CHECK_EQ(errno, ETIMEDOUT);
    }
    return arg;
}

static void *take_cond(void *arg)
{
    unsigned seed = (unsigned)(long)arg;
    while (wanted()) {
        struct timespec when = soon(&seed);
        CHECK_OK(pthread_mutex_lock(&mutex));
        int got = 0;
        while (tokens == 0 && got == 0)
            got = pthread_cond_timedwait(&cond, &mutex, &when);
        CHECK(got == 0 || got == ETIMEDOUT);
        if (tokens > 0) {
            tokens--;
            atomic_fetch_add(&taken, 1);
        }
        CHECK_OK(pthread_mutex_unlock(&mutex));
    }
    return arg;
}

static void *take_lock(void *arg)
{
    unsigned seed = (unsigned)(long)arg;
    while (wanted()) {
        struct timespec when = soon(&seed);
        int got = pthread_mutex_timedlock(&mutex, &when);
        if (got == ETIMEDOUT)
            continue;
        CHECK_OK(got);
        if (wanted())
            atomic_fetch_add(&taken, 1);
        if (rand_r(&seed) % 10 == 0)
            usleep(100);
        CHECK_OK(pthread_mutex_unlock(&mutex));
    }
    return arg;
}

static void give(int way)
{
    unsigned seed = 1;
    for (int i = 0; i < TOKENS; i++) {
        if (way == 0) {
            CHECK_SYS(sem_post(&sem));
        } else {
            CHECK_OK(pthread_mutex_lock(&mutex));
            tokens++;
            CHECK_OK(pthread_cond_signal(&cond));
            CHECK_OK(pthread_mutex_unlock(&mutex));
        }
        if (rand_r(&seed) % 4 == 0)
            usleep(rand_r(&seed) % 200);
    }
}

static void run(void *(*routine)(void *), int way)
{
    pthread_t threads[WAITERS];
    atomic_store(&taken, 0);
    for (long i = 0; i < WAITERS; i++)
        threads[i] = start(routine, (void *)(i + 1));
    if (way >= 0)
        give(way);
    for (int i = 0; i < WAITERS; i++)
        join(threads[i]);
    CHECK_EQ(atomic_load(&taken), TOKENS);
}

int main(void)
{
    int left;
    CHECK_SYS(sem_init(&sem, 0, 0));
    run(take_sem, 0);
    CHECK_SYS(sem_getvalue(&sem, &left));
    CHECK_EQ(left, 0);
    run(take_cond, 1);
    CHECK_EQ(tokens, 0);
    run(take_lock, -1);
    puts("timeouts and wakes: ok");
    return 0;
}
