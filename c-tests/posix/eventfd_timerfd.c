/* eventfd and timerfd: counters that wait when empty or full, timers that are armed, re-armed and disarmed. */
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

static void add_5(int fd) { add(fd, 5); }
static void take_all(int fd) { CHECK_EQ(take(fd), UINT64_MAX - 1); }

static void counter_waits_when_empty(void)
{
    int fd = eventfd(0, 0);
    CHECK_SYS(fd);
    int64_t begun = now_ns();
    pthread_t adder = later(30, add_5, fd);
    CHECK_EQ(take(fd), 5);
    CHECK_LASTED(begun, 25);
    join(adder);
    add(fd, 1);
    add(fd, 2);
    CHECK_EQ(take(fd), 3);
    CHECK_SYS(close(fd));
    fd = eventfd(9, EFD_CLOEXEC);
    CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(take(fd), 9);
    CHECK_SYS(close(fd));
}

static void counter_waits_when_full(void)
{
    int fd = eventfd(0, 0);
    add(fd, UINT64_MAX - 1);
    int64_t begun = now_ns();
    pthread_t taker = later(30, take_all, fd);
    add(fd, 7);
    CHECK_LASTED(begun, 25);
    CHECK_EQ(take(fd), 7);
    join(taker);
    add(fd, 0);
    CHECK_SYS(close(fd));
}

static void semaphore_counts_down(void)
{
    int fd = eventfd(3, EFD_SEMAPHORE);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(take(fd), 1);
    pthread_t adder = later(20, add_5, fd);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(take(fd), 1);
    join(adder);
    CHECK_SYS(close(fd));
}

static void *take_one(void *arg)
{
    CHECK_EQ(take(*(int *)arg), 1);
    return NULL;
}

static void semaphore_lets_many_go(void)
{
    enum { THREADS = 40 };
    pthread_t threads[THREADS];
    int fd = eventfd(0, EFD_SEMAPHORE);
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(take_one, &fd);
    sleep_ms(20);
    add(fd, THREADS / 2);
    for (int i = 0; i < THREADS / 2; i++)
        add(fd, 1);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    CHECK_SYS(close(fd));
}

static void counter_that_never_waits(void)
{
    uint64_t value = UINT64_MAX - 1;
    int fd = eventfd(0, EFD_NONBLOCK);
    CHECK_EQ(fcntl(fd, F_GETFL), O_RDWR | O_NONBLOCK);
    CHECK_ERRNO(read(fd, &value, 8), EAGAIN);
    add(fd, UINT64_MAX - 1);
    value = 1;
    CHECK_ERRNO(write(fd, &value, 8), EAGAIN);
    CHECK_SYS(close(fd));
}

static void counter_errors(void)
{
    uint64_t value = UINT64_MAX;
    int fd = eventfd(1, 0);
    CHECK_ERRNO(write(fd, &value, 8), EINVAL);
    CHECK_ERRNO(write(fd, &value, 7), EINVAL);
    CHECK_ERRNO(read(fd, &value, 7), EINVAL);
    CHECK_ERRNO(read(fd, bad_pointer(), 8), EFAULT);
    CHECK_ERRNO(eventfd(0, 0x55555), EINVAL);
    CHECK_SYS(close(fd));
}

static void add_by_library(int fd) { CHECK_SYS(eventfd_write(fd, 11)); }

static void library_calls(void)
{
    eventfd_t value = 0;
    int fd = eventfd(0, 0);
    pthread_t adder = later(20, add_by_library, fd);
    CHECK_SYS(eventfd_read(fd, &value));
    CHECK_EQ(value, 11);
    join(adder);
    CHECK_SYS(close(fd));
}

/* ---- timers ---- */

static void arm(int fd, long ms, long every_ms)
{
    struct itimerspec when = {{every_ms / 1000, every_ms % 1000 * 1000000}, {ms / 1000, ms % 1000 * 1000000}};
    CHECK_SYS(timerfd_settime(fd, 0, &when, NULL));
}

static void arm_soon(int fd) { arm(fd, 10, 0); }

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

static void timer_repeats(void)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    int64_t begun = now_ns();
    uint64_t total = 0;
    arm(fd, 5, 5);
    while (total < 10)
        total += take(fd);
    CHECK_LASTED(begun, 49);
    sleep_ms(30);
    CHECK(take(fd) >= 5);
    CHECK_SYS(close(fd));
}

static void timer_is_brought_forward(void)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    arm(fd, 3600000, 0);
    pthread_t other = later(20, arm_soon, fd);
    int64_t begun = now_ns();
    CHECK_EQ(take(fd), 1);
    CHECK_LASTED(begun, 28);
    join(other);
    /* One that is not armed at all. */
    begun = now_ns();
    other = later(20, arm_soon, fd);
    CHECK_EQ(take(fd), 1);
    CHECK_LASTED(begun, 28);
    join(other);
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

static void timer_errors(void)
{
    uint64_t value;
    struct itimerspec bad = {{0, 0}, {0, 1000000000}};
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    CHECK_ERRNO(timerfd_settime(fd, 0, &bad, NULL), EINVAL);
    CHECK_ERRNO(read(fd, &value, 4), EINVAL);
    CHECK_ERRNO(write(fd, &value, 8), EINVAL);
    CHECK_ERRNO(timerfd_create(12345, 0), EINVAL);
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

/* ---- two counters, two threads ---- */

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
    RUN(counter_waits_when_empty);
    RUN(counter_waits_when_full);
    RUN(semaphore_counts_down);
    RUN(semaphore_lets_many_go);
    RUN(counter_that_never_waits);
    RUN(counter_errors);
    RUN(library_calls);
    RUN(ping_pong);
    RUN(timer_expires);
    RUN(timer_at_a_time);
    RUN(timer_repeats);
    RUN(timer_is_brought_forward);
    RUN(timer_is_disarmed);
    RUN(timer_errors);
    RUN(many_timers);
    return 0;
}
