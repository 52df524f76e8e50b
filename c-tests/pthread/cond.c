// Condition variables: wait, signal, broadcast, timeouts on both clocks, recursive mutexes, destroy.
#include "check.h"

enum { MANY = 50 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int waiting, tokens, passed;

static void *wait_for_token(void *arg)
{
    struct timespec when = in_ms(CLOCK_REALTIME, 20000);
    struct timespec then = in_ms(CLOCK_MONOTONIC, 20000);
    long how = (long)arg;
    CHECK_OK(pthread_mutex_lock(&mutex));
    waiting++;
    while (tokens == 0)
        CHECK_OK(how % 3 == 0   ? pthread_cond_wait(&cond, &mutex)
                 : how % 3 == 1 ? pthread_cond_timedwait(&cond, &mutex, &when)
                                : pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &then));
    tokens--;
    passed++;
    CHECK_OK(pthread_mutex_unlock(&mutex));
    return arg;
}

static void until(int *number, int value)
{
    for (;;) {
        CHECK_OK(pthread_mutex_lock(&mutex));
        int reached = *number >= value;
        CHECK(*number <= value);
        CHECK_OK(pthread_mutex_unlock(&mutex));
        if (reached)
            return;
        usleep(500);
    }
}

static void start_waiters(pthread_t *threads)
{
    waiting = tokens = passed = 0;
    for (long i = 0; i < MANY; i++)
        threads[i] = start(wait_for_token, (void *)i);
    until(&waiting, MANY);
}

static void one_at_a_time(void)
{
    pthread_t threads[MANY];
    start_waiters(threads);
    for (int i = 0; i < MANY; i++) {
        CHECK_OK(pthread_mutex_lock(&mutex));
        tokens++;
        if (i % 2)
            CHECK_OK(pthread_cond_signal(&cond));
        CHECK_OK(pthread_mutex_unlock(&mutex));
        if (i % 2 == 0)
            CHECK_OK(pthread_cond_signal(&cond)); /* with or without the mutex */
        until(&passed, i + 1);
    }
    for (int i = 0; i < MANY; i++)
        join(threads[i]);
}

static void all_at_once(void)
{
    pthread_t threads[MANY];
    start_waiters(threads);
    CHECK_OK(pthread_mutex_lock(&mutex));
    tokens = MANY;
    CHECK_OK(pthread_cond_broadcast(&cond));
    CHECK_OK(pthread_mutex_unlock(&mutex));
    for (int i = 0; i < MANY; i++)
        join(threads[i]);
    CHECK_EQ(passed, MANY);
}

/* Who signals when nobody waits leaves nothing behind; a timeout comes with the mutex held. */
static void timeouts(clockid_t clock)
{
    pthread_condattr_t attr;
    pthread_cond_t own;
    clockid_t got;
    struct timespec when;
    CHECK_OK(pthread_condattr_init(&attr));
    CHECK_OK(pthread_condattr_getclock(&attr, &got));
    CHECK_EQ(got, CLOCK_REALTIME);
    CHECK_OK(pthread_condattr_setclock(&attr, clock));
    CHECK_OK(pthread_condattr_getclock(&attr, &got));
    CHECK_EQ(got, clock);
    CHECK_ERR(pthread_condattr_setclock(&attr, CLOCK_THREAD_CPUTIME_ID), EINVAL);
    CHECK_OK(pthread_cond_init(&own, &attr));
    CHECK_OK(pthread_condattr_destroy(&attr));

    CHECK_OK(pthread_cond_signal(&own));
    CHECK_OK(pthread_cond_broadcast(&own));
    CHECK_OK(pthread_mutex_lock(&mutex));
    int64_t began = now_ns();
    when = in_ms(clock, 30);
    CHECK_ERR(pthread_cond_timedwait(&own, &mutex, &when), ETIMEDOUT);
    CHECK_LASTED(began, 29);
    CHECK_ERR(pthread_mutex_trylock(&mutex), EBUSY);
    when = in_ms(clock, -1000);
    CHECK_ERR(pthread_cond_timedwait(&own, &mutex, &when), ETIMEDOUT);
    when = (struct timespec){0, 0};
    CHECK_ERR(pthread_cond_timedwait(&own, &mutex, &when), ETIMEDOUT);
    when.tv_nsec = 1000000000;
    CHECK_ERR(pthread_cond_timedwait(&own, &mutex, &when), EINVAL);
    when.tv_nsec = -1;
    CHECK_ERR(pthread_cond_timedwait(&own, &mutex, &when), EINVAL);
    began = now_ns();
    when = in_ms(CLOCK_MONOTONIC, 20);
    CHECK_ERR(pthread_cond_clockwait(&own, &mutex, CLOCK_MONOTONIC, &when), ETIMEDOUT);
    CHECK_LASTED(began, 20);
    when = in_ms(CLOCK_REALTIME, 20);
    CHECK_ERR(pthread_cond_clockwait(&own, &mutex, CLOCK_REALTIME, &when), ETIMEDOUT);
    CHECK_ERR(pthread_cond_clockwait(&own, &mutex, CLOCK_PROCESS_CPUTIME_ID, &when), EINVAL);
    CHECK_OK(pthread_mutex_unlock(&mutex));
    CHECK_OK(pthread_cond_destroy(&own));
}

static void *time_out(void *arg)
{
    timeouts((long)arg % 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME);
    return arg;
}

/* A recursive mutex locked twice: the wait leaves it locked once, so only the locker itself may go on. */
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static int ready;

static void *with_recursive(void *arg)
{
    CHECK_OK(pthread_mutex_lock(&recursive));
    while (!ready)
        CHECK_OK(pthread_cond_wait(&cond, &recursive));
    CHECK_OK(pthread_mutex_lock(&recursive)); /* owned again, so it nests */
    CHECK_OK(pthread_mutex_unlock(&recursive));
    CHECK_OK(pthread_mutex_unlock(&recursive));
    CHECK_ERR(pthread_mutex_unlock(&recursive), EPERM);
    return arg;
}

/* An errorcheck mutex that one does not own. */
static void errors(void)
{
    pthread_mutex_t check = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    struct timespec when = in_ms(CLOCK_REALTIME, 20);
    CHECK_ERR(pthread_cond_wait(&cond, &check), EPERM);
    CHECK_ERR(pthread_cond_timedwait(&cond, &check, &when), EPERM);
    CHECK_OK(pthread_mutex_lock(&check));
    CHECK_ERR(pthread_cond_timedwait(&cond, &check, &when), ETIMEDOUT);
    CHECK_ERR(pthread_mutex_lock(&check), EDEADLK);
    CHECK_OK(pthread_mutex_unlock(&check));
}

/* Destroyed right after the broadcast: those who were woken no longer need it. */
struct short_lived {
    pthread_cond_t cond;
    pthread_mutex_t mutex;
    int waiters, go;
};

static void *wait_short(void *arg)
{
    struct short_lived *it = arg;
    CHECK_OK(pthread_mutex_lock(&it->mutex));
    it->waiters++;
    while (!it->go)
        CHECK_OK(pthread_cond_wait(&it->cond, &it->mutex));
    CHECK_OK(pthread_mutex_unlock(&it->mutex));
    return NULL;
}

static void destroy_after_broadcast(void)
{
    for (int round = 0; round < 50; round++) {
        struct short_lived it = {PTHREAD_COND_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, 0, 0};
        pthread_t threads[5];
        for (int i = 0; i < 5; i++)
            threads[i] = start(wait_short, &it);
        for (int all = 0; !all; sched_yield()) {
            CHECK_OK(pthread_mutex_lock(&it.mutex));
            if (it.waiters == 5) {
                it.go = all = 1;
                CHECK_OK(pthread_cond_broadcast(&it.cond));
            }
            CHECK_OK(pthread_mutex_unlock(&it.mutex));
        }
        CHECK_OK(pthread_cond_destroy(&it.cond));
        memset(&it.cond, 0xff, sizeof it.cond);
        for (int i = 0; i < 5; i++)
            join(threads[i]);
    }
}

int main(void)
{
    one_at_a_time();
    all_at_once();
    timeouts(CLOCK_REALTIME);
    timeouts(CLOCK_MONOTONIC);
    pthread_t threads[10];
    for (long i = 0; i < 10; i++)
        threads[i] = start(time_out, (void *)i);
    for (int i = 0; i < 10; i++)
        join(threads[i]);

    for (int i = 0; i < 10; i++)
        threads[i] = start(with_recursive, NULL);
    sleep_ms(10);
    CHECK_OK(pthread_mutex_lock(&recursive));
    ready = 1;
    CHECK_OK(pthread_cond_broadcast(&cond));
    CHECK_OK(pthread_mutex_unlock(&recursive));
    for (int i = 0; i < 10; i++)
        join(threads[i]);

    errors();
    destroy_after_broadcast();
    CHECK_OK(pthread_cond_destroy(&cond));
    puts("condition variables: ok");
    return 0;
}
