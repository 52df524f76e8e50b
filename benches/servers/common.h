/* What the two hand-written echo servers share: listening, limits, and the state of a connection.
 *
 * Socket options are those of c-tests/echo_server.c, so that a comparison compares how connections are waited for
 * and nothing else.
 */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER = 4096, EVENTS = 512 };

/* A connection. The buffer is allocated only while a reply could not be sent whole: idle connections stay small. */
struct conn {
    int fd;
    uint32_t events; /* what epoll is asked for (level-triggered server only) */
    size_t pending;  /* bytes in `rest` that are still to be sent */
    char *rest;
};

static inline void die(const char *what)
{
    perror(what);
    exit(1);
}

static void on_sigterm(int signal)
{
    (void)signal;
    _exit(0);
}

/* Listens on 127.0.0.1:`argv[1]` (0: the kernel chooses) and says where. */
static inline int start(int argc, char **argv)
{
    char *end = NULL;
    long port = argc == 2 ? strtol(argv[1], &end, 10) : -1;
    if (port < 0 || port > 65535 || end == argv[1] || *end != '\0') {
        fprintf(stderr, "usage: %s PORT\n", argv[0]);
        exit(2);
    }
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    signal(SIGTERM, on_sigterm);
    signal(SIGPIPE, SIG_IGN);

    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0)
        die("socket");
    if (bind(fd, (struct sockaddr *)&address, length) != 0)
        die("bind");
    if (listen(fd, SOMAXCONN) != 0)
        die("listen");
    if (getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        die("getsockname");
    printf("listening on %d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

/* Accepts one connection; NULL when there is none. */
static inline struct conn *take(int listener)
{
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EINTR || errno == ECONNABORTED)
                continue;
            if (errno == EAGAIN)
                return NULL;
            die("accept4");
        }
        int one = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct conn *conn = calloc(1, sizeof *conn);
        if (conn == NULL)
            die("calloc");
        conn->fd = fd;
        return conn;
    }
}

static inline void drop(struct conn *conn)
{
    close(conn->fd);
    free(conn->rest);
    free(conn);
}

/* Sends `length` bytes, keeping in `rest` what the socket does not take. Returns 0, or -1 if the peer is gone. */
static inline int reply(struct conn *conn, const char *data, size_t length)
{
    size_t sent = 0;
    while (sent < length) {
        ssize_t count = send(conn->fd, data + sent, length - sent, MSG_NOSIGNAL);
        if (count >= 0) {
            sent += (size_t)count;
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            return -1;
        }
    }
    size_t left = length - sent;
    if (left > 0) {
        if (conn->rest == NULL && (conn->rest = malloc(BUFFER)) == NULL)
            die("malloc");
        memmove(conn->rest, data + sent, left);
    } else if (conn->rest != NULL) {
        free(conn->rest);
        conn->rest = NULL;
    }
    conn->pending = left;
    return 0;
}

#endif
