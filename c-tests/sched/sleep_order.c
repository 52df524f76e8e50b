// Sleepers wake in the order of their deadlines, whatever the order they went to sleep in, and never early.
// alone
#include "check.h"

#include <stdbool.h>

enum { SLEEPERS = 12, GAP = 40, TRIES = 50 }; /* ms */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static int order[SLEEPERS], woken;
static bool disturbed; /* somebody woke so late that a later deadline may have passed meanwhile */
static struct timespec begin; /* on the monotonic clock */

static void *sleeper(void *arg)
{
    long rank = (long)arg;
    struct timespec when = begin;
    long ms = 100 + rank * GAP;
    when.tv_sec += ms / 1000;
    when.tv_nsec += ms % 1000 * 1000000;
    if (when.tv_nsec >= 1000000000) {
        when.tv_sec++;
        when.tv_nsec -= 1000000000;
    }
    if (rank % 3 == 0) { /* an absolute deadline */
        CHECK_OK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL));
    } else if (rank % 3 == 1) { /* a condition that nobody signals */
        pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
        CHECK_OK(pthread_mutex_lock(&own));
        CHECK_ERR(pthread_cond_clockwait(&never, &own, CLOCK_MONOTONIC, &when), ETIMEDOUT);
        CHECK_OK(pthread_mutex_unlock(&own));
    } else { /* a relative time */
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        long us = (when.tv_sec - now.tv_sec) * 1000000 + (when.tv_nsec - now.tv_nsec) / 1000 + 1;
        if (us > 0)
            CHECK_SYS(usleep((useconds_t)us));
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    CHECK(now.tv_sec > when.tv_sec || (now.tv_sec == when.tv_sec && now.tv_nsec >= when.tv_nsec));
    int64_t late = (int64_t)(now.tv_sec - when.tv_sec) * 1000000000 + now.tv_nsec - when.tv_nsec;
    pthread_mutex_lock(&mutex);
    disturbed |= late > (int64_t)GAP * 1000000 / 2;
    order[woken++] = (int)rank;
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void all_sleep(void)
{
    pthread_t threads[SLEEPERS];
    woken = 0;
    disturbed = false;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (long i = 0; i < SLEEPERS; i++)
        threads[i] = start(sleeper, (void *)(i * 5 % SLEEPERS));
    for (int i = 0; i < SLEEPERS; i++)
        join(threads[i]);
}

int main(void)
{
    /* A machine that stalls says nothing about the order: it is tried again. */
    int tries = 0;
    do
        all_sleep();
    while (disturbed && ++tries < TRIES);
    CHECK(!disturbed);
    for (int i = 0; i < SLEEPERS; i++)
        printf("%d%c", order[i], i + 1 < SLEEPERS ? ' ' : '\n');
    return 0;
}
