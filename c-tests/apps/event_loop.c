/* A thread with an event loop of its own (epoll, non-blocking sockets, an eventfd, a timerfd) beside threads that block. */
#include "../posix/fds.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

enum { CLIENTS = 40, TURNS = 60 };

static int listener, stop_event;

static void watch(int epoll, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};
    CHECK_SYS(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
}

static void accept_them(int epoll)
{
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
        watch(epoll, fd, EPOLLIN | EPOLLRDHUP | EPOLLET);
    CHECK_EQ(errno, EAGAIN);
}

/* Echoes what is there; closes at the end. Answers are small enough never to find the socket full. */
static void echo(int fd)
{
    char data[1000];
    ssize_t n;
    while ((n = read(fd, data, sizeof data)) > 0)
        CHECK_EQ(write(fd, data, (size_t)n), n);
    if (n == 0)
        CHECK_SYS(close(fd));
    else
        CHECK_EQ(errno, EAGAIN);
}

static void *loop(void *arg)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct itimerspec every = {{0, 2000000}, {0, 2000000}};
    struct epoll_event events[16];
    uint64_t ticks = 0, value;
    CHECK_SYS(epoll);
    CHECK_SYS(timerfd_settime(timer, 0, &every, NULL));
    watch(epoll, listener, EPOLLIN);
    watch(epoll, stop_event, EPOLLIN);
    watch(epoll, timer, EPOLLIN);
    for (;;) {
        int n = epoll_wait(epoll, events, 16, -1);
        CHECK_SYS(n);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                accept_them(epoll);
            } else if (fd == timer) {
                CHECK_EQ(read(timer, &value, sizeof value), 8);
                ticks += value;
            } else if (fd == stop_event) {
                CHECK_SYS(close(epoll));
                CHECK_SYS(close(timer));
                CHECK(ticks > 0);
                return arg;
            } else {
                echo(fd);
            }
        }
    }
}

static void *client(void *arg)
{
    unsigned me = (unsigned)(intptr_t)arg;
    char out[900], in[900];
    int fd = tcp_connect(port_of(listener));
    for (unsigned i = 0; i < TURNS; i++) {
        size_t size = (me * 37 + i * 101) % sizeof out + 1;
        fill(out, size, me, i);
        write_all(fd, out, size);
        CHECK_EQ(read_all(fd, in, size), size);
        check_fill(in, size, me, i);
        if (i % 20 == me % 20)
            sleep_ms(2);
    }
    CHECK_SYS(close(fd));
    return NULL;
}

int main(void)
{
    pthread_t clients[CLIENTS];
    uint64_t one = 1;
    listener = tcp_listener(CLIENTS);
    set_nonblock(listener, true);
    stop_event = eventfd(0, EFD_CLOEXEC);
    pthread_t server = start(loop, NULL);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = start(client, (void *)(intptr_t)i);
    for (int i = 0; i < CLIENTS; i++)
        join(clients[i]);
    CHECK_EQ(write(stop_event, &one, sizeof one), 8);
    join(server);
    printf("%d clients, %d turns each\n", CLIENTS, TURNS);
    return 0;
}
