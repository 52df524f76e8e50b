// not-a-test
/* An echo server as one writes it for threads: accept, a thread a connection, recv, send. It knows of nothing else.
 *
 *     echo_server PORT        0 lets the kernel choose; the first line of output names the port
 *
 * SIGTERM and SIGINT end it through exit(0). */
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
    (void)signal;
    stopped = 1;
}

static void die(const char *what)
{
    fprintf(stderr, "echo_server: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int send_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return -1;
        data += sent;
        size -= (size_t)sent;
    }
    return 0;
}

static void *serve(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char buffer[4096];

    for (;;) {
        ssize_t got = recv(fd, buffer, sizeof buffer, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || send_all(fd, buffer, (size_t)got) != 0)
            break;
    }
    close(fd);
    return NULL;
}

static int listen_on(uint16_t port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t size = sizeof addr;
    int on = 1;

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0)
        die("socket");
    if (setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0)
        die("setsockopt");
    if (bind(listener, (struct sockaddr *)&addr, sizeof addr) != 0)
        die("bind");
    if (listen(listener, SOMAXCONN) != 0)
        die("listen");
    if (getsockname(listener, (struct sockaddr *)&addr, &size) != 0)
        die("getsockname");
    printf("listening on %d\n", ntohs(addr.sin_port));
    fflush(stdout);
    return listener;
}

int main(int argc, char **argv)
{
    char *end = NULL;
    long port = argc == 2 ? strtol(argv[1], &end, 10) : -1;
    if (port < 0 || port > 65535 || *end != '\0') {
        fprintf(stderr, "usage: echo_server PORT\n");
        return 2;
    }

    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);

    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);

    int listener = listen_on((uint16_t)port);
    int complained = 0;
    while (!stopped) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) {
            if (errno == EINTR || errno == EMFILE || errno == ECONNABORTED)
                continue;
            die("accept");
        }
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);

        pthread_t thread;
        int error = pthread_create(&thread, &detached, serve, (void *)(intptr_t)fd);
        if (error != 0) {
            if (!complained)
                fprintf(stderr, "echo_server: pthread_create: %s\n", strerror(error));
            complained = 1;
            close(fd);
        }
    }
    exit(0);
}
