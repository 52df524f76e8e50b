/* recvmsg and sendmsg: vectors, descriptors, credentials, msg_flags. */
#include "fds.h"
#include <sys/uio.h>

static void scatter_and_gather(void)
{
    int fds[2];
    char a[4], b[16];
    struct iovec out[] = {{"abc", 3}, {"", 0}, {"defgh", 5}}, in[] = {{a, 4}, {b, 16}};
    struct msghdr sent = {.msg_iov = out, .msg_iovlen = 3}, got = {.msg_iov = in, .msg_iovlen = 2};
    tcp_pair(fds);
    CHECK_EQ(sendmsg(fds[0], &sent, 0), 8);
    CHECK_EQ(recvmsg(fds[1], &got, MSG_WAITALL | MSG_DONTWAIT), 8);
    CHECK(memcmp(a, "abcd", 4) == 0 && memcmp(b, "efgh", 4) == 0);
    CHECK_EQ(got.msg_flags, 0);
    CHECK_ERRNO(recvmsg(fds[1], &got, MSG_DONTWAIT), EAGAIN);
    pthread_t writer = later(20, put_byte, fds[0]);
    CHECK_EQ(recvmsg(fds[1], &got, 0), 1);
    join(writer);
    pthread_t closer = later(20, close_it, fds[0]);
    CHECK_EQ(recvmsg(fds[1], &got, 0), 0);
    join(closer);
    CHECK_SYS(close(fds[1]));
}

static void a_big_message_is_complete_on(void (*pair)(int fds[2]))
{
    enum { PART = 700001, PARTS = 4 };
    int fds[2];
    struct iovec out[PARTS];
    char *data = malloc((size_t)PART * PARTS);
    fill(data, (size_t)PART * PARTS, 3, 0);
    for (int i = 0; i < PARTS; i++)
        out[i] = (struct iovec){data + (size_t)i * PART, PART};
    struct msghdr message = {.msg_iov = out, .msg_iovlen = PARTS};
    pair(fds);
    struct drain drain = {fds[0], 3, 0};
    pthread_t reader = start(drain_body, &drain);
    CHECK_EQ(sendmsg(fds[1], &message, 0), PART * PARTS);
    CHECK(message.msg_iov == out && message.msg_iovlen == PARTS);
    for (int i = 0; i < PARTS; i++)
        CHECK(out[i].iov_base == data + (size_t)i * PART && out[i].iov_len == PART);
    CHECK_SYS(close(fds[1]));
    join(reader);
    CHECK_EQ(drain.total, PART * PARTS);
    CHECK_SYS(close(fds[0]));
    free(data);
}

static void a_big_message_is_complete(void)
{
    a_big_message_is_complete_on(tcp_pair);
    a_big_message_is_complete_on(unix_pair);
}

static char buffer[1000];
static void put_600(int fd) { CHECK_EQ(send(fd, buffer + 400, 600, 0), 600); }

static void waitall_over_vectors_on(void (*pair)(int fds[2]))
{
    int fds[2];
    char a[300], b[300], c[400];
    struct iovec in[] = {{a, 300}, {b, 300}, {c, 400}};
    struct msghdr message = {.msg_iov = in, .msg_iovlen = 3};
    pair(fds);
    fill(buffer, 1000, 4, 0);
    CHECK_EQ(send(fds[1], buffer, 400, 0), 400);
    pthread_t writer = later(30, put_600, fds[1]);
    CHECK_EQ(recvmsg(fds[0], &message, MSG_WAITALL), 1000);
    check_fill(a, 300, 4, 0);
    check_fill(b, 300, 4, 300);
    check_fill(c, 400, 4, 600);
    CHECK(in[0].iov_base == a && in[0].iov_len == 300 && in[1].iov_len == 300 && in[2].iov_len == 400);
    join(writer);
    close_pair(fds);
}

static void waitall_over_vectors(void)
{
    waitall_over_vectors_on(tcp_pair);
    waitall_over_vectors_on(unix_pair);
}

/* ---- ancillary data ---- */

union control {
    char bytes[256];
    struct cmsghdr align;
};

static void send_fds(int via, const int *fds, int count, char byte)
{
    union control control = {{0}};
    struct iovec one = {&byte, 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = control.bytes,
                             .msg_controllen = CMSG_SPACE((size_t)count * sizeof(int))};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
    memcpy(CMSG_DATA(header), fds, (size_t)count * sizeof(int));
    CHECK_EQ(sendmsg(via, &message, 0), 1);
}

/* Receives up to `room` descriptors; returns how many came. */
static int receive_fds(int via, int *fds, int room, int flags, int *msg_flags)
{
    union control control;
    char byte;
    struct iovec one = {&byte, 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = control.bytes,
                             .msg_controllen = CMSG_LEN((size_t)room * sizeof(int))};
    CHECK_EQ(recvmsg(via, &message, flags), 1);
    *msg_flags = message.msg_flags;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header == NULL)
        return 0;
    CHECK_EQ(header->cmsg_level, SOL_SOCKET);
    CHECK_EQ(header->cmsg_type, SCM_RIGHTS);
    int count = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(fds, CMSG_DATA(header), (size_t)count * sizeof(int));
    return count;
}

static int pass_this[2];
static void pass_it(int via) { send_fds(via, pass_this, 2, 'f'); }

static void descriptors_travel(void)
{
    int via[2], came[2], flags;
    char byte;
    unix_pair(via);
    CHECK_SYS(pipe(pass_this));
    pthread_t sender = later(20, pass_it, via[0]);
    CHECK_EQ(receive_fds(via[1], came, 2, MSG_CMSG_CLOEXEC, &flags), 2);
    join(sender);
    CHECK_EQ(flags & ~MSG_CMSG_CLOEXEC, 0);
    CHECK_EQ(fcntl(came[0], F_GETFD), FD_CLOEXEC);
    CHECK_EQ(fcntl(pass_this[0], F_GETFD), 0);
    close_pair(pass_this);
    pthread_t writer = later(20, put_byte, came[1]);
    CHECK_EQ(read(came[0], &byte, 1), 1);
    join(writer);
    pthread_t closer = later(20, close_it, came[1]);
    CHECK_EQ(read(came[0], &byte, 1), 0);
    join(closer);
    CHECK_SYS(close(came[0]));
    close_pair(via);
}

/* A number that was closed and comes back as another kind of descriptor. */
static void received_numbers_are_new(void)
{
    int via[2], came, flags;
    char byte;
    unix_pair(via);
    for (int round = 0; round < 200; round++) {
        int fds[2];
        if (round % 2)
            unix_pair(fds);
        else
            CHECK_SYS(pipe(fds));
        send_fds(via[0], &fds[0], 1, 'f');
        CHECK_SYS(close(fds[0]));
        CHECK_EQ(receive_fds(via[1], &came, 1, 0, &flags), 1);
        CHECK_EQ(came, fds[0]);
        pthread_t writer = later(0, put_byte, fds[1]);
        CHECK_EQ(read(came, &byte, 1), 1);
        join(writer);
        CHECK_SYS(close(came));
        CHECK_SYS(close(fds[1]));
    }
    close_pair(via);
}

static void no_room_for_descriptors(void)
{
    int via[2], fds[2], came[2], flags;
    unix_pair(via);
    CHECK_SYS(pipe(fds));
    send_fds(via[0], fds, 2, 'f');
    CHECK_EQ(receive_fds(via[1], came, 1, 0, &flags), 1);
    CHECK_EQ(flags, MSG_CTRUNC);
    CHECK_SYS(close(came[0]));
    send_fds(via[0], fds, 2, 'f');
    CHECK_EQ(read(via[1], &flags, 1), 1);
    close_pair(fds);
    close_pair(via);
}

static void credentials(void)
{
    int via[2], on = 1;
    char byte;
    union control control;
    struct iovec one = {&byte, 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = control.bytes,
                             .msg_controllen = sizeof control};
    struct ucred who;
    unix_pair(via);
    CHECK_SYS(setsockopt(via[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
    pthread_t writer = later(20, put_byte, via[0]);
    CHECK_EQ(recvmsg(via[1], &message, 0), 1);
    join(writer);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    CHECK(header != NULL);
    CHECK_EQ(header->cmsg_type, SCM_CREDENTIALS);
    memcpy(&who, CMSG_DATA(header), sizeof who);
    CHECK_EQ(who.pid, getpid());
    CHECK_EQ(who.uid, getuid());
    CHECK_EQ(who.gid, getgid());
    CHECK(CMSG_NXTHDR(&message, header) == NULL);
    close_pair(via);
}

/* ---- flags and addresses ---- */

static void datagram_flags(void)
{
    int fds[2];
    char small[4];
    struct iovec one = {small, 4};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1};
    CHECK_SYS(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds));
    CHECK_EQ(send(fds[0], "0123456789", 10, 0), 10);
    CHECK_EQ(recvmsg(fds[1], &message, 0), 4);
    CHECK_EQ(message.msg_flags, MSG_TRUNC);
    CHECK_EQ(send(fds[0], "0123456789", 10, 0), 10);
    CHECK_EQ(recvmsg(fds[1], &message, MSG_TRUNC), 10);
    CHECK_EQ(send(fds[0], "0123", 4, 0), 4);
    CHECK_EQ(recvmsg(fds[1], &message, 0), 4);
    CHECK_EQ(message.msg_flags, 0);
    close_pair(fds);
    CHECK_SYS(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds));
    CHECK_EQ(send(fds[0], "0123456789", 10, MSG_EOR), 10);
    CHECK_EQ(recvmsg(fds[1], &message, 0), 4);
    CHECK_EQ(message.msg_flags & MSG_TRUNC, MSG_TRUNC);
    pthread_t writer = later(20, put_byte, fds[0]);
    CHECK_EQ(recvmsg(fds[1], &message, MSG_WAITALL), 1);
    join(writer);
    pthread_t closer = later(20, close_it, fds[0]);
    CHECK_EQ(recvmsg(fds[1], &message, 0), 0);
    join(closer);
    CHECK_SYS(close(fds[1]));
}

static void names_of_udp(void)
{
    int receiver = bound(SOCK_DGRAM), sender = bound(SOCK_DGRAM);
    struct sockaddr_in to = loopback(port_of(receiver)), from;
    char bytes[8];
    struct iovec out = {"ab", 2}, in = {bytes, 8};
    struct msghdr sent = {.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &out, .msg_iovlen = 1};
    struct msghdr got = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &in, .msg_iovlen = 1};
    CHECK_EQ(sendmsg(sender, &sent, 0), 2);
    CHECK_EQ(recvmsg(receiver, &got, 0), 2);
    CHECK_EQ(got.msg_namelen, sizeof from);
    CHECK_EQ(from.sin_port, htons((uint16_t)port_of(sender)));
    CHECK_SYS(close(receiver));
    CHECK_SYS(close(sender));
}

static void errors(void)
{
    int fds[2];
    char byte = 0;
    struct iovec one = {&byte, 1}, bad = {bad_pointer(), 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1};
    CHECK_SYS(pipe(fds));
    CHECK_ERRNO(sendmsg(fds[1], &message, 0), ENOTSOCK);
    CHECK_ERRNO(recvmsg(fds[0], &message, 0), ENOTSOCK);
    close_pair(fds);
    CHECK_ERRNO(sendmsg(fds[1], &message, 0), EBADF);
    CHECK_ERRNO(recvmsg(-1, &message, 0), EBADF);
    unix_pair(fds);
    message.msg_iovlen = 1025;
    CHECK_ERRNO(sendmsg(fds[0], &message, 0), EMSGSIZE);
    message.msg_iovlen = 1;
    message.msg_iov = &bad;
    CHECK_ERRNO(sendmsg(fds[0], &message, 0), EFAULT);
    message.msg_iov = &one;
    CHECK_SYS(close(fds[1]));
    CHECK_ERRNO(sendmsg(fds[0], &message, MSG_NOSIGNAL), EPIPE);
    CHECK_SYS(close(fds[0]));
}

int main(void)
{
    RUN(scatter_and_gather);
    RUN(a_big_message_is_complete);
    RUN(waitall_over_vectors);
    RUN(descriptors_travel);
    RUN(received_numbers_are_new);
    RUN(no_room_for_descriptors);
    RUN(credentials);
    RUN(datagram_flags);
    RUN(names_of_udp);
    RUN(errors);
    return 0;
}
