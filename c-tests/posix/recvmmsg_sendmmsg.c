/* recvmmsg and sendmmsg: many datagrams a call, MSG_WAITFORONE, the time limit that is looked at between datagrams. */
#include "fds.h"
#include <sys/uio.h>

enum { COUNT = 5 };

struct batch {
    char bytes[COUNT][16];
    struct iovec vectors[COUNT];
    struct mmsghdr messages[COUNT];
};

static void prepare(struct batch *batch)
{
    memset(batch, 0, sizeof *batch);
    for (int i = 0; i < COUNT; i++) {
        batch->vectors[i] = (struct iovec){batch->bytes[i], 16};
        batch->messages[i].msg_hdr.msg_iov = &batch->vectors[i];
        batch->messages[i].msg_hdr.msg_iovlen = 1;
    }
}

static void pair(int fds[2]) { CHECK_SYS(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds)); }

static void send_count(int fd, int count)
{
    struct batch batch;
    prepare(&batch);
    for (int i = 0; i < count; i++) {
        batch.vectors[i].iov_len = (size_t)(i + 1);
        memset(batch.bytes[i], 'a' + i, 16);
    }
    CHECK_EQ(sendmmsg(fd, batch.messages, (unsigned)count, 0), count);
    for (int i = 0; i < count; i++)
        CHECK_EQ(batch.messages[i].msg_len, i + 1);
}

static void send_three(int fd) { send_count(fd, 3); }
static void send_two(int fd) { send_count(fd, 2); }

static void all_at_once(void)
{
    int fds[2];
    struct batch batch;
    pair(fds);
    send_count(fds[0], COUNT);
    prepare(&batch);
    CHECK_EQ(recvmmsg(fds[1], batch.messages, COUNT, 0, NULL), COUNT);
    for (int i = 0; i < COUNT; i++) {
        CHECK_EQ(batch.messages[i].msg_len, i + 1);
        CHECK_EQ(batch.bytes[i][0], 'a' + i);
    }
    close_pair(fds);
}

static void waits_for_all(void)
{
    int fds[2];
    struct batch batch;
    pair(fds);
    send_count(fds[0], 2);
    prepare(&batch);
    int64_t begun = now_ns();
    pthread_t sender = later(30, send_three, fds[0]);
    CHECK_EQ(recvmmsg(fds[1], batch.messages, COUNT, 0, NULL), COUNT);
    CHECK_LASTED(begun, 25);
    CHECK_EQ(batch.messages[1].msg_len, 2);
    CHECK_EQ(batch.messages[4].msg_len, 3);
    join(sender);
    close_pair(fds);
}

static void waits_for_one(void)
{
    int fds[2];
    struct batch batch;
    pair(fds);
    send_count(fds[0], 2);
    prepare(&batch);
    CHECK_EQ(recvmmsg(fds[1], batch.messages, COUNT, MSG_WAITFORONE, NULL), 2);
    pthread_t sender = later(20, put_byte, fds[0]);
    CHECK_EQ(recvmmsg(fds[1], batch.messages, COUNT, MSG_WAITFORONE, NULL), 1);
    join(sender);
    CHECK_ERRNO(recvmmsg(fds[1], batch.messages, COUNT, MSG_DONTWAIT, NULL), EAGAIN);
    send_count(fds[0], 2);
    CHECK_EQ(recvmmsg(fds[1], batch.messages, COUNT, MSG_DONTWAIT, NULL), 2);
    close_pair(fds);
}

/* The limit ends the call when a datagram comes after it, and not before. */
static void time_limit(void)
{
    int fds[2];
    struct batch batch;
    struct timespec limit = {0, 10000000};
    pair(fds);
    prepare(&batch);
    pthread_t sender = later(40, send_two, fds[0]);
    CHECK_EQ(recvmmsg(fds[1], batch.messages, COUNT, 0, &limit), 1);
    CHECK_EQ(limit.tv_sec, 0);
    CHECK_EQ(limit.tv_nsec, 0);
    join(sender);
    limit = (struct timespec){0, 2000000000};
    CHECK_ERRNO(recvmmsg(fds[1], batch.messages, COUNT, 0, &limit), EINVAL);
    limit = (struct timespec){100, 0};
    CHECK_EQ(recvmmsg(fds[1], batch.messages, 1, 0, &limit), 1);
    CHECK(limit.tv_sec > 50);
    close_pair(fds);
}

static void receive_timeout(void)
{
    int fds[2];
    struct batch batch;
    pair(fds);
    set_timeout(fds[1], SO_RCVTIMEO, 50);
    prepare(&batch);
    int64_t begun = now_ns();
    CHECK_ERRNO(recvmmsg(fds[1], batch.messages, COUNT, 0, NULL), EAGAIN);
    CHECK_LASTED(begun, 45);
    send_count(fds[0], 2);
    CHECK_EQ(recvmmsg(fds[1], batch.messages, COUNT, 0, NULL), 2);
    close_pair(fds);
}

static void *drain_datagrams(void *fd)
{
    char bytes[16];
    sleep_ms(20);
    for (int i = 0; i < 200 * COUNT; i++)
        CHECK_EQ(recv(*(int *)fd, bytes, 16, 0), i % COUNT + 1);
    return NULL;
}

/* A unix datagram socket takes a few datagrams, then its sender waits. */
static void sendmmsg_waits_for_room(void)
{
    int fds[2];
    pair(fds);
    pthread_t reader = start(drain_datagrams, &fds[1]);
    for (int i = 0; i < 200; i++)
        send_count(fds[0], COUNT);
    join(reader);
    close_pair(fds);
}

static void partial_and_errors(void)
{
    int fds[2];
    struct batch batch;
    pair(fds);
    prepare(&batch);
    batch.vectors[2].iov_base = bad_pointer();
    CHECK_EQ(sendmmsg(fds[0], batch.messages, COUNT, 0), 2);
    CHECK_ERRNO(sendmmsg(fds[0], batch.messages + 2, COUNT - 2, 0), EFAULT);
    CHECK_EQ(sendmmsg(fds[0], batch.messages, 0, 0), 0);
    CHECK_EQ(recvmmsg(fds[1], batch.messages, 0, 0, NULL), 0);
    CHECK_ERRNO(recvmmsg(-1, batch.messages, COUNT, 0, NULL), EBADF);
    CHECK_ERRNO(sendmmsg(-1, batch.messages, COUNT, 0), EBADF);
    close_pair(fds);
    CHECK_SYS(pipe(fds));
    CHECK_ERRNO(recvmmsg(fds[0], batch.messages, COUNT, 0, NULL), ENOTSOCK);
    CHECK_ERRNO(sendmmsg(fds[1], batch.messages, COUNT, 0), ENOTSOCK);
    close_pair(fds);
}

int main(void)
{
    RUN(all_at_once);
    RUN(waits_for_all);
    RUN(waits_for_one);
    RUN(time_limit);
    RUN(receive_timeout);
    RUN(sendmmsg_waits_for_room);
    RUN(partial_and_errors);
    return 0;
}
