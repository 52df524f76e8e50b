// Sleepers wake in the order of their deadlines, whatever the order they went to sleep in, and never early.
// alone
#include "check.h"

enum { SLEEPERS = 12, GAP = 40 }; /* ms; generous, so that a busy machine keeps the order too */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static int order[SLEEPERS], woken;
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
    pthread_mutex_lock(&mutex);
    order[woken++] = (int)rank;
    pthread_mutex_unlock(&mutex);
    return NULL;
}

int main(void)
{
    pthread_t threads[SLEEPERS];
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (long i = 0; i < SLEEPERS; i++)
        threads[i] = start(sleeper, (void *)(i * 5 % SLEEPERS));
    for (int i = 0; i < SLEEPERS; i++)
        join(threads[i]);
    for (int i = 0; i < SLEEPERS; i++)
        printf("%d%c", order[i], i + 1 < SLEEPERS ? ' ' : '\n');
    return 0;
}
