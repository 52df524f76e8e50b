/* sleep, usleep, nanosleep, clock_nanosleep: never too short, errors in each one's own manner, many at once. */
#include "fds.h"

static void for_seconds(void)
{
    int64_t begun = now_ns();
    CHECK_EQ(sleep(1), 0);
    CHECK_LASTED(begun, 1000);
    CHECK_EQ(sleep(0), 0);
}

static void for_microseconds(void)
{
    int64_t begun = now_ns();
    CHECK_EQ(usleep(30000), 0);
    CHECK_LASTED(begun, 30);
    CHECK_EQ(usleep(0), 0);
    begun = now_ns();
    CHECK_EQ(usleep(1010000), 0);
    CHECK_LASTED(begun, 1010);
}

static void for_nanoseconds(void)
{
    struct timespec span = {0, 30000000}, rest = {77, 77};
    int64_t begun = now_ns();
    CHECK_EQ(nanosleep(&span, &rest), 0);
    CHECK_LASTED(begun, 30);
    CHECK(rest.tv_sec == 77 && rest.tv_nsec == 77);
    CHECK(span.tv_sec == 0 && span.tv_nsec == 30000000);
    span.tv_nsec = 1;
    CHECK_EQ(nanosleep(&span, NULL), 0);
    span.tv_nsec = 0;
    CHECK_EQ(nanosleep(&span, NULL), 0);
    begun = now_ns();
    span.tv_nsec = 300000;
    for (int i = 0; i < 20; i++)
        CHECK_EQ(nanosleep(&span, NULL), 0);
    CHECK_LASTED(begun, 6);
}

static void wrong_spans(void)
{
    struct timespec spans[] = {{0, 1000000000}, {0, -1}, {-1, 0}};
    for (int i = 0; i < 3; i++) {
        CHECK_ERRNO(nanosleep(&spans[i], NULL), EINVAL);
        errno = 77;
        CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, &spans[i], NULL), EINVAL);
        CHECK_EQ(errno, 77);
    }
    struct timespec span = {0, 1};
    CHECK_EQ(clock_nanosleep(12345, 0, &span, NULL), EINVAL);
    CHECK_EQ(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &span, NULL), EINVAL);
    CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC_RAW, 0, &span, NULL), EOPNOTSUPP);
    CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC_COARSE, 0, &span, NULL), EOPNOTSUPP);
}

static void on_each_clock(void)
{
    clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_TAI};
    for (int i = 0; i < 4; i++) {
        struct timespec span = {0, 20000000};
        int64_t begun = now_ns();
        CHECK_EQ(clock_nanosleep(clocks[i], 0, &span, NULL), 0);
        CHECK_LASTED(begun, 20);
        struct timespec now, when = in_ms(clocks[i], 20);
        CHECK_EQ(clock_nanosleep(clocks[i], TIMER_ABSTIME, &when, NULL), 0);
        clock_gettime(clocks[i], &now);
        CHECK(now.tv_sec > when.tv_sec || (now.tv_sec == when.tv_sec && now.tv_nsec >= when.tv_nsec));
        when = in_ms(clocks[i], -1000);
        CHECK_EQ(clock_nanosleep(clocks[i], TIMER_ABSTIME, &when, NULL), 0);
        when = (struct timespec){0, 0};
        CHECK_EQ(clock_nanosleep(clocks[i], TIMER_ABSTIME, &when, NULL), 0);
    }
}

static void *sleep_a_while(void *arg)
{
    long ms = 10 + (long)(intptr_t)arg % 37;
    for (int i = 0; i < 5; i++) {
        int64_t begun = now_ns();
        struct timespec span = {0, ms * 1000000}, when = in_ms(CLOCK_MONOTONIC, ms);
        switch (i) {
        case 0:
            CHECK_EQ(nanosleep(&span, NULL), 0);
            break;
        case 1:
            CHECK_EQ(usleep((useconds_t)ms * 1000), 0);
            break;
        case 2:
            CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL), 0);
            break;
        case 3:
            CHECK_EQ(poll(NULL, 0, (int)ms), 0);
            break;
        default:
            CHECK_EQ(clock_nanosleep(CLOCK_REALTIME, 0, &span, NULL), 0);
        }
        CHECK_LASTED(begun, ms - 1);
    }
    return NULL;
}

static void a_hundred_at_once(void)
{
    pthread_t threads[100];
    for (int i = 0; i < 100; i++)
        threads[i] = start(sleep_a_while, (void *)(intptr_t)(i * 7));
    for (int i = 0; i < 100; i++)
        join(threads[i]);
}

/* They wake in the order of their deadlines, whatever the order in which they went to sleep. The deadlines are far
 * enough apart for a busy machine. */
static int woken[8], woken_count;
static struct timespec origin;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *wake_in_order(void *arg)
{
    int place = (int)(intptr_t)arg;
    struct timespec when = origin;
    when.tv_nsec += 150000000L * place;
    when.tv_sec += when.tv_nsec / 1000000000;
    when.tv_nsec %= 1000000000;
    CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL), 0);
    pthread_mutex_lock(&lock);
    woken[woken_count++] = place;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void in_the_order_of_deadlines(void)
{
    static const int order[8] = {3, 0, 7, 5, 1, 6, 2, 4};
    pthread_t threads[8];
    origin = in_ms(CLOCK_MONOTONIC, 150);
    for (int i = 0; i < 8; i++)
        threads[i] = start(wake_in_order, (void *)(intptr_t)order[i]);
    for (int i = 0; i < 8; i++)
        join(threads[i]);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(woken[i], i);
}

int main(void)
{
    RUN(for_seconds);
    RUN(for_microseconds);
    RUN(for_nanoseconds);
    RUN(wrong_spans);
    RUN(on_each_clock);
    RUN(a_hundred_at_once);
    RUN(in_the_order_of_deadlines);
    return 0;
}
