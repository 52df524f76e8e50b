/* UDP sockets with a peer: errors that come back later, strangers that are not heard. */
#include "fds.h"

static void put_to_nobody(int fd) { CHECK_EQ(send(fd, "x", 1, 0), 1); }

/* A port that nobody has: what comes back wakes the waiting reader with an error, once. */
static void nobody_there(void)
{
    char byte;
    int gone = bound(SOCK_DGRAM), fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in to = loopback(port_of(gone));
    CHECK_SYS(close(gone));
    CHECK_SYS(connect(fd, (struct sockaddr *)&to, sizeof to));
    pthread_t sender = later(30, put_to_nobody, fd);
    CHECK_ERRNO(recv(fd, &byte, 1, 0), ECONNREFUSED);
    join(sender);
    CHECK_ERRNO(recv(fd, &byte, 1, MSG_DONTWAIT), EAGAIN);
    CHECK_EQ(send(fd, "x", 1, 0), 1);
    struct pollfd one = {fd, POLLIN, 0};
    CHECK_EQ(poll(&one, 1, -1), 1);
    CHECK(one.revents & POLLERR);
    CHECK_ERRNO(send(fd, "x", 1, 0), ECONNREFUSED);
    CHECK_SYS(close(fd));
}

static void put_from_elsewhere(int fd)
{
    int stranger = bound(SOCK_DGRAM);
    struct sockaddr_in to = loopback(port_of(fd));
    CHECK_EQ(sendto(stranger, "stranger", 8, 0, (struct sockaddr *)&to, sizeof to), 8);
    CHECK_SYS(close(stranger));
}

/* A connected socket hears its peer only; a disconnected one hears all again. */
static void connected_ones_hear_their_peer(void)
{
    char buffer[16];
    int a = bound(SOCK_DGRAM), b = bound(SOCK_DGRAM);
    struct sockaddr_in to_a = loopback(port_of(a)), to_b = loopback(port_of(b));
    CHECK_SYS(connect(a, (struct sockaddr *)&to_b, sizeof to_b));
    CHECK_SYS(connect(b, (struct sockaddr *)&to_a, sizeof to_a));
    pthread_t stranger = later(10, put_from_elsewhere, a), peer = later(30, put_byte, b);
    CHECK_EQ(recv(a, buffer, sizeof buffer, 0), 1);
    join(stranger);
    join(peer);
    CHECK_ERRNO(recv(a, buffer, sizeof buffer, MSG_DONTWAIT), EAGAIN);
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    CHECK_SYS(connect(a, &none, sizeof none));
    CHECK_ERRNO(send(a, "x", 1, 0), EDESTADDRREQ);
    CHECK_SYS(close(a));
    CHECK_SYS(close(b));
}

int main(void)
{
    RUN(nobody_there);
    RUN(connected_ones_hear_their_peer);
    return 0;
}
