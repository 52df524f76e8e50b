/* Unix datagram sockets: boundaries, names, a full receiver that makes its senders wait, one that goes away. */
#include "fds.h"
#include <stddef.h>

static void pair(int fds[2]) { CHECK_SYS(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds)); }

static void boundaries_and_waiting(void)
{
    int fds[2];
    char bytes[16];
    pair(fds);
    CHECK_EQ(send(fds[0], "abc", 3, 0), 3);
    CHECK_EQ(write(fds[0], "", 0), 0);
    CHECK_EQ(send(fds[0], "", 0, 0), 0);
    CHECK_EQ(write(fds[0], "defg", 4), 4);
    CHECK_EQ(read(fds[1], bytes, 2), 2);
    for (int i = 0;; i++) {
        ssize_t n = recv(fds[1], bytes, 16, 0);
        if (n == 4)
            break;
        CHECK_EQ(n, 0);
        CHECK(i < 3);
    }
    int64_t begun = now_ns();
    pthread_t writer = later(30, put_byte, fds[0]);
    CHECK_EQ(recv(fds[1], bytes, 16, 0), 1);
    CHECK_LASTED(begun, 25);
    join(writer);
    close_pair(fds);
}

enum { SENDERS = 4, EACH = 500 };
static struct sockaddr_un name;
static socklen_t name_size;

static void *send_numbers(void *arg)
{
    int numbers[2] = {(int)(intptr_t)arg, 0}, fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    for (; numbers[1] < EACH; numbers[1]++)
        CHECK_EQ(sendto(fd, numbers, sizeof numbers, 0, (struct sockaddr *)&name, name_size), (int)sizeof numbers);
    CHECK_SYS(close(fd));
    return NULL;
}

/* The receiver's queue holds a handful: senders that are not connected wait for room as well. */
static void full_receiver(void)
{
    char dir[64];
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0), next[SENDERS] = {0}, numbers[2];
    pthread_t senders[SENDERS];
    temp_dir(dir);
    name = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof name.sun_path, "%s/socket", dir);
    name_size = sizeof name;
    CHECK_SYS(bind(fd, (struct sockaddr *)&name, name_size));
    for (int i = 0; i < SENDERS; i++)
        senders[i] = start(send_numbers, (void *)(intptr_t)i);
    sleep_ms(20);
    for (int i = 0; i < SENDERS * EACH; i++) {
        CHECK_EQ(recv(fd, numbers, sizeof numbers, 0), (int)sizeof numbers);
        CHECK_EQ(numbers[1], next[numbers[0]]++);
    }
    for (int i = 0; i < SENDERS; i++)
        join(senders[i]);
    CHECK_SYS(close(fd));
    CHECK_SYS(unlink(name.sun_path));
    CHECK_SYS(rmdir(dir));
}

static void receiver_goes_away(void)
{
    int fds[2];
    char bytes[100] = "";
    pair(fds);
    set_nonblock(fds[0], true);
    while (send(fds[0], bytes, sizeof bytes, 0) > 0)
        ;
    CHECK_EQ(errno, EAGAIN);
    set_nonblock(fds[0], false);
    pthread_t closer = later(30, close_it, fds[1]);
    CHECK_ERRNO(send(fds[0], bytes, sizeof bytes, MSG_NOSIGNAL), ECONNREFUSED);
    join(closer);
    CHECK_ERRNO(send(fds[0], "x", 1, MSG_NOSIGNAL), ENOTCONN);
    CHECK_SYS(close(fds[0]));
}

static void names(void)
{
    struct sockaddr_un autobind = {.sun_family = AF_UNIX}, from;
    socklen_t size = sizeof autobind, from_size = sizeof from;
    char bytes[16];
    int receiver = socket(AF_UNIX, SOCK_DGRAM, 0), sender = socket(AF_UNIX, SOCK_DGRAM, 0);
    CHECK_SYS(bind(receiver, (struct sockaddr *)&autobind, sizeof(sa_family_t)));
    CHECK_SYS(bind(sender, (struct sockaddr *)&autobind, sizeof(sa_family_t)));
    CHECK_SYS(getsockname(receiver, (struct sockaddr *)&autobind, &size));
    CHECK_EQ(sendto(sender, "hi", 2, 0, (struct sockaddr *)&autobind, size), 2);
    CHECK_EQ(recvfrom(receiver, bytes, 16, 0, (struct sockaddr *)&from, &from_size), 2);
    CHECK_EQ(from_size, offsetof(struct sockaddr_un, sun_path) + 6);
    CHECK_EQ(sendto(receiver, "back", 4, 0, (struct sockaddr *)&from, from_size), 4);
    CHECK_EQ(recv(sender, bytes, 16, 0), 4);
    CHECK_ERRNO(send(sender, "x", 1, 0), ENOTCONN);
    CHECK_SYS(close(receiver));
    CHECK_ERRNO(sendto(sender, "hi", 2, 0, (struct sockaddr *)&autobind, size), ECONNREFUSED);
    CHECK_SYS(close(sender));
}

static void too_large(void)
{
    int fds[2];
    static char big[1 << 20];
    pair(fds);
    CHECK_ERRNO(send(fds[0], big, sizeof big, 0), EMSGSIZE);
    close_pair(fds);
}

static void sequenced_packets(void)
{
    int fds[2];
    char bytes[16];
    CHECK_SYS(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds));
    CHECK_EQ(send(fds[0], "abc", 3, 0), 3);
    CHECK_EQ(send(fds[0], "de", 2, 0), 2);
    CHECK_EQ(recv(fds[1], bytes, 2, 0), 2);
    CHECK_EQ(recv(fds[1], bytes, 16, MSG_WAITALL), 2);
    pthread_t writer = later(20, put_byte, fds[0]);
    CHECK_EQ(read(fds[1], bytes, 16), 1);
    join(writer);
    pthread_t closer = later(20, close_it, fds[0]);
    CHECK_EQ(recv(fds[1], bytes, 16, 0), 0);
    join(closer);
    CHECK_ERRNO(send(fds[1], "x", 1, MSG_NOSIGNAL), EPIPE);
    CHECK_SYS(close(fds[1]));
}

int main(void)
{
    RUN(boundaries_and_waiting);
    RUN(full_receiver);
    RUN(receiver_goes_away);
    RUN(names);
    RUN(too_large);
    RUN(sequenced_packets);
    return 0;
}
