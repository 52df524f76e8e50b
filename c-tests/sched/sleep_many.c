// Many sleeps of many lengths by many threads: none ends early, those with a deadline in the past end at once.
#include "check.h"

enum { THREADS = 500 };

static void *sleeps(void *arg)
{
    unsigned seed = (unsigned)(long)arg;
    for (int i = 0; i < 20; i++) {
        long us = rand_r(&seed) % 20000;
        struct timespec span = {0, us * 1000}, left = {-1, -1};
        int64_t began = now_ns();
        switch (i % 4) {
        case 0:
            CHECK_SYS(nanosleep(&span, &left));
            break;
        case 1:
            CHECK_SYS(usleep((useconds_t)us));
            break;
        case 2:
            CHECK_OK(clock_nanosleep(CLOCK_REALTIME, 0, &span, &left));
            break;
        default:
            CHECK_OK(clock_nanosleep(CLOCK_MONOTONIC, 0, &span, NULL));
        }
        CHECK(now_ns() - began >= us * 1000);
        CHECK(left.tv_sec == -1); /* written only when interrupted */
    }
    struct timespec past = {1, 0}, bad = {0, 1000000000};
    CHECK_OK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &past, NULL));
    CHECK_OK(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &past, NULL));
    CHECK_SYS(nanosleep(&(struct timespec){0, 0}, NULL));
    CHECK_ERRNO(nanosleep(&bad, NULL), EINVAL);
    CHECK_ERR(clock_nanosleep(CLOCK_MONOTONIC, 0, &bad, NULL), EINVAL);
    CHECK_ERR(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &past, NULL), EINVAL);
    CHECK_EQ(sleep(0), 0);
    CHECK_SYS(usleep(0));
    return arg;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        threads[i] = start(sleeps, (void *)i);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    sleeps(NULL);
    int64_t began = now_ns();
    CHECK_EQ(sleep(1), 0);
    CHECK_LASTED(began, 1000);
    puts("sleeps: ok");
    return 0;
}
