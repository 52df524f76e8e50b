// not-a-test
/* Many connections to an echo server at once, each with one message under way at any time.
 *
 *     many_clients PORT CONNECTIONS SECONDS
 *
 * Opens all connections, then sends on each a message that names the connection and the turn, waits for it to come
 * back, compares every byte, and sends the next, for SECONDS (and until each has had an answer). Prints how many
 * connections were open together, how many were served, how many requests and errors there were. Status 0 says only
 * that it came to the end. */
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 64, AT_A_TIME = 256, PATIENCE = 30 };

struct client {
    int fd;
    uint32_t turn;
    int have; /* bytes of the answer so far */
    int open, failed;
    char answer[SIZE];
};

static struct client *clients;
static int count, connected, begun, served, epoll;
static long requests, errors;
static struct sockaddr_in server;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void complain(struct client *client, const char *what)
{
    if (errors++ < 10)
        printf("connection %d, turn %u: %s\n", (int)(client - clients), client->turn, what);
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1;
    client->failed = 1;
}

static void message(struct client *client, char *bytes)
{
    uint32_t state = (uint32_t)(client - clients) * 2654435761u ^ client->turn * 40503u;
    for (int i = 0; i < SIZE; i++) {
        state = state * 1664525u + 1013904223u;
        bytes[i] = (char)(state >> 24);
    }
}

static void say(struct client *client)
{
    char bytes[SIZE];
    client->turn++;
    client->have = 0;
    message(client, bytes);
    if (send(client->fd, bytes, SIZE, MSG_NOSIGNAL) != SIZE)
        complain(client, strerror(errno));
}

static void begin(struct client *client)
{
    begun++;
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (client->fd < 0) {
        complain(client, strerror(errno));
        return;
    }
    int on = 1;
    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct epoll_event event = {.events = EPOLLOUT, .data.ptr = client};
    if ((connect(client->fd, (struct sockaddr *)&server, sizeof server) != 0 && errno != EINPROGRESS) ||
        epoll_ctl(epoll, EPOLL_CTL_ADD, client->fd, &event) != 0)
        complain(client, strerror(errno));
}

static void opened(struct client *client)
{
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(client->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    if (error == 0 && epoll_ctl(epoll, EPOLL_CTL_MOD, client->fd, &event) != 0)
        error = errno;
    if (error != 0) {
        complain(client, strerror(error));
        return;
    }
    client->open = 1;
    connected++;
}

/* Takes what came; whether the answer is complete and right. */
static int listen_to(struct client *client)
{
    char expected[SIZE];
    ssize_t n = recv(client->fd, client->answer + client->have, (size_t)(SIZE - client->have), 0);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n <= 0) {
        complain(client, n == 0 ? "the server closed" : strerror(errno));
        return 0;
    }
    client->have += (int)n;
    if (client->have < SIZE)
        return 0;
    message(client, expected);
    if (memcmp(expected, client->answer, SIZE) != 0) {
        complain(client, "a wrong answer");
        return 0;
    }
    requests++;
    served += client->turn == 1;
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: many_clients PORT CONNECTIONS SECONDS\n");
        return 2;
    }
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1]))};
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    count = atoi(argv[2]);
    double seconds = atof(argv[3]);
    clients = calloc((size_t)count, sizeof *clients);
    epoll = epoll_create1(0);
    static struct epoll_event events[1024];

    double last = now();
    while (connected + errors < count && now() - last < PATIENCE) {
        while (begun < count && begun - connected - errors < AT_A_TIME)
            begin(&clients[begun]);
        int n = epoll_wait(epoll, events, 1024, 1000);
        for (int i = 0; i < n; i++) {
            struct client *client = events[i].data.ptr;
            if (!client->open)
                opened(client);
            else if (!client->failed)
                complain(client, "an event before anything was said");
        }
        if (n > 0)
            last = now();
    }
    printf("connected %d\n", connected);
    fflush(stdout);

    double end = now() + seconds;
    for (int i = 0; i < count; i++)
        if (clients[i].open && !clients[i].failed)
            say(&clients[i]);
    last = now();
    int waiting = connected;
    while (waiting > 0 && now() - last < PATIENCE) {
        int n = epoll_wait(epoll, events, 1024, 1000);
        int over = now() >= end;
        for (int i = 0; i < n; i++) {
            struct client *client = events[i].data.ptr;
            if (client->failed)
                continue;
            int complete = listen_to(client);
            if (complete && !over)
                say(client);
            waiting -= client->failed || (complete && over);
        }
        if (n > 0)
            last = now();
    }
    if (waiting > 0) {
        printf("%d connections wait in vain\n", waiting);
        errors += waiting;
    }
    printf("served %d\nrequests %ld\nerrors %ld\n", served, requests, errors);
    return 0;
}
