/* accept and accept4: waiting, flags, addresses, several acceptors, the end of a listener. */
#include "fds.h"

static int port;

static void connect_later(int fd)
{
    struct sockaddr_in addr = loopback(port);
    CHECK_SYS(connect(fd, (struct sockaddr *)&addr, sizeof addr));
}

static void waits_for_a_connection(void)
{
    int listener = tcp_listener(5), client = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    port = port_of(listener);
    int64_t begun = now_ns();
    pthread_t connector = later(30, connect_later, client);
    int fd = accept(listener, (struct sockaddr *)&from, &size);
    CHECK_SYS(fd);
    CHECK_LASTED(begun, 25);
    join(connector);
    CHECK_EQ(size, sizeof from);
    CHECK_EQ(from.sin_port, htons((uint16_t)port_of(client)));
    CHECK_EQ(from.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    CHECK_EQ(port_of(fd), port);
    pthread_t writer = later(20, put_byte, client);
    get_byte(fd);
    join(writer);
    CHECK_SYS(close(fd));
    CHECK_SYS(close(client));
    CHECK_SYS(close(listener));
}

static void flags_of_accept4(void)
{
    int listener = tcp_listener(8), flags[] = {0, SOCK_NONBLOCK, SOCK_CLOEXEC, SOCK_NONBLOCK | SOCK_CLOEXEC};
    char byte;
    for (int i = 0; i < 4; i++) {
        int client = tcp_connect(port_of(listener));
        int fd = accept4(listener, NULL, NULL, flags[i]);
        CHECK_SYS(fd);
        CHECK_EQ(fcntl(fd, F_GETFL), O_RDWR | (flags[i] & SOCK_NONBLOCK ? O_NONBLOCK : 0));
        CHECK_EQ(fcntl(fd, F_GETFD), flags[i] & SOCK_CLOEXEC ? FD_CLOEXEC : 0);
        if (flags[i] & SOCK_NONBLOCK) {
            CHECK_ERRNO(recv(fd, &byte, 1, 0), EAGAIN);
        } else {
            pthread_t writer = later(10, put_byte, client);
            CHECK_EQ(recv(fd, &byte, 1, 0), 1);
            join(writer);
        }
        CHECK_SYS(close(fd));
        CHECK_SYS(close(client));
    }
    CHECK_ERRNO(accept4(listener, NULL, NULL, 1), EINVAL);
    CHECK_SYS(close(listener));
}

static void nonblocking_listener(void)
{
    int listener = tcp_listener(5);
    char byte;
    set_nonblock(listener, true);
    CHECK_ERRNO(accept(listener, NULL, NULL), EAGAIN);
    int client = tcp_connect(port_of(listener));
    int fd = accept(listener, NULL, NULL);
    CHECK_SYS(fd);
    CHECK_EQ(fcntl(fd, F_GETFL), O_RDWR);
    pthread_t writer = later(20, put_byte, client);
    CHECK_EQ(recv(fd, &byte, 1, 0), 1);
    join(writer);
    CHECK_ERRNO(accept(listener, NULL, NULL), EAGAIN);
    CHECK_SYS(close(fd));
    CHECK_SYS(close(client));
    CHECK_SYS(close(listener));
}

/* ---- several acceptors ---- */

enum { ACCEPTORS = 8, CLIENTS = 400 };

static void *serve_until_the_end(void *arg)
{
    int listener = *(int *)arg;
    intptr_t served = 0;
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) {
            CHECK_EQ(errno, EINVAL);
            return (void *)served;
        }
        get_byte(fd);
        put_byte(fd);
        CHECK_SYS(close(fd));
        served++;
    }
}

static void *be_a_client(void *arg)
{
    (void)arg;
    for (int i = 0; i < CLIENTS / 8; i++) {
        int fd = tcp_connect(port);
        put_byte(fd);
        get_byte(fd);
        CHECK_SYS(close(fd));
    }
    return NULL;
}

static void many_acceptors_serve_all(void)
{
    int listener = tcp_listener(64);
    pthread_t acceptors[ACCEPTORS], clients[8];
    intptr_t served = 0;
    port = port_of(listener);
    for (int i = 0; i < ACCEPTORS; i++)
        acceptors[i] = start(serve_until_the_end, &listener);
    for (int i = 0; i < 8; i++)
        clients[i] = start(be_a_client, NULL);
    for (int i = 0; i < 8; i++)
        join(clients[i]);
    CHECK_SYS(shutdown(listener, SHUT_RD));
    for (int i = 0; i < ACCEPTORS; i++)
        served += (intptr_t)join(acceptors[i]);
    CHECK_EQ(served, CLIENTS);
    CHECK_SYS(close(listener));
}

/* Connections that came in one burst before anybody accepted: each acceptor needs to be told. */
static void a_burst_wakes_enough_acceptors(void)
{
    int listener = tcp_listener(64), clients[32];
    pthread_t acceptors[ACCEPTORS];
    intptr_t served = 0;
    port = port_of(listener);
    for (int i = 0; i < ACCEPTORS; i++)
        acceptors[i] = start(serve_until_the_end, &listener);
    sleep_ms(20);
    for (int i = 0; i < 32; i++)
        clients[i] = tcp_connect(port);
    /* The last to come are the first to be answered only if all of them are being served. */
    for (int i = 0; i < 32; i++)
        put_byte(clients[i]);
    for (int i = 31; i >= 0; i--)
        get_byte(clients[i]);
    CHECK_SYS(shutdown(listener, SHUT_RD));
    for (int i = 0; i < ACCEPTORS; i++)
        served += (intptr_t)join(acceptors[i]);
    CHECK_EQ(served, 32);
    for (int i = 0; i < 32; i++)
        CHECK_SYS(close(clients[i]));
    CHECK_SYS(close(listener));
}

static void *hold_one(void *arg)
{
    int fd = accept(*(int *)arg, NULL, NULL);
    CHECK_SYS(fd);
    get_byte(fd);
    CHECK_SYS(close(fd));
    return NULL;
}

/* As many acceptors as connections, and none is served before all are accepted. */
static void each_acceptor_gets_one(void)
{
    int listener = tcp_listener(64), clients[ACCEPTORS];
    pthread_t acceptors[ACCEPTORS];
    for (int i = 0; i < ACCEPTORS; i++)
        acceptors[i] = start(hold_one, &listener);
    sleep_ms(20);
    for (int i = 0; i < ACCEPTORS; i++)
        clients[i] = tcp_connect(port_of(listener));
    for (int i = ACCEPTORS - 1; i >= 0; i--)
        put_byte(clients[i]);
    for (int i = 0; i < ACCEPTORS; i++) {
        char byte;
        CHECK_EQ(recv(clients[i], &byte, 1, 0), 0);
        CHECK_SYS(close(clients[i]));
        join(acceptors[i]);
    }
    CHECK_SYS(close(listener));
}

/* ---- other families, errors ---- */

static void unix_listener(void)
{
    char dir[64];
    struct sockaddr_un addr = {.sun_family = AF_UNIX}, from;
    socklen_t size = sizeof from;
    temp_dir(dir);
    snprintf(addr.sun_path, sizeof addr.sun_path, "%s/socket", dir);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_SYS(bind(listener, (struct sockaddr *)&addr, sizeof addr));
    CHECK_SYS(listen(listener, 5));
    CHECK_SYS(connect(client, (struct sockaddr *)&addr, sizeof addr));
    int fd = accept(listener, (struct sockaddr *)&from, &size);
    CHECK_SYS(fd);
    CHECK_EQ(size, sizeof from.sun_family);
    CHECK_EQ(from.sun_family, AF_UNIX);
    put_byte(client);
    get_byte(fd);
    pthread_t closer = later(20, shut_both, listener);
    CHECK_ERRNO(accept(listener, NULL, NULL), EINVAL);
    join(closer);
    CHECK_SYS(close(fd));
    CHECK_SYS(close(client));
    CHECK_SYS(close(listener));
    CHECK_SYS(unlink(addr.sun_path));
    CHECK_SYS(rmdir(dir));
}

static void shutdown_ends_accept(void)
{
    int listener = tcp_listener(5);
    int64_t begun = now_ns();
    pthread_t closer = later(30, shut_both, listener);
    CHECK_ERRNO(accept(listener, NULL, NULL), EINVAL);
    CHECK_LASTED(begun, 25);
    join(closer);
    CHECK_ERRNO(accept(listener, NULL, NULL), EINVAL);
    CHECK_SYS(close(listener));
}

static void errors(void)
{
    int fds[2], fd = bound(SOCK_STREAM);
    CHECK_ERRNO(accept(fd, NULL, NULL), EINVAL);
    CHECK_SYS(close(fd));
    CHECK_ERRNO(accept(fd, NULL, NULL), EBADF);
    CHECK_ERRNO(accept(-1, NULL, NULL), EBADF);
    CHECK_SYS(pipe(fds));
    CHECK_ERRNO(accept(fds[0], NULL, NULL), ENOTSOCK);
    close_pair(fds);
    fd = bound(SOCK_DGRAM);
    CHECK_ERRNO(accept(fd, NULL, NULL), EOPNOTSUPP);
    CHECK_SYS(close(fd));
    tcp_pair(fds);
    CHECK_ERRNO(accept(fds[0], NULL, NULL), EINVAL);
    close_pair(fds);
}

static void short_address(void)
{
    int listener = tcp_listener(5), client = tcp_connect(port_of(listener));
    struct sockaddr_in from = {0};
    socklen_t size = 2;
    int fd = accept(listener, (struct sockaddr *)&from, &size);
    CHECK_SYS(fd);
    CHECK_EQ(size, sizeof from);
    CHECK_EQ(from.sin_family, AF_INET);
    CHECK_EQ(from.sin_port, 0);
    CHECK_SYS(close(fd));
    CHECK_SYS(close(client));
    CHECK_SYS(close(listener));
}

int main(void)
{
    RUN(waits_for_a_connection);
    RUN(flags_of_accept4);
    RUN(nonblocking_listener);
    RUN(many_acceptors_serve_all);
    RUN(a_burst_wakes_enough_acceptors);
    RUN(each_acceptor_gets_one);
    RUN(unix_listener);
    RUN(shutdown_ends_accept);
    RUN(errors);
    RUN(short_address);
    return 0;
}
