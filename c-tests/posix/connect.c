/* connect: success, refusal, time limits, non-blocking, unix sockets with a full backlog, datagram sockets. */
#include "fds.h"

static int so_error(int fd)
{
    int error = -1;
    socklen_t size = sizeof error;
    CHECK_SYS(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size));
    return error;
}

static void succeeds(void)
{
    int listener = tcp_listener(5), client = tcp_connect(port_of(listener));
    struct sockaddr_in addr = loopback(port_of(listener));
    CHECK_EQ(fcntl(client, F_GETFL), O_RDWR);
    int fd = accept(listener, NULL, NULL);
    pthread_t writer = later(20, put_byte, fd);
    get_byte(client);
    join(writer);
    CHECK_ERRNO(connect(client, (struct sockaddr *)&addr, sizeof addr), EISCONN);
    CHECK_SYS(close(fd));
    CHECK_SYS(close(client));
    CHECK_SYS(close(listener));
}

static void is_refused(void)
{
    int gone = bound(SOCK_STREAM), client = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in addr = loopback(port_of(gone));
    CHECK_ERRNO(connect(client, (struct sockaddr *)&addr, sizeof addr), ECONNREFUSED);
    CHECK_EQ(so_error(client), 0);
    CHECK_EQ(fcntl(client, F_GETFL), O_RDWR);
    CHECK_SYS(listen(gone, 1));
    CHECK_SYS(connect(client, (struct sockaddr *)&addr, sizeof addr));
    CHECK_SYS(close(client));
    CHECK_SYS(close(gone));
}

static void without_blocking(void)
{
    int listener = tcp_listener(5), client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in addr = loopback(port_of(listener));
    struct pollfd ready = {client, POLLOUT, 0};
    CHECK_ERRNO(connect(client, (struct sockaddr *)&addr, sizeof addr), EINPROGRESS);
    CHECK_EQ(poll(&ready, 1, -1), 1);
    CHECK_EQ(ready.revents, POLLOUT);
    CHECK_EQ(so_error(client), 0);
    CHECK_EQ(connect(client, (struct sockaddr *)&addr, sizeof addr), 0);
    CHECK_ERRNO(connect(client, (struct sockaddr *)&addr, sizeof addr), EISCONN);
    CHECK_EQ(fcntl(client, F_GETFL), O_RDWR | O_NONBLOCK);
    CHECK_SYS(close(client));
    CHECK_SYS(close(listener));

    int gone = bound(SOCK_STREAM);
    client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    addr = loopback(port_of(gone));
    ready = (struct pollfd){client, POLLOUT, 0};
    CHECK_ERRNO(connect(client, (struct sockaddr *)&addr, sizeof addr), EINPROGRESS);
    CHECK_EQ(poll(&ready, 1, -1), 1);
    CHECK_EQ(ready.revents & (POLLERR | POLLHUP), POLLERR | POLLHUP);
    CHECK_EQ(so_error(client), ECONNREFUSED);
    CHECK_EQ(so_error(client), 0);
    CHECK_SYS(close(client));
    CHECK_SYS(close(gone));
}

/* A listener that takes no further connection: the next connect has to wait. */
static int full_tcp_listener(int *fillers, int count)
{
    int listener = tcp_listener(0);
    struct sockaddr_in addr = loopback(port_of(listener));
    for (int i = 0; i < count; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        CHECK_ERRNO(connect(fillers[i], (struct sockaddr *)&addr, sizeof addr), EINPROGRESS);
    }
    sleep_ms(20);
    return listener;
}

static void time_limit(void)
{
    int fillers[4], listener = full_tcp_listener(fillers, 4);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in addr = loopback(port_of(listener));
    set_timeout(client, SO_SNDTIMEO, 80);
    int64_t begun = now_ns();
    CHECK_ERRNO(connect(client, (struct sockaddr *)&addr, sizeof addr), EINPROGRESS);
    CHECK_LASTED(begun, 70);
    CHECK_EQ(fcntl(client, F_GETFL), O_RDWR);
    begun = now_ns();
    CHECK_ERRNO(connect(client, (struct sockaddr *)&addr, sizeof addr), EALREADY);
    CHECK_LASTED(begun, 70);
    CHECK_SYS(close(client));
    for (int i = 0; i < 4; i++)
        CHECK_SYS(close(fillers[i]));
    CHECK_SYS(close(listener));
}

static void while_in_progress(void)
{
    int fillers[4], listener = full_tcp_listener(fillers, 4);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in addr = loopback(port_of(listener));
    char byte;
    CHECK_ERRNO(connect(client, (struct sockaddr *)&addr, sizeof addr), EINPROGRESS);
    CHECK_ERRNO(connect(client, (struct sockaddr *)&addr, sizeof addr), EALREADY);
    CHECK_ERRNO(recv(client, &byte, 1, 0), EAGAIN);
    CHECK_ERRNO(send(client, &byte, 1, MSG_NOSIGNAL), EAGAIN);
    CHECK_SYS(close(client));
    for (int i = 0; i < 4; i++)
        CHECK_SYS(close(fillers[i]));
    CHECK_SYS(close(listener));
}

static void unix_name(struct sockaddr_un *addr, char dir[64])
{
    temp_dir(dir);
    *addr = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(addr->sun_path, sizeof addr->sun_path, "%s/socket", dir);
}

static void accept_one(int fd)
{
    int got = accept(fd, NULL, NULL);
    CHECK_SYS(got);
    CHECK_SYS(close(got));
}

static void unix_backlog(void)
{
    char dir[64];
    struct sockaddr_un addr;
    unix_name(&addr, dir);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_SYS(bind(listener, (struct sockaddr *)&addr, sizeof addr));
    CHECK_SYS(listen(listener, 0));
    int first = socket(AF_UNIX, SOCK_STREAM, 0), second = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_SYS(connect(first, (struct sockaddr *)&addr, sizeof addr));

    int quick = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK_ERRNO(connect(quick, (struct sockaddr *)&addr, sizeof addr), EAGAIN);
    CHECK_SYS(close(quick));

    set_timeout(second, SO_SNDTIMEO, 60);
    int64_t begun = now_ns();
    CHECK_ERRNO(connect(second, (struct sockaddr *)&addr, sizeof addr), EAGAIN);
    CHECK_LASTED(begun, 50);
    set_timeout(second, SO_SNDTIMEO, 0);

    begun = now_ns();
    pthread_t acceptor = later(40, accept_one, listener);
    CHECK_SYS(connect(second, (struct sockaddr *)&addr, sizeof addr));
    CHECK_LASTED(begun, 30);
    join(acceptor);

    int third = socket(AF_UNIX, SOCK_STREAM, 0);
    pthread_t closer = later(30, close_it, listener);
    CHECK_ERRNO(connect(third, (struct sockaddr *)&addr, sizeof addr), ECONNREFUSED);
    join(closer);
    CHECK_SYS(close(first));
    CHECK_SYS(close(second));
    CHECK_SYS(close(third));
    CHECK_SYS(unlink(addr.sun_path));
    CHECK_SYS(rmdir(dir));
}

static void unix_errors(void)
{
    char dir[64];
    struct sockaddr_un addr;
    unix_name(&addr, dir);
    int client = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_ERRNO(connect(client, (struct sockaddr *)&addr, sizeof addr), ENOENT);
    int nobody = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_SYS(bind(nobody, (struct sockaddr *)&addr, sizeof addr));
    CHECK_ERRNO(connect(client, (struct sockaddr *)&addr, sizeof addr), ECONNREFUSED);
    CHECK_SYS(listen(nobody, 1));
    CHECK_SYS(connect(client, (struct sockaddr *)&addr, sizeof addr));
    CHECK_ERRNO(connect(client, (struct sockaddr *)&addr, sizeof addr), EISCONN);
    int wrong = socket(AF_UNIX, SOCK_DGRAM, 0);
    CHECK_ERRNO(connect(wrong, (struct sockaddr *)&addr, sizeof addr), EPROTOTYPE);
    CHECK_SYS(close(wrong));
    CHECK_SYS(close(client));
    CHECK_SYS(close(nobody));
    CHECK_SYS(unlink(addr.sun_path));
    CHECK_SYS(rmdir(dir));
}

static void datagrams(void)
{
    int fd = bound(SOCK_DGRAM), peer = bound(SOCK_DGRAM), other = bound(SOCK_DGRAM);
    struct sockaddr_in to = loopback(port_of(peer)), back = loopback(port_of(fd));
    struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
    char bytes[4];
    CHECK_SYS(connect(fd, (struct sockaddr *)&to, sizeof to));
    CHECK_EQ(sendto(other, "no", 2, 0, (struct sockaddr *)&back, sizeof back), 2);
    CHECK_EQ(sendto(peer, "yes", 3, 0, (struct sockaddr *)&back, sizeof back), 3);
    CHECK_EQ(recv(fd, bytes, 4, 0), 3);
    CHECK_SYS(connect(fd, &nowhere, sizeof nowhere));
    CHECK_ERRNO(send(fd, "x", 1, 0), EDESTADDRREQ);
    to = loopback(port_of(other));
    CHECK_SYS(connect(fd, (struct sockaddr *)&to, sizeof to));
    CHECK_EQ(send(fd, "x", 1, 0), 1);
    CHECK_EQ(recv(other, bytes, 4, 0), 1);
    CHECK_SYS(close(fd));
    CHECK_SYS(close(peer));
    CHECK_SYS(close(other));
}

static void errors(void)
{
    struct sockaddr_in addr = loopback(9);
    int fds[2], fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_ERRNO(connect(-1, (struct sockaddr *)&addr, sizeof addr), EBADF);
    CHECK_ERRNO(connect(fd, (struct sockaddr *)&addr, 1), EINVAL);
    addr.sin_family = AF_UNIX;
    CHECK_ERRNO(connect(fd, (struct sockaddr *)&addr, sizeof addr), EAFNOSUPPORT);
    CHECK_SYS(close(fd));
    CHECK_SYS(pipe(fds));
    addr = loopback(9);
    CHECK_ERRNO(connect(fds[0], (struct sockaddr *)&addr, sizeof addr), ENOTSOCK);
    close_pair(fds);
    fd = tcp_listener(1);
    addr = loopback(port_of(fd));
    CHECK_ERRNO(connect(fd, (struct sockaddr *)&addr, sizeof addr), EISCONN);
    CHECK_SYS(close(fd));
}

/* Many at once through a small backlog that one acceptor empties. */
enum { CLIENTS = 64 };
static int port;

static void *call_in(void *arg)
{
    (void)arg;
    int fd = tcp_connect(port);
    put_byte(fd);
    get_byte(fd);
    CHECK_SYS(close(fd));
    return NULL;
}

static void many_at_once(void)
{
    pthread_t clients[CLIENTS];
    int listener = tcp_listener(CLIENTS);
    port = port_of(listener);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = start(call_in, NULL);
    for (int i = 0; i < CLIENTS; i++) {
        int fd = accept(listener, NULL, NULL);
        CHECK_SYS(fd);
        get_byte(fd);
        put_byte(fd);
        CHECK_SYS(close(fd));
    }
    for (int i = 0; i < CLIENTS; i++)
        join(clients[i]);
    CHECK_SYS(close(listener));
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    RUN(succeeds);
    RUN(is_refused);
    RUN(without_blocking);
    RUN(time_limit);
    RUN(while_in_progress);
    RUN(unix_backlog);
    RUN(unix_errors);
    RUN(datagrams);
    RUN(errors);
    RUN(many_at_once);
    return 0;
}
