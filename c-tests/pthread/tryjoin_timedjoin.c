// pthread_tryjoin_np, pthread_timedjoin_np, pthread_clockjoin_np; the deadlock that pthread_join detects.
#include "check.h"

#include <stdatomic.h>

static atomic_int go;

static void *until_go(void *arg)
{
    while (!atomic_load(&go))
        usleep(1000);
    return arg;
}

static void *slow(void *arg)
{
    sleep_ms(50);
    return arg;
}

static void *join_self(void *arg)
{
    struct timespec when = in_ms(CLOCK_REALTIME, 20000);
    CHECK_ERR(pthread_join(pthread_self(), NULL), EDEADLK);
    CHECK_ERR(pthread_timedjoin_np(pthread_self(), NULL, &when), EDEADLK);
    CHECK_ERR(pthread_clockjoin_np(pthread_self(), NULL, CLOCK_REALTIME, &when), EDEADLK);
    CHECK_ERR(pthread_tryjoin_np(pthread_self(), NULL), EBUSY);
    return arg;
}

int main(void)
{
    void *value = NULL;
    struct timespec when;

    /* Running: busy, late, late by either clock, and still joinable after that. */
    pthread_t thread = start(until_go, (void *)7);
    CHECK_ERR(pthread_tryjoin_np(thread, &value), EBUSY);
    when = in_ms(CLOCK_REALTIME, -1000);
    CHECK_ERR(pthread_timedjoin_np(thread, &value, &when), ETIMEDOUT);
    int64_t began = now_ns();
    when = in_ms(CLOCK_REALTIME, 30);
    CHECK_ERR(pthread_timedjoin_np(thread, &value, &when), ETIMEDOUT);
    CHECK_LASTED(began, 29);
    began = now_ns();
    when = in_ms(CLOCK_MONOTONIC, 30);
    CHECK_ERR(pthread_clockjoin_np(thread, &value, CLOCK_MONOTONIC, &when), ETIMEDOUT);
    CHECK_LASTED(began, 30);
    when = in_ms(CLOCK_REALTIME, 30);
    CHECK_ERR(pthread_clockjoin_np(thread, &value, CLOCK_REALTIME, &when), ETIMEDOUT);
    CHECK_ERR(pthread_clockjoin_np(thread, &value, CLOCK_THREAD_CPUTIME_ID, &when), EINVAL);
    CHECK(value == NULL);
    atomic_store(&go, 1);
    when = in_ms(CLOCK_REALTIME, 20000);
    CHECK_OK(pthread_timedjoin_np(thread, &value, &when));
    CHECK(value == (void *)7);

    /* Ended: every way gives its value at once, even with a deadline in the past. */
    thread = start(until_go, (void *)8);
    while (pthread_tryjoin_np(thread, &value) == EBUSY)
        usleep(1000);
    CHECK(value == (void *)8);
    thread = start(until_go, (void *)9);
    sleep_ms(30);
    when = in_ms(CLOCK_REALTIME, -1000);
    int late = pthread_timedjoin_np(thread, &value, &when);
    if (late == ETIMEDOUT) /* a machine so busy that 30 ms were too little */
        CHECK_OK(pthread_join(thread, &value));
    CHECK(value == (void *)9);

    /* Ends while we wait; without a deadline; with the value ignored. */
    when = in_ms(CLOCK_MONOTONIC, 20000);
    CHECK_OK(pthread_clockjoin_np(start(slow, (void *)10), &value, CLOCK_MONOTONIC, &when));
    CHECK(value == (void *)10);
    CHECK_OK(pthread_timedjoin_np(start(slow, (void *)11), &value, NULL));
    CHECK(value == (void *)11);
    CHECK_OK(pthread_clockjoin_np(start(slow, (void *)12), NULL, CLOCK_REALTIME, NULL));

    /* Oneself. */
    join_self(NULL);
    CHECK(join(start(join_self, (void *)13)) == (void *)13);

    puts("tryjoin, timedjoin, clockjoin: ok");
    return 0;
}
