/* SO_RCVTIMEO and SO_SNDTIMEO: EAGAIN when they expire, on every call that they cover. */
#include "fds.h"
#include <sys/uio.h>

static char big[8 << 20];

static void expires(int fd, ssize_t (*call)(int fd))
{
    int64_t begun = now_ns();
    CHECK_ERRNO(call(fd), EAGAIN);
    CHECK_LASTED(begun, 55);
}

static char byte;
static ssize_t by_recv(int fd) { return recv(fd, &byte, 1, 0); }
static ssize_t by_peek(int fd) { return recv(fd, &byte, 1, MSG_PEEK); }
static ssize_t by_waitall(int fd) { return recv(fd, big, 100, MSG_WAITALL); }
static ssize_t by_read(int fd) { return read(fd, &byte, 1); }
static ssize_t by_recvfrom(int fd) { return recvfrom(fd, &byte, 1, 0, NULL, NULL); }
static ssize_t by_accept(int fd) { return accept(fd, NULL, NULL); }
static ssize_t by_accept4(int fd) { return accept4(fd, NULL, NULL, SOCK_CLOEXEC); }

static ssize_t by_readv(int fd)
{
    struct iovec one = {&byte, 1};
    return readv(fd, &one, 1);
}

static ssize_t by_recvmsg(int fd)
{
    struct iovec one = {&byte, 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1};
    return recvmsg(fd, &message, 0);
}

static ssize_t (*const receivers[])(int) = {by_recv, by_peek, by_waitall, by_read, by_recvfrom, by_readv, by_recvmsg};

static void receiving(void)
{
    for (int kind = 0; kind < 3; kind++) {
        int fds[2];
        if (kind == 2)
            CHECK_SYS(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds));
        else
            (kind ? unix_pair : tcp_pair)(fds);
        set_timeout(fds[0], SO_RCVTIMEO, 60);
        for (size_t i = 0; i < sizeof receivers / sizeof *receivers; i++)
            expires(fds[0], receivers[i]);
        pthread_t writer = later(10, put_byte, fds[1]);
        CHECK_EQ(recv(fds[0], &byte, 1, 0), 1);
        join(writer);
        close_pair(fds);
    }
}

static void accepting(void)
{
    int listener = tcp_listener(4);
    set_timeout(listener, SO_RCVTIMEO, 60);
    expires(listener, by_accept);
    expires(listener, by_accept4);
    int client = tcp_connect(port_of(listener));
    int fd = accept(listener, NULL, NULL);
    CHECK_SYS(fd);
    struct timeval span;
    socklen_t size = sizeof span;
    CHECK_SYS(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &span, &size));
    printf("an accepted socket starts with a limit of %ld us\n", (long)(span.tv_sec * 1000000 + span.tv_usec));
    CHECK_SYS(close(client));
    CHECK_SYS(close(fd));
    CHECK_SYS(close(listener));
}

static void sending(void)
{
    for (int kind = 0; kind < 2; kind++) {
        int fds[2];
        (kind ? unix_pair : tcp_pair)(fds);
        set_timeout(fds[0], SO_SNDTIMEO, 60);
        int64_t begun = now_ns();
        ssize_t n = send(fds[0], big, sizeof big, 0);
        CHECK(n > 0 && n < (ssize_t)sizeof big);
        CHECK_LASTED(begun, 55);
        /* TCP may find some more room; in the end there is none. */
        do {
            begun = now_ns();
            n = write(fds[0], big, sizeof big);
            CHECK_LASTED(begun, 55);
        } while (n > 0);
        CHECK_EQ(n, -1);
        CHECK_EQ(errno, EAGAIN);
        /* Receiving on the same socket has no limit. */
        pthread_t writer = later(100, put_byte, fds[1]);
        CHECK_EQ(recv(fds[0], &byte, 1, 0), 1);
        join(writer);
        close_pair(fds);
    }
}

static void sending_datagrams(void)
{
    int fds[2], sent = 0;
    CHECK_SYS(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds));
    set_timeout(fds[0], SO_SNDTIMEO, 40);
    int64_t begun = now_ns();
    while (send(fds[0], big, 1000, 0) == 1000) {
        sent++;
        begun = now_ns();
    }
    CHECK_EQ(errno, EAGAIN);
    CHECK_LASTED(begun, 35);
    CHECK(sent > 0);
    close_pair(fds);
}

static void given_back(void)
{
    int fds[2];
    socklen_t size;
    long spans[] = {0, 20, 300, 1000, 1500, 70000, 1000000};
    unix_pair(fds);
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++)
        for (int which = 0; which < 2; which++) {
            int option = which ? SO_SNDTIMEO : SO_RCVTIMEO;
            struct timeval span = {-1, -1};
            set_timeout(fds[0], option, spans[i]);
            size = sizeof span;
            CHECK_SYS(getsockopt(fds[0], SOL_SOCKET, option, &span, &size));
            CHECK_EQ(size, sizeof span);
            CHECK_EQ(span.tv_sec * 1000 + span.tv_usec / 1000, spans[i]);
        }
    struct timeval wrong = {0, 1000000};
    CHECK_ERRNO(setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &wrong, sizeof wrong), EDOM);
    CHECK_ERRNO(setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &wrong, 3), EINVAL);
    CHECK_ERRNO(setsockopt(-1, SOL_SOCKET, SO_RCVTIMEO, &wrong, sizeof wrong), EBADF);
    int pipes[2];
    CHECK_SYS(pipe(pipes));
    CHECK_ERRNO(setsockopt(pipes[0], SOL_SOCKET, SO_RCVTIMEO, &wrong, sizeof wrong), ENOTSOCK);
    close_pair(pipes);
    close_pair(fds);
}

static void a_negative_limit_does_not_wait(void)
{
    int fds[2];
    struct timeval span = {-1, 0};
    unix_pair(fds);
    CHECK_SYS(setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &span, sizeof span));
    CHECK_ERRNO(recv(fds[0], &byte, 1, 0), EAGAIN);
    close_pair(fds);
}

static void taken_away_again(void)
{
    int fds[2];
    tcp_pair(fds);
    set_timeout(fds[0], SO_RCVTIMEO, 20);
    CHECK_ERRNO(recv(fds[0], &byte, 1, 0), EAGAIN);
    set_timeout(fds[0], SO_RCVTIMEO, 0);
    int64_t begun = now_ns();
    pthread_t writer = later(80, put_byte, fds[1]);
    CHECK_EQ(recv(fds[0], &byte, 1, 0), 1);
    CHECK_LASTED(begun, 75);
    join(writer);
    close_pair(fds);
}

static void lengthen(int fd) { set_timeout(fd, SO_RCVTIMEO, 100000); }
static void shorten(int fd) { set_timeout(fd, SO_RCVTIMEO, 1); }

/* A wait that has begun keeps the limit it began with. */
static void changed_while_waiting(void)
{
    int fds[2];
    unix_pair(fds);
    set_timeout(fds[0], SO_RCVTIMEO, 60);
    pthread_t changer = later(20, lengthen, fds[0]);
    int64_t begun = now_ns();
    CHECK_ERRNO(recv(fds[0], &byte, 1, 0), EAGAIN);
    CHECK_LASTED(begun, 55);
    join(changer);
    pthread_t again = later(20, shorten, fds[0]), writer = later(60, put_byte, fds[1]);
    CHECK_EQ(recv(fds[0], &byte, 1, 0), 1);
    join(again);
    join(writer);
    close_pair(fds);
}

static void *wait_in_vain(void *arg)
{
    int fd = *(int *)arg;
    int64_t begun = now_ns();
    char mine;
    CHECK_ERRNO(recv(fd, &mine, 1, 0), EAGAIN);
    CHECK_LASTED(begun, 55);
    return NULL;
}

static void many_wait_on_one(void)
{
    int fds[2];
    pthread_t threads[16];
    unix_pair(fds);
    set_timeout(fds[0], SO_RCVTIMEO, 60);
    for (int i = 0; i < 16; i++)
        threads[i] = start(wait_in_vain, &fds[0]);
    for (int i = 0; i < 16; i++)
        join(threads[i]);
    close_pair(fds);
}

/* poll and connect's own tests know the other limits; poll does not know these. */
static void poll_does_not_know_it(void)
{
    int fds[2];
    unix_pair(fds);
    set_timeout(fds[0], SO_RCVTIMEO, 10);
    struct pollfd watch = {fds[0], POLLIN, 0};
    pthread_t writer = later(50, put_byte, fds[1]);
    CHECK_EQ(poll(&watch, 1, -1), 1);
    join(writer);
    close_pair(fds);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    RUN(receiving);
    RUN(accepting);
    RUN(sending);
    RUN(sending_datagrams);
    RUN(given_back);
    RUN(a_negative_limit_does_not_wait);
    RUN(taken_away_again);
    RUN(changed_while_waiting);
    RUN(many_wait_on_one);
    RUN(poll_does_not_know_it);
    return 0;
}
