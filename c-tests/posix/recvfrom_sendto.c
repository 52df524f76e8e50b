/* recvfrom and sendto on UDP: boundaries, truncation, addresses, errors. */
#include "fds.h"

static void put_datagram(int fd) { CHECK_EQ(send(fd, "later", 5, 0), 5); }

/* Two UDP sockets, each connected to the other. */
static void udp_pair(int fds[2])
{
    fds[0] = bound(SOCK_DGRAM);
    fds[1] = bound(SOCK_DGRAM);
    for (int i = 0; i < 2; i++) {
        struct sockaddr_in peer = loopback(port_of(fds[1 - i]));
        CHECK_SYS(connect(fds[i], (struct sockaddr *)&peer, sizeof peer));
    }
}

static void recvfrom_waits_and_names_the_sender(void)
{
    int receiver = bound(SOCK_DGRAM), sender = bound(SOCK_DGRAM);
    struct sockaddr_in to = loopback(port_of(receiver)), from;
    socklen_t size = sizeof from;
    char bytes[16];
    CHECK_SYS(connect(sender, (struct sockaddr *)&to, sizeof to));
    int64_t begun = now_ns();
    pthread_t writer = later(30, put_datagram, sender);
    CHECK_EQ(recvfrom(receiver, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &size), 5);
    CHECK_LASTED(begun, 25);
    CHECK_EQ(size, sizeof from);
    CHECK_EQ(from.sin_family, AF_INET);
    CHECK_EQ(from.sin_port, htons((uint16_t)port_of(sender)));
    CHECK_EQ(from.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    join(writer);
    CHECK_SYS(close(receiver));
    CHECK_SYS(close(sender));
}

static void boundaries_stay(void)
{
    int fds[2];
    char bytes[16];
    udp_pair(fds);
    CHECK_EQ(send(fds[0], "one", 3, 0), 3);
    CHECK_EQ(send(fds[0], "", 0, 0), 0);
    CHECK_EQ(write(fds[0], "three", 5), 5);
    CHECK_EQ(recv(fds[1], bytes, 16, 0), 3);
    CHECK_EQ(recv(fds[1], bytes, 16, 0), 0);
    CHECK_EQ(read(fds[1], bytes, 16), 5);
    CHECK_ERRNO(recv(fds[1], bytes, 16, MSG_DONTWAIT), EAGAIN);
    close_pair(fds);
}

static void the_rest_is_lost(void)
{
    int fds[2];
    char bytes[16];
    udp_pair(fds);
    CHECK_EQ(send(fds[0], "0123456789", 10, 0), 10);
    CHECK_EQ(send(fds[0], "0123456789", 10, 0), 10);
    CHECK_EQ(send(fds[0], "next", 4, 0), 4);
    CHECK_EQ(recv(fds[1], bytes, 4, MSG_PEEK), 4);
    CHECK_EQ(recv(fds[1], bytes, 4, MSG_PEEK | MSG_TRUNC), 10);
    CHECK_EQ(recv(fds[1], bytes, 4, 0), 4);
    CHECK_EQ(recv(fds[1], bytes, 4, MSG_TRUNC), 10);
    CHECK_EQ(recv(fds[1], bytes, 16, MSG_WAITALL), 4);
    CHECK(memcmp(bytes, "next", 4) == 0);
    close_pair(fds);
}

static void trunc_waits_too(void)
{
    int fds[2];
    char bytes[16];
    udp_pair(fds);
    pthread_t writer = later(20, put_datagram, fds[1]);
    CHECK_EQ(recv(fds[0], bytes, 2, MSG_TRUNC), 5);
    join(writer);
    close_pair(fds);
}

static void address_forms(void)
{
    int receiver = bound(SOCK_DGRAM), sender = bound(SOCK_DGRAM);
    struct sockaddr_in to = loopback(port_of(receiver)), from = {0};
    socklen_t size = 4;
    char bytes[16];
    for (int i = 0; i < 4; i++)
        CHECK_EQ(sendto(sender, "x", 1, 0, (struct sockaddr *)&to, sizeof to), 1);
    CHECK_EQ(recvfrom(receiver, bytes, 16, 0, NULL, NULL), 1);
    CHECK_EQ(recvfrom(receiver, bytes, 16, 0, (struct sockaddr *)&from, &size), 1);
    CHECK_EQ(size, sizeof from);
    CHECK_EQ(from.sin_port, htons((uint16_t)port_of(sender)));
    CHECK_EQ(from.sin_addr.s_addr, 0);
    size = 0;
    CHECK_EQ(recvfrom(receiver, bytes, 16, 0, (struct sockaddr *)&from, &size), 1);
    CHECK_EQ(size, sizeof from);
    size = (socklen_t)-1;
    CHECK_ERRNO(recvfrom(receiver, bytes, 16, 0, (struct sockaddr *)&from, &size), EINVAL);
    CHECK_SYS(close(receiver));
    CHECK_SYS(close(sender));
}

static void a_stream_has_no_sender(void)
{
    int fds[2];
    struct sockaddr_in from = {.sin_port = 77};
    socklen_t size = sizeof from;
    char byte;
    tcp_pair(fds);
    pthread_t writer = later(20, put_byte, fds[1]);
    CHECK_EQ(recvfrom(fds[0], &byte, 1, 0, (struct sockaddr *)&from, &size), 1);
    CHECK_EQ(size, 0);
    CHECK_EQ(from.sin_port, 77);
    join(writer);
    struct sockaddr_in to = loopback(9);
    CHECK_EQ(sendto(fds[0], "y", 1, 0, (struct sockaddr *)&to, sizeof to), 1);
    CHECK_EQ(recv(fds[1], &byte, 1, 0), 1);
    close_pair(fds);
}

static void nobody_listens(void)
{
    int gone = bound(SOCK_DGRAM), fd = bound(SOCK_DGRAM);
    struct sockaddr_in to = loopback(port_of(gone));
    char byte;
    CHECK_SYS(close(gone));
    CHECK_EQ(sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof to), 1);
    CHECK_ERRNO(recv(fd, &byte, 1, MSG_DONTWAIT), EAGAIN);
    CHECK_SYS(connect(fd, (struct sockaddr *)&to, sizeof to));
    pthread_t writer = later(20, put_byte, fd);
    CHECK_ERRNO(recv(fd, &byte, 1, 0), ECONNREFUSED);
    join(writer);
    CHECK_EQ(send(fd, "x", 1, 0), 1);
    CHECK_ERRNO(send(fd, "x", 1, 0), ECONNREFUSED);
    CHECK_SYS(close(fd));
}

static void errors(void)
{
    static char big[70000];
    int fd = bound(SOCK_DGRAM);
    struct sockaddr_in to = loopback(9);
    CHECK_ERRNO(send(fd, "x", 1, 0), EDESTADDRREQ);
    CHECK_ERRNO(sendto(fd, big, sizeof big, 0, (struct sockaddr *)&to, sizeof to), EMSGSIZE);
    CHECK_ERRNO(sendto(fd, "x", 1, 0, (struct sockaddr *)&to, 3), EINVAL);
    to.sin_family = AF_UNIX;
    CHECK_ERRNO(sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof to), EAFNOSUPPORT);
    CHECK_ERRNO(sendto(-1, "x", 1, 0, (struct sockaddr *)&to, sizeof to), EBADF);
    CHECK_ERRNO(recvfrom(-1, big, 1, 0, NULL, NULL), EBADF);
    CHECK_ERRNO(sendto(0x7ffffff, "x", 1, 0, NULL, 0), EBADF);
    CHECK_SYS(close(fd));
}

static void shutdown_wakes_the_receiver(void)
{
    int fds[2];
    char byte;
    udp_pair(fds);
    pthread_t closer = later(20, shut_read, fds[0]);
    CHECK_EQ(recv(fds[0], &byte, 1, 0), 0);
    join(closer);
    close_pair(fds);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    RUN(recvfrom_waits_and_names_the_sender);
    RUN(boundaries_stay);
    RUN(the_rest_is_lost);
    RUN(trunc_waits_too);
    RUN(address_forms);
    RUN(a_stream_has_no_sender);
    RUN(nobody_listens);
    RUN(errors);
    RUN(shutdown_wakes_the_receiver);
    return 0;
}
