/* A TCP proxy with two threads a connection between clients and an origin server: bulk both ways at once, half-closed
 * connections, checksums. */
#include "../posix/fds.h"

enum { CLIENTS = 30, DOWN = 700001, UP = 500009 };

static int origin, proxy;

/* One end of a connection and the pattern that it speaks in. */
struct end {
    int fd;
    unsigned char seed;
};

/* ---- origin: sends DOWN bytes of the client's pattern, receives until the end, checks, says so ---- */

static void *send_down(void *arg)
{
    struct end *end = arg;
    char *data = malloc(DOWN);
    fill(data, DOWN, end->seed, 0);
    write_all(end->fd, data, DOWN);
    free(data);
    return NULL;
}

static void *answer(void *arg)
{
    struct end end = {(int)(intptr_t)arg, 0};
    char *data = malloc(UP + 1);
    CHECK_EQ(read(end.fd, &end.seed, 1), 1);
    pthread_t sender = start(send_down, &end);
    CHECK_EQ(read_all(end.fd, data, UP + 1), UP);
    check_fill(data, UP, end.seed + 1000u, 0);
    join(sender);
    write_all(end.fd, "received", 8);
    CHECK_SYS(close(end.fd));
    free(data);
    return NULL;
}

/* ---- proxy ---- */

struct direction {
    int from, to;
};

static void *pump(void *arg)
{
    struct direction *way = arg;
    char data[20000];
    ssize_t n;
    while ((n = read(way->from, data, sizeof data)) > 0)
        write_all(way->to, data, (size_t)n);
    CHECK_EQ(n, 0);
    CHECK_SYS(shutdown(way->to, SHUT_WR));
    return NULL;
}

static void *relay(void *arg)
{
    int client = (int)(intptr_t)arg, server = tcp_connect(port_of(origin));
    struct direction up = {client, server}, down = {server, client};
    pthread_t other = start(pump, &up);
    pump(&down);
    join(other);
    CHECK_SYS(close(client));
    CHECK_SYS(close(server));
    return NULL;
}

/* ---- both: accept CLIENTS connections, a thread for each ---- */

struct service {
    int listener;
    void *(*serve)(void *);
};

static void *accept_all(void *arg)
{
    struct service *service = arg;
    pthread_t threads[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        int fd = accept(service->listener, NULL, NULL);
        CHECK_SYS(fd);
        threads[i] = start(service->serve, (void *)(intptr_t)fd);
    }
    for (int i = 0; i < CLIENTS; i++)
        join(threads[i]);
    CHECK_SYS(close(service->listener));
    return NULL;
}

/* ---- clients ---- */

static void *send_up(void *arg)
{
    struct end *client = arg;
    char *data = malloc(UP);
    fill(data, UP, client->seed + 1000u, 0);
    for (size_t at = 0; at < UP;) {
        size_t size = at % 30011 + 1 < UP - at ? at % 30011 + 1 : UP - at;
        write_all(client->fd, data + at, size);
        at += size;
    }
    CHECK_SYS(shutdown(client->fd, SHUT_WR));
    free(data);
    return NULL;
}

static void *use(void *arg)
{
    struct end client = {tcp_connect(port_of(proxy)), (unsigned char)(intptr_t)arg};
    char *data = malloc(DOWN + 9);
    write_all(client.fd, &client.seed, 1);
    pthread_t sender = start(send_up, &client);
    CHECK_EQ(read_all(client.fd, data, DOWN + 9), DOWN + 8);
    check_fill(data, DOWN, client.seed, 0);
    CHECK(memcmp(data + DOWN, "received", 8) == 0);
    join(sender);
    CHECK_SYS(close(client.fd));
    free(data);
    return NULL;
}

int main(void)
{
    pthread_t threads[CLIENTS];
    signal(SIGPIPE, SIG_IGN);
    origin = tcp_listener(CLIENTS);
    proxy = tcp_listener(CLIENTS);
    struct service services[2] = {{origin, answer}, {proxy, relay}};
    pthread_t servers[2] = {start(accept_all, &services[0]), start(accept_all, &services[1])};
    for (int i = 0; i < CLIENTS; i++)
        threads[i] = start(use, (void *)(intptr_t)i);
    for (int i = 0; i < CLIENTS; i++)
        join(threads[i]);
    join(servers[0]);
    join(servers[1]);
    printf("%d clients, %d bytes down and %d up each\n", CLIENTS, DOWN, UP);
    return 0;
}
