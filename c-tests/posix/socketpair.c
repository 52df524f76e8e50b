/* socketpair: kinds, flags, errors, and many pairs of threads that talk. */
#include "fds.h"

static void kinds_and_flags(void)
{
    int fds[2];
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
    for (int i = 0; i < 3; i++) {
        CHECK_SYS(socketpair(AF_UNIX, types[i], 0, fds));
        CHECK_EQ(fcntl(fds[0], F_GETFL), O_RDWR);
        CHECK_EQ(fcntl(fds[1], F_GETFD), 0);
        close_pair(fds);
        CHECK_SYS(socketpair(AF_UNIX, types[i] | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
        CHECK_EQ(fcntl(fds[0], F_GETFL), O_RDWR | O_NONBLOCK);
        CHECK_EQ(fcntl(fds[1], F_GETFL), O_RDWR | O_NONBLOCK);
        CHECK_EQ(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
        char byte;
        CHECK_ERRNO(recv(fds[0], &byte, 1, 0), EAGAIN);
        CHECK_ERRNO(read(fds[1], &byte, 1), EAGAIN);
        close_pair(fds);
    }
}

static void errors(void)
{
    int fds[2];
    CHECK_ERRNO(socketpair(AF_INET, SOCK_STREAM, 0, fds), EOPNOTSUPP);
    CHECK_ERRNO(socketpair(12345, SOCK_STREAM, 0, fds), EAFNOSUPPORT);
    CHECK_ERRNO(socketpair(AF_UNIX, SOCK_STREAM, 99, fds), EPROTONOSUPPORT);
    CHECK_ERRNO(socketpair(AF_UNIX, 77, 0, fds), EINVAL);
    CHECK_ERRNO(socketpair(AF_UNIX, SOCK_STREAM, 0, bad_pointer()), EFAULT);
}

static void packets_keep_their_bounds(void)
{
    static const int types[] = {SOCK_DGRAM, SOCK_SEQPACKET};
    int fds[2];
    char buffer[100];
    for (int i = 0; i < 2; i++) {
        CHECK_SYS(socketpair(AF_UNIX, types[i], 0, fds));
        CHECK_EQ(write(fds[0], "first", 5), 5);
        CHECK_EQ(write(fds[0], "second one", 10), 10);
        CHECK_EQ(write(fds[0], "third", 5), 5);
        CHECK_EQ(read(fds[1], buffer, sizeof buffer), 5);
        CHECK_EQ(read(fds[1], buffer, 3), 3);
        CHECK(memcmp(buffer, "sec", 3) == 0);
        CHECK_EQ(recv(fds[1], buffer, 2, MSG_TRUNC), 5);
        pthread_t writer = later(20, put_byte, fds[0]);
        CHECK_EQ(recv(fds[1], buffer, sizeof buffer, MSG_WAITALL), 1);
        join(writer);
        close_pair(fds);
    }
}

static void the_ends_of_packets(void)
{
    int fds[2];
    char byte;
    CHECK_SYS(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds));
    pthread_t closer = later(20, close_it, fds[0]);
    CHECK_EQ(read(fds[1], &byte, 1), 0);
    join(closer);
    CHECK_ERRNO(write(fds[1], "x", 1), EPIPE);
    CHECK_SYS(close(fds[1]));
    CHECK_SYS(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds));
    CHECK_SYS(close(fds[0]));
    CHECK_ERRNO(write(fds[1], "x", 1), ECONNREFUSED);
    CHECK_SYS(close(fds[1]));
}

enum { PAIRS = 250, TURNS = 40 };

static void *serve(void *arg)
{
    int fd = *(int *)arg, number;
    for (int i = 0; i < TURNS; i++) {
        CHECK_EQ(read(fd, &number, sizeof number), (int)sizeof number);
        number++;
        CHECK_EQ(write(fd, &number, sizeof number), (int)sizeof number);
    }
    return NULL;
}

static void *rally(void *arg)
{
    int fd = *(int *)arg, number = fd * 1000, first = number;
    for (int i = 0; i < TURNS; i++) {
        CHECK_EQ(write(fd, &number, sizeof number), (int)sizeof number);
        CHECK_EQ(read(fd, &number, sizeof number), (int)sizeof number);
    }
    CHECK_EQ(number, first + TURNS);
    return NULL;
}

static void many_rallies(void)
{
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
    static int fds[PAIRS][2];
    pthread_t threads[PAIRS][2];
    for (int i = 0; i < PAIRS; i++) {
        CHECK_SYS(socketpair(AF_UNIX, types[i % 3], 0, fds[i]));
        threads[i][0] = start(serve, &fds[i][0]);
        threads[i][1] = start(rally, &fds[i][1]);
    }
    for (int i = 0; i < PAIRS; i++) {
        join(threads[i][0]);
        join(threads[i][1]);
        close_pair(fds[i]);
    }
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    raise_files();
    RUN(kinds_and_flags);
    RUN(errors);
    RUN(packets_keep_their_bounds);
    RUN(the_ends_of_packets);
    RUN(many_rallies);
    return 0;
}
