/* shutdown: what it wakes, on either side, and what each call says afterwards. */
#include "fds.h"

static void (*pair)(int fds[2]);
static char big[8 << 20];

static void wakes_the_reader(void)
{
    int fds[2];
    char byte;
    pair(fds);
    int64_t begun = now_ns();
    pthread_t closer = later(30, shut_read, fds[0]);
    CHECK_EQ(recv(fds[0], &byte, 1, 0), 0);
    CHECK_LASTED(begun, 25);
    join(closer);
    close_pair(fds);
    pair(fds);
    closer = later(20, shut_both, fds[0]);
    CHECK_EQ(read(fds[0], &byte, 1), 0);
    join(closer);
    close_pair(fds);
}

static void ends_the_stream_of_the_peer(void)
{
    int fds[2];
    char bytes[8];
    pair(fds);
    CHECK_EQ(send(fds[1], "ab", 2, 0), 2);
    pthread_t closer = later(20, shut_write, fds[1]);
    CHECK_EQ(recv(fds[0], bytes, 8, 0), 2);
    CHECK_EQ(recv(fds[0], bytes, 8, 0), 0);
    join(closer);
    pthread_t writer = later(20, put_byte, fds[0]);
    CHECK_EQ(recv(fds[1], bytes, 8, 0), 1);
    join(writer);
    close_pair(fds);
}

static void stops_the_writer(void)
{
    int fds[2];
    pair(fds);
    CHECK_SYS(shutdown(fds[0], SHUT_WR));
    CHECK_ERRNO(send(fds[0], "x", 1, MSG_NOSIGNAL), EPIPE);
    CHECK_ERRNO(write(fds[0], "x", 1), EPIPE);
    close_pair(fds);
}

static void wakes_a_waiting_writer(void)
{
    int fds[2];
    pair(fds);
    pthread_t closer = later(40, shut_both, fds[0]);
    ssize_t sent = send(fds[0], big, sizeof big, MSG_NOSIGNAL);
    CHECK(sent > 0 && sent < (ssize_t)sizeof big);
    join(closer);
    CHECK_ERRNO(send(fds[0], "x", 1, MSG_NOSIGNAL), EPIPE);
    close_pair(fds);
}

static void wakes_poll(void)
{
    int fds[2];
    pair(fds);
    struct pollfd watch = {fds[0], POLLIN | POLLRDHUP, 0};
    pthread_t closer = later(20, shut_write, fds[1]);
    CHECK_EQ(poll(&watch, 1, -1), 1);
    CHECK_EQ(watch.revents, POLLIN | POLLRDHUP);
    join(closer);
    watch.revents = 0;
    CHECK_SYS(shutdown(fds[0], SHUT_WR));
    watch.events = 0;
    CHECK_EQ(poll(&watch, 1, -1), 1);
    CHECK_EQ(watch.revents, POLLHUP);
    close_pair(fds);
}

static void twice_and_wrong(void)
{
    int fds[2];
    pair(fds);
    CHECK_ERRNO(shutdown(fds[0], 3), EINVAL);
    CHECK_ERRNO(shutdown(fds[0], -1), EINVAL);
    CHECK_SYS(shutdown(fds[0], SHUT_RD));
    CHECK_SYS(shutdown(fds[0], SHUT_RD));
    CHECK_SYS(shutdown(fds[0], SHUT_WR));
    close_pair(fds);
    CHECK_ERRNO(shutdown(fds[0], SHUT_RD), EBADF);
    CHECK_SYS(pipe(fds));
    CHECK_ERRNO(shutdown(fds[0], SHUT_RD), ENOTSOCK);
    close_pair(fds);
}

static void on_streams(const char *kind, void (*make)(int fds[2]))
{
    printf("-- %s\n", kind);
    pair = make;
    RUN(wakes_the_reader);
    RUN(ends_the_stream_of_the_peer);
    RUN(stops_the_writer);
    RUN(wakes_a_waiting_writer);
    RUN(wakes_poll);
    RUN(twice_and_wrong);
}

static void tcp_reads_after_shut_read(void)
{
    int fds[2];
    char bytes[8];
    tcp_pair(fds);
    CHECK_SYS(shutdown(fds[0], SHUT_RD));
    CHECK_EQ(recv(fds[0], bytes, 8, 0), 0);
    CHECK_EQ(send(fds[1], "still", 5, 0), 5);
    struct pollfd watch = {fds[0], POLLIN, 0};
    CHECK_EQ(poll(&watch, 1, -1), 1);
    CHECK_EQ(recv(fds[0], bytes, 8, MSG_WAITALL), 5);
    CHECK_EQ(recv(fds[0], bytes, 8, 0), 0);
    close_pair(fds);
}

static void not_connected(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_ERRNO(shutdown(fd, SHUT_RD), ENOTCONN);
    CHECK_SYS(close(fd));
    fd = bound(SOCK_DGRAM);
    CHECK_ERRNO(shutdown(fd, SHUT_RD), ENOTCONN);
    CHECK_SYS(close(fd));
}

static void *accept_until_the_end(void *listener)
{
    CHECK_ERRNO(accept(*(int *)listener, NULL, NULL), EINVAL);
    return NULL;
}

static void wakes_every_acceptor(void)
{
    pthread_t acceptors[8];
    int listener = tcp_listener(5);
    for (int i = 0; i < 8; i++)
        acceptors[i] = start(accept_until_the_end, &listener);
    sleep_ms(20);
    CHECK_SYS(shutdown(listener, SHUT_RDWR));
    for (int i = 0; i < 8; i++)
        join(acceptors[i]);
    CHECK_SYS(listen(listener, 5));
    int client = tcp_connect(port_of(listener));
    int fd = accept(listener, NULL, NULL);
    CHECK_SYS(fd);
    CHECK_SYS(close(fd));
    CHECK_SYS(close(client));
    CHECK_SYS(close(listener));
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    on_streams("tcp", tcp_pair);
    on_streams("unix", unix_pair);
    printf("-- others\n");
    RUN(tcp_reads_after_shut_read);
    RUN(not_connected);
    RUN(wakes_every_acceptor);
    return 0;
}
