/* A UDP echo service: one thread answers whoever asks, many ask. */
#include "fds.h"

enum { CLIENTS = 50, TURNS = 100 };
static int server, port;

static void *serve(void *arg)
{
    (void)arg;
    char bytes[2048];
    for (;;) {
        struct sockaddr_in from;
        socklen_t size = sizeof from;
        ssize_t n = recvfrom(server, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &size);
        CHECK_SYS(n);
        if (n == 0)
            return NULL;
        CHECK_EQ(sendto(server, bytes, (size_t)n, 0, (struct sockaddr *)&from, size), n);
    }
}

static void *ask(void *arg)
{
    unsigned me = (unsigned)(intptr_t)arg;
    char bytes[1400], answer[1400];
    struct sockaddr_in to = loopback(port);
    int fd = bound(SOCK_DGRAM);
    CHECK_SYS(connect(fd, (struct sockaddr *)&to, sizeof to));
    for (unsigned turn = 0; turn < TURNS; turn++) {
        size_t size = 1 + (me * 131 + turn * 17) % sizeof bytes;
        fill(bytes, size, me, turn);
        CHECK_EQ(send(fd, bytes, size, 0), (int)size);
        CHECK_EQ(recv(fd, answer, sizeof answer, 0), (int)size);
        CHECK(memcmp(bytes, answer, size) == 0);
    }
    CHECK_SYS(close(fd));
    return NULL;
}

static void fifty_clients_two_servers(void)
{
    pthread_t clients[CLIENTS], servers[2];
    server = bound(SOCK_DGRAM);
    port = port_of(server);
    for (int i = 0; i < 2; i++)
        servers[i] = start(serve, NULL);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = start(ask, (void *)(intptr_t)i);
    for (int i = 0; i < CLIENTS; i++)
        join(clients[i]);
    int fd = bound(SOCK_DGRAM);
    struct sockaddr_in to = loopback(port);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(sendto(fd, "", 0, 0, (struct sockaddr *)&to, sizeof to), 0);
    for (int i = 0; i < 2; i++)
        join(servers[i]);
    CHECK_SYS(close(fd));
    CHECK_SYS(close(server));
}

int main(void)
{
    RUN(fifty_clients_two_servers);
    return 0;
}
