/* Many sleepers, often; sleeps that overlap; spans that are longer than a counter of nanoseconds. */
#include "fds.h"

static void *sleep_a_second(void *arg)
{
    struct timespec span = {1, 0};
    int64_t begun = now_ns();
    switch ((intptr_t)arg % 4) {
    case 0:
        CHECK_EQ(sleep(1), 0);
        break;
    case 1:
        CHECK_EQ(usleep(1000000), 0);
        break;
    case 2:
        CHECK_EQ(nanosleep(&span, NULL), 0);
        break;
    default:
        CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, &span, NULL), 0);
    }
    CHECK_LASTED(begun, 1000);
    return NULL;
}

/* A hundred seconds of sleep pass at the same time. */
static void they_overlap(void)
{
    pthread_t threads[100];
    int64_t begun = now_ns();
    for (int i = 0; i < 100; i++)
        threads[i] = start(sleep_a_second, (void *)(intptr_t)i);
    for (int i = 0; i < 100; i++)
        join(threads[i]);
    CHECK(now_ns() - begun < 50 * (int64_t)1000000000);
}

static void *sleep_often(void *arg)
{
    unsigned state = (unsigned)(intptr_t)arg;
    for (int i = 0; i < 50; i++) {
        state = state * 1103515245u + 12345u;
        struct timespec span = {0, (state >> 8) % 3000000};
        int64_t begun = now_ns();
        CHECK_EQ(nanosleep(&span, NULL), 0);
        CHECK(now_ns() - begun >= span.tv_nsec);
    }
    return NULL;
}

static void five_hundred_often(void)
{
    pthread_t threads[500];
    for (int i = 0; i < 500; i++)
        threads[i] = start(sleep_often, (void *)(intptr_t)i);
    for (int i = 0; i < 500; i++)
        join(threads[i]);
}

static void fractions_are_rounded_up(void)
{
    for (long ns = 1; ns < 20000000; ns = ns * 3 + 1) {
        struct timespec span = {0, ns};
        int64_t begun = now_ns();
        CHECK_EQ(nanosleep(&span, NULL), 0);
        CHECK(now_ns() - begun >= ns);
    }
}

static volatile int back;

static void *sleep_for_ever(void *arg)
{
    struct timespec spans[] = {{INT64_MAX / 1000000000 + 5, 0}, {INT64_MAX, 999999999}, {4294967296, 0}};
    nanosleep(&spans[(intptr_t)arg], NULL);
    back = 1;
    return NULL;
}

static void long_ones_do_not_overflow(void)
{
    for (intptr_t i = 0; i < 3; i++)
        CHECK_OK(pthread_detach(start(sleep_for_ever, (void *)i)));
    sleep_ms(100);
    CHECK_EQ(back, 0);
}

int main(void)
{
    RUN(they_overlap);
    RUN(five_hundred_often);
    RUN(fractions_are_rounded_up);
    RUN(long_ones_do_not_overflow);
    return 0;
}
