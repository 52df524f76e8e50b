/* Timer descriptors on each clock, disarmed ones, a hundred at once; two event counters that play ball. */
#include "fds.h"
#include <sys/eventfd.h>
#include <sys/timerfd.h>

static void add(int fd, uint64_t value) { CHECK_EQ(write(fd, &value, 8), 8); }

static uint64_t take(int fd)
{
    uint64_t value = 0;
    CHECK_EQ(read(fd, &value, 8), 8);
    return value;
}

static void arm(int fd, long ms, long every_ms)
{
    struct itimerspec when = {{every_ms / 1000, every_ms % 1000 * 1000000}, {ms / 1000, ms % 1000 * 1000000}};
    CHECK_SYS(timerfd_settime(fd, 0, &when, NULL));
}

static void timer_expires(void)
{
    static const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME};
    for (int i = 0; i < 3; i++) {
        int fd = timerfd_create(clocks[i], 0);
        CHECK_SYS(fd);
        int64_t begun = now_ns();
        arm(fd, 30, 0);
        CHECK_EQ(take(fd), 1);
        CHECK_LASTED(begun, 28);
        struct itimerspec left;
        CHECK_SYS(timerfd_gettime(fd, &left));
        CHECK_EQ(left.it_value.tv_sec + left.it_value.tv_nsec, 0);
        CHECK_SYS(close(fd));
    }
}

static void timer_at_a_time(void)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec when = {{0, 0}, in_ms(CLOCK_MONOTONIC, 30)};
    int64_t begun = now_ns();
    CHECK_SYS(timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL));
    CHECK_EQ(take(fd), 1);
    CHECK_LASTED(begun, 28);
    CHECK_SYS(close(fd));
}

static void timer_is_disarmed(void)
{
    struct itimerspec never = {{0, 0}, {0, 0}}, old;
    uint64_t value;
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    arm(fd, 1, 0);
    sleep_ms(10);
    CHECK_SYS(timerfd_settime(fd, 0, &never, &old));
    CHECK_ERRNO(read(fd, &value, 8), EAGAIN);
    arm(fd, 3600000, 0);
    CHECK_SYS(timerfd_settime(fd, 0, &never, &old));
    CHECK(old.it_value.tv_sec >= 3590);
    struct pollfd one = {fd, POLLIN, 0};
    CHECK_EQ(poll(&one, 1, 20), 0);
    arm(fd, 10, 0);
    CHECK_EQ(poll(&one, 1, -1), 1);
    CHECK_EQ(one.revents, POLLIN);
    CHECK_EQ(take(fd), 1);
    CHECK_SYS(close(fd));
}

static void *wait_for_timer(void *arg)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    for (int i = 0; i < 5; i++) {
        arm(fd, 1 + (long)(intptr_t)arg % 7, 0);
        CHECK_EQ(take(fd), 1);
    }
    CHECK_SYS(close(fd));
    return NULL;
}

static void many_timers(void)
{
    enum { THREADS = 100 };
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(wait_for_timer, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
}

enum { TURNS = 3000 };
static int ping, pong;

static void *return_it(void *arg)
{
    (void)arg;
    for (uint64_t i = 1; i <= TURNS; i++) {
        CHECK_EQ(take(ping), i);
        add(pong, i);
    }
    return NULL;
}

static void ping_pong(void)
{
    ping = eventfd(0, 0);
    pong = eventfd(0, 0);
    pthread_t other = start(return_it, NULL);
    for (uint64_t i = 1; i <= TURNS; i++) {
        add(ping, i);
        CHECK_EQ(take(pong), i);
    }
    join(other);
    CHECK_SYS(close(ping));
    CHECK_SYS(close(pong));
}

int main(void)
{
    RUN(timer_expires);
    RUN(timer_at_a_time);
    RUN(timer_is_disarmed);
    RUN(many_timers);
    RUN(ping_pong);
    return 0;
}
