/* socketpair: two threads that talk in both directions, over each type, by each pair of calls. */
#include "fds.h"
#include <sys/uio.h>

enum { TURNS = 2000 };

static ssize_t take(int fd, void *bytes, size_t size, int how)
{
    struct iovec one = {bytes, size};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1};
    switch (how % 5) {
    case 0:
        return read(fd, bytes, size);
    case 1:
        return recv(fd, bytes, size, 0);
    case 2:
        return readv(fd, &one, 1);
    case 3:
        return recvmsg(fd, &message, 0);
    default:
        return recvfrom(fd, bytes, size, MSG_WAITALL, NULL, NULL);
    }
}

static ssize_t give(int fd, void *bytes, size_t size, int how)
{
    struct iovec one = {bytes, size};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1};
    switch (how % 5) {
    case 0:
        return write(fd, bytes, size);
    case 1:
        return send(fd, bytes, size, 0);
    case 2:
        return writev(fd, &one, 1);
    case 3:
        return sendmsg(fd, &message, 0);
    default:
        return sendto(fd, bytes, size, 0, NULL, 0);
    }
}

static void *echo_back(void *arg)
{
    int fd = *(int *)arg;
    long value;
    for (int turn = 0; turn < TURNS; turn++) {
        CHECK_EQ(take(fd, &value, sizeof value, turn), (int)sizeof value);
        CHECK_EQ(value, turn);
        value = -value;
        CHECK_EQ(give(fd, &value, sizeof value, turn / 5), (int)sizeof value);
    }
    return NULL;
}

static void ping_pong_over(int domain, int type)
{
    int fds[2];
    CHECK_SYS(socketpair(domain, type, 0, fds));
    pthread_t other = start(echo_back, &fds[1]);
    for (long turn = 0; turn < TURNS; turn++) {
        long value = turn;
        CHECK_EQ(give(fds[0], &value, sizeof value, (int)turn / 7), (int)sizeof value);
        CHECK_EQ(take(fds[0], &value, sizeof value, (int)turn / 3), (int)sizeof value);
        CHECK_EQ(value, -turn);
    }
    join(other);
    close_pair(fds);
}

static void over_streams(void) { ping_pong_over(AF_UNIX, SOCK_STREAM); }
static void over_datagrams(void) { ping_pong_over(AF_UNIX, SOCK_DGRAM); }
static void over_packets(void) { ping_pong_over(AF_UNIX, SOCK_SEQPACKET); }

static void *one_pair(void *arg)
{
    (void)arg;
    ping_pong_over(AF_UNIX, SOCK_STREAM);
    return NULL;
}

static void twenty_pairs_at_once(void)
{
    pthread_t threads[20];
    for (int i = 0; i < 20; i++)
        threads[i] = start(one_pair, NULL);
    for (int i = 0; i < 20; i++)
        join(threads[i]);
}

static void errors(void)
{
    int fds[2];
    CHECK_ERRNO(socketpair(AF_INET, SOCK_STREAM, 0, fds), EOPNOTSUPP);
    CHECK_ERRNO(socketpair(AF_UNIX, 77, 0, fds), EINVAL);
    CHECK_ERRNO(socketpair(12345, SOCK_STREAM, 0, fds), EAFNOSUPPORT);
    CHECK_ERRNO(socketpair(AF_UNIX, SOCK_STREAM, 0, bad_pointer()), EFAULT);
}

int main(void)
{
    RUN(over_streams);
    RUN(over_datagrams);
    RUN(over_packets);
    RUN(twenty_pairs_at_once);
    RUN(errors);
    return 0;
}
