/* eventfd and timerfd: blocking reads and writes, semaphores, overflow, expirations. */
#include "fds.h"
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>

static void add_five(int fd)
{
    uint64_t five = 5;
    CHECK_EQ(write(fd, &five, 8), 8);
}

static void take(int fd)
{
    uint64_t value;
    CHECK_EQ(read(fd, &value, 8), 8);
}

static void eventfd_counts(void)
{
    uint64_t value = 0;
    int fd = eventfd(3, EFD_CLOEXEC);
    CHECK_EQ(read(fd, &value, 8), 8);
    CHECK_EQ(value, 3);
    add_five(fd);
    add_five(fd);
    CHECK_EQ(read(fd, &value, 8), 8);
    CHECK_EQ(value, 10);
    int64_t begun = now_ns();
    pthread_t adder = later(30, add_five, fd);
    CHECK_EQ(read(fd, &value, 8), 8);
    CHECK_LASTED(begun, 25);
    CHECK_EQ(value, 5);
    join(adder);
    CHECK_SYS(close(fd));
}

static void eventfd_as_semaphore(void)
{
    uint64_t value = 0;
    int fd = eventfd(2, EFD_SEMAPHORE);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(read(fd, &value, 8), 8);
        CHECK_EQ(value, 1);
    }
    pthread_t adder = later(20, add_five, fd);
    for (int i = 0; i < 5; i++)
        take(fd);
    join(adder);
    struct pollfd watch = {fd, POLLIN, 0};
    CHECK_EQ(poll(&watch, 1, 0), 0);
    CHECK_SYS(close(fd));
}

static void eventfd_overflow_waits(void)
{
    uint64_t value = UINT64_MAX - 1;
    int fd = eventfd(0, 0);
    CHECK_EQ(write(fd, &value, 8), 8);
    struct pollfd watch = {fd, POLLIN | POLLOUT, 0};
    CHECK_EQ(poll(&watch, 1, -1), 1);
    CHECK_EQ(watch.revents, POLLIN);
    int64_t begun = now_ns();
    pthread_t taker = later(30, take, fd);
    value = 7;
    CHECK_EQ(write(fd, &value, 8), 8);
    CHECK_LASTED(begun, 25);
    join(taker);
    CHECK_EQ(read(fd, &value, 8), 8);
    CHECK_EQ(value, 7);
    CHECK_SYS(close(fd));
}

static void eventfd_errors(void)
{
    uint64_t value = UINT64_MAX;
    int fd = eventfd(1, 0);
    CHECK_ERRNO(write(fd, &value, 8), EINVAL);
    CHECK_ERRNO(write(fd, &value, 4), EINVAL);
    CHECK_ERRNO(read(fd, &value, 7), EINVAL);
    CHECK_EQ(read(fd, &value, 8), 8);
    CHECK_ERRNO(read(fd, &value, 7), EINVAL);
    set_nonblock(fd, true);
    CHECK_ERRNO(read(fd, &value, 8), EAGAIN);
    value = UINT64_MAX - 1;
    CHECK_EQ(write(fd, &value, 8), 8);
    CHECK_ERRNO(write(fd, &value, 8), EAGAIN);
    CHECK_SYS(close(fd));
}

static void glibc_wrappers(void)
{
    eventfd_t value;
    int fd = eventfd(0, 0);
    CHECK_SYS(eventfd_write(fd, 4));
    CHECK_SYS(eventfd_read(fd, &value));
    CHECK_EQ(value, 4);
    CHECK_ERRNO(eventfd_write(fd, UINT64_MAX), EINVAL);
    CHECK_SYS(close(fd));
}

enum { TAKERS = 16, TOKENS = 3200 };
static int tokens;

static void *take_tokens(void *arg)
{
    (void)arg;
    for (int i = 0; i < TOKENS / TAKERS; i++)
        take(tokens);
    return NULL;
}

static void many_takers(void)
{
    pthread_t takers[TAKERS];
    tokens = eventfd(0, EFD_SEMAPHORE);
    for (int i = 0; i < TAKERS; i++)
        takers[i] = start(take_tokens, NULL);
    for (int i = 0; i < TOKENS / 5; i++)
        add_five(tokens);
    for (int i = 0; i < TAKERS; i++)
        join(takers[i]);
    CHECK_SYS(close(tokens));
}

static int timer(long first_ms, long every_ms)
{
    struct itimerspec when = {{every_ms / 1000, every_ms % 1000 * 1000000}, {first_ms / 1000, first_ms % 1000 * 1000000}};
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    CHECK_SYS(fd);
    CHECK_SYS(timerfd_settime(fd, 0, &when, NULL));
    return fd;
}

static void timerfd_waits(void)
{
    uint64_t count = 0;
    int64_t begun = now_ns();
    int fd = timer(30, 0);
    CHECK_EQ(read(fd, &count, 8), 8);
    CHECK_LASTED(begun, 30);
    CHECK_EQ(count, 1);
    struct pollfd watch = {fd, POLLIN, 0};
    CHECK_EQ(poll(&watch, 1, 10), 0);
    CHECK_SYS(close(fd));
}

static void timerfd_repeats(void)
{
    uint64_t count = 0, total = 0;
    int64_t begun = now_ns();
    int fd = timer(10, 10);
    while (total < 5) {
        CHECK_EQ(read(fd, &count, 8), 8);
        CHECK(count >= 1);
        total += count;
    }
    CHECK_LASTED(begun, 50);
    sleep_ms(35);
    CHECK_EQ(read(fd, &count, 8), 8);
    CHECK(count >= 3);
    CHECK_SYS(close(fd));
}

static void arm(int fd)
{
    struct itimerspec when = {.it_value = {0, 1000000}};
    CHECK_SYS(timerfd_settime(fd, 0, &when, NULL));
}

static void timerfd_set_while_waiting(void)
{
    uint64_t count = 0;
    int fd = timer(0, 0);
    pthread_t setter = later(30, arm, fd);
    CHECK_EQ(read(fd, &count, 8), 8);
    CHECK_EQ(count, 1);
    join(setter);
    CHECK_SYS(close(fd));
}

static void timerfd_errors(void)
{
    uint64_t count = 0;
    int fd = timer(0, 0);
    CHECK_ERRNO(read(fd, &count, 7), EINVAL);
    CHECK_ERRNO(write(fd, &count, 8), EINVAL);
    set_nonblock(fd, true);
    CHECK_ERRNO(read(fd, &count, 8), EAGAIN);
    CHECK_SYS(close(fd));
    fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
    CHECK_EQ(fcntl(fd, F_GETFL), O_RDWR | O_NONBLOCK);
    CHECK_ERRNO(read(fd, &count, 8), EAGAIN);
    CHECK_SYS(close(fd));
}

int main(void)
{
    RUN(eventfd_counts);
    RUN(eventfd_as_semaphore);
    RUN(eventfd_overflow_waits);
    RUN(eventfd_errors);
    RUN(glibc_wrappers);
    RUN(many_takers);
    RUN(timerfd_waits);
    RUN(timerfd_repeats);
    RUN(timerfd_set_while_waiting);
    RUN(timerfd_errors);
    return 0;
}
