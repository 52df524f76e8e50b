/* A UDP echo server of several threads on one socket, many clients; then sockets with a peer. */
#include "fds.h"

enum { SERVERS = 4, CLIENTS = 50, TURNS = 100 };

static int service;

static void *serve(void *arg)
{
    char buffer[2048];
    struct sockaddr_in from;
    (void)arg;
    for (;;) {
        socklen_t size = sizeof from;
        ssize_t n = recvfrom(service, buffer, sizeof buffer, 0, (struct sockaddr *)&from, &size);
        CHECK_SYS(n);
        CHECK_EQ(size, (int)sizeof from);
        if (n == 0)
            return NULL;
        CHECK_EQ(sendto(service, buffer, (size_t)n, 0, (struct sockaddr *)&from, size), n);
    }
}

static void *ask(void *arg)
{
    unsigned me = (unsigned)(intptr_t)arg;
    struct sockaddr_in to = loopback(port_of(service)), from;
    char out[1400], in[2048];
    int fd = me % 3 == 0 ? bound(SOCK_DGRAM) : socket(AF_INET, SOCK_DGRAM, 0);
    if (me % 2)
        CHECK_SYS(connect(fd, (struct sockaddr *)&to, sizeof to));
    for (unsigned turn = 0; turn < TURNS; turn++) {
        size_t size = (me * 131 + turn * 17) % sizeof out + 1;
        fill(out, size, me + turn, 0);
        if (me % 2)
            CHECK_EQ(send(fd, out, size, 0), size);
        else
            CHECK_EQ(sendto(fd, out, size, 0, (struct sockaddr *)&to, sizeof to), size);
        socklen_t from_size = sizeof from;
        CHECK_EQ(recvfrom(fd, in, sizeof in, 0, (struct sockaddr *)&from, &from_size), size);
        CHECK_EQ(from.sin_port, to.sin_port);
        check_fill(in, size, me + turn, 0);
    }
    CHECK_SYS(close(fd));
    return NULL;
}

static void many_clients(void)
{
    pthread_t servers[SERVERS], clients[CLIENTS];
    service = bound(SOCK_DGRAM);
    for (int i = 0; i < SERVERS; i++)
        servers[i] = start(serve, NULL);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = start(ask, (void *)(intptr_t)i);
    for (int i = 0; i < CLIENTS; i++)
        join(clients[i]);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in to = loopback(port_of(service));
    for (int i = 0; i < SERVERS; i++)
        CHECK_EQ(sendto(fd, "", 0, 0, (struct sockaddr *)&to, sizeof to), 0);
    for (int i = 0; i < SERVERS; i++)
        join(servers[i]);
    CHECK_SYS(close(fd));
    CHECK_SYS(close(service));
}

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

static void shutdown_wakes_the_reader(void)
{
    char byte;
    int a = bound(SOCK_DGRAM), b = bound(SOCK_DGRAM);
    struct sockaddr_in to_b = loopback(port_of(b));
    CHECK_SYS(connect(a, (struct sockaddr *)&to_b, sizeof to_b));
    pthread_t shutter = later(30, shut_read, a);
    CHECK_EQ(recv(a, &byte, 1, 0), 0);
    join(shutter);
    CHECK_SYS(close(a));
    CHECK_SYS(close(b));
}

int main(void)
{
    RUN(many_clients);
    RUN(nobody_there);
    RUN(connected_ones_hear_their_peer);
    RUN(shutdown_wakes_the_reader);
    return 0;
}
