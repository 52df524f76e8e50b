/* recv and send on streams, TCP and unix: waiting, flags, the ways in which a connection ends. */
#include "fds.h"

static void (*pair)(int fds[2]);
static char buffer[4 << 20];

static void recv_waits_for_data(void)
{
    int fds[2];
    char bytes[8];
    pair(fds);
    int64_t begun = now_ns();
    pthread_t writer = later(30, put_byte, fds[1]);
    CHECK_EQ(recv(fds[0], bytes, sizeof bytes, 0), 1);
    CHECK_LASTED(begun, 25);
    join(writer);
    close_pair(fds);
}

static void a_big_send_is_complete(void)
{
    int fds[2];
    pair(fds);
    fill(buffer, sizeof buffer, 11, 0);
    struct drain drain = {fds[1], 11, 0};
    pthread_t reader = start(drain_body, &drain);
    CHECK_EQ(send(fds[0], buffer, sizeof buffer, 0), (int)sizeof buffer);
    CHECK_SYS(close(fds[0]));
    join(reader);
    CHECK_EQ(drain.total, (int)sizeof buffer);
    CHECK_SYS(close(fds[1]));
}

static void peek_leaves_the_data(void)
{
    int fds[2];
    char bytes[8] = "";
    pair(fds);
    pthread_t writer = later(20, put_byte, fds[1]);
    CHECK_EQ(recv(fds[0], bytes, 8, MSG_PEEK), 1);
    CHECK_EQ(recv(fds[0], bytes, 8, MSG_PEEK), 1);
    CHECK_EQ(recv(fds[0], bytes, 8, MSG_DONTWAIT), 1);
    CHECK_ERRNO(recv(fds[0], bytes, 8, MSG_DONTWAIT | MSG_PEEK), EAGAIN);
    join(writer);
    writer = later(20, put_byte, fds[1]);
    CHECK_EQ(recv(fds[0], bytes, 8, 0), 1);
    join(writer);
    close_pair(fds);
}

static void put_600(int fd) { CHECK_EQ(send(fd, buffer + 400, 600, 0), 600); }

static void waitall_waits_for_all(void)
{
    int fds[2];
    char bytes[1000];
    pair(fds);
    fill(buffer, 1000, 2, 0);
    CHECK_EQ(send(fds[1], buffer, 400, 0), 400);
    int64_t begun = now_ns();
    pthread_t writer = later(30, put_600, fds[1]);
    CHECK_EQ(recv(fds[0], bytes, 1000, MSG_WAITALL), 1000);
    CHECK_LASTED(begun, 25);
    check_fill(bytes, 1000, 2, 0);
    join(writer);

    CHECK_EQ(send(fds[1], buffer, 400, 0), 400);
    pthread_t closer = later(30, shut_write, fds[1]);
    CHECK_EQ(recv(fds[0], bytes, 1000, MSG_WAITALL), 400);
    CHECK_EQ(recv(fds[0], bytes, 1000, MSG_WAITALL), 0);
    join(closer);
    close_pair(fds);
}

static void waitall_with_a_time_limit(void)
{
    int fds[2];
    char bytes[1000];
    pair(fds);
    set_timeout(fds[0], SO_RCVTIMEO, 60);
    CHECK_EQ(send(fds[1], buffer, 400, 0), 400);
    int64_t begun = now_ns();
    CHECK_EQ(recv(fds[0], bytes, 1000, MSG_WAITALL), 400);
    CHECK_LASTED(begun, 50);
    CHECK_ERRNO(recv(fds[0], bytes, 1000, MSG_WAITALL), EAGAIN);
    close_pair(fds);
}

enum { SIZE = 3 << 20 };

static void *send_it(void *fd)
{
    CHECK_EQ(send(*(int *)fd, buffer, SIZE, 0), SIZE);
    return NULL;
}

static void waitall_larger_than_the_buffers(void)
{
    int fds[2];
    char *bytes = malloc(SIZE);
    pair(fds);
    fill(buffer, SIZE, 9, 0);
    pthread_t writer = start(send_it, &fds[1]);
    CHECK_EQ(recv(fds[0], bytes, SIZE, MSG_WAITALL), SIZE);
    check_fill(bytes, SIZE, 9, 0);
    join(writer);
    free(bytes);
    close_pair(fds);
}

static void dontwait_never_waits(void)
{
    int fds[2];
    char bytes[8];
    pair(fds);
    CHECK_ERRNO(recv(fds[0], bytes, 8, MSG_DONTWAIT), EAGAIN);
    CHECK_EQ(send(fds[1], "abc", 3, MSG_DONTWAIT), 3);
    CHECK_EQ(recv(fds[0], bytes, 8, MSG_DONTWAIT | MSG_WAITALL), 3);
    ssize_t n, total = 0;
    while ((n = send(fds[1], buffer, 65536, MSG_DONTWAIT)) > 0)
        total += n;
    CHECK_EQ(n, -1);
    CHECK_EQ(errno, EAGAIN);
    CHECK(total > 0);
    CHECK_EQ(fcntl(fds[1], F_GETFL), O_RDWR);
    close_pair(fds);
}

static void half_close(void)
{
    int fds[2];
    char bytes[8];
    pair(fds);
    CHECK_EQ(send(fds[0], "ask", 3, 0), 3);
    CHECK_SYS(shutdown(fds[0], SHUT_WR));
    CHECK_EQ(recv(fds[1], bytes, 8, MSG_WAITALL), 3);
    CHECK_EQ(recv(fds[1], bytes, 8, 0), 0);
    pthread_t writer = later(20, put_byte, fds[1]);
    CHECK_EQ(recv(fds[0], bytes, 8, 0), 1);
    join(writer);
    CHECK_ERRNO(send(fds[0], "x", 1, MSG_NOSIGNAL), EPIPE);
    pthread_t closer = later(20, close_it, fds[1]);
    CHECK_EQ(recv(fds[0], bytes, 8, 0), 0);
    join(closer);
    CHECK_SYS(close(fds[0]));
}

static void close_with_unread_data_resets(void)
{
    int fds[2];
    char bytes[8];
    pair(fds);
    CHECK_EQ(send(fds[0], "unread", 6, 0), 6);
    struct pollfd there = {fds[1], POLLIN, 0};
    CHECK_EQ(poll(&there, 1, -1), 1);
    pthread_t closer = later(20, close_it, fds[1]);
    CHECK_ERRNO(recv(fds[0], bytes, 8, 0), ECONNRESET);
    join(closer);
    CHECK_EQ(recv(fds[0], bytes, 8, 0), 0);
    CHECK_ERRNO(send(fds[0], "x", 1, MSG_NOSIGNAL), EPIPE);
    CHECK_SYS(close(fds[0]));
}

static void peer_is_gone(void)
{
    int fds[2];
    char bytes[8];
    pair(fds);
    CHECK_EQ(send(fds[1], "last", 4, 0), 4);
    CHECK_SYS(close(fds[1]));
    CHECK_EQ(recv(fds[0], bytes, 8, MSG_WAITALL), 4);
    CHECK_EQ(recv(fds[0], bytes, 8, 0), 0);
    CHECK_EQ(recv(fds[0], bytes, 8, MSG_DONTWAIT), 0);
    CHECK_SYS(close(fds[0]));
}

static void zero_and_errors(void)
{
    int fds[2];
    char bytes[8];
    CHECK_SYS(pipe(fds));
    CHECK_ERRNO(recv(fds[0], bytes, 8, 0), ENOTSOCK);
    CHECK_ERRNO(send(fds[1], bytes, 8, 0), ENOTSOCK);
    close_pair(fds);
    CHECK_ERRNO(recv(fds[0], bytes, 8, 0), EBADF);
    CHECK_ERRNO(send(-1, bytes, 8, 0), EBADF);
    pair(fds);
    CHECK_EQ(send(fds[1], bytes, 0, 0), 0);
    CHECK_EQ(send(fds[1], "ab", 2, 0), 2);
    CHECK_EQ(recv(fds[0], bytes, 0, 0), 0);
    CHECK_EQ(recv(fds[0], bytes, 8, 0), 2);
    CHECK_ERRNO(send(fds[1], bad_pointer(), 8, 0), EFAULT);
    CHECK_EQ(send(fds[1], "ab", 2, 0), 2);
    CHECK_ERRNO(recv(fds[0], bad_pointer(), 8, 0), EFAULT);
    close_pair(fds);
}

static void on_streams(const char *kind, void (*make)(int fds[2]))
{
    printf("-- %s\n", kind);
    pair = make;
    RUN(recv_waits_for_data);
    RUN(a_big_send_is_complete);
    RUN(peek_leaves_the_data);
    RUN(waitall_waits_for_all);
    RUN(waitall_with_a_time_limit);
    RUN(waitall_larger_than_the_buffers);
    RUN(dontwait_never_waits);
    RUN(half_close);
    RUN(close_with_unread_data_resets);
    RUN(peer_is_gone);
    RUN(zero_and_errors);
}

/* ---- TCP alone ---- */

static void reset_wakes_the_reader(void)
{
    int fds[2];
    char bytes[8];
    tcp_pair(fds);
    pthread_t closer = later(20, reset_it, fds[1]);
    CHECK_ERRNO(recv(fds[0], bytes, 8, 0), ECONNRESET);
    join(closer);
    CHECK_EQ(recv(fds[0], bytes, 8, 0), 0);
    CHECK_ERRNO(send(fds[0], "x", 1, MSG_NOSIGNAL), EPIPE);
    CHECK_SYS(close(fds[0]));
}

static void reset_cuts_a_send_short(void)
{
    int fds[2];
    tcp_pair(fds);
    pthread_t closer = later(30, reset_it, fds[1]);
    static char big[16 << 20];
    ssize_t sent = send(fds[0], big, sizeof big, MSG_NOSIGNAL);
    CHECK(sent > 0 && sent < (ssize_t)sizeof big);
    join(closer);
    /* The error was kept for the next call. */
    CHECK_ERRNO(send(fds[0], "x", 1, MSG_NOSIGNAL), ECONNRESET);
    CHECK_ERRNO(send(fds[0], "x", 1, MSG_NOSIGNAL), EPIPE);
    CHECK_SYS(close(fds[0]));
}

static void peek_for_all(void)
{
    int fds[2];
    char bytes[1000];
    tcp_pair(fds);
    fill(buffer, 1000, 2, 0);
    CHECK_EQ(send(fds[1], buffer, 400, 0), 400);
    pthread_t writer = later(30, put_600, fds[1]);
    CHECK_EQ(recv(fds[0], bytes, 1000, MSG_PEEK | MSG_WAITALL), 1000);
    check_fill(bytes, 1000, 2, 0);
    join(writer);
    CHECK_EQ(recv(fds[0], bytes, 1000, MSG_DONTWAIT), 1000);
    close_pair(fds);
}

static void trunc_discards(void)
{
    int fds[2];
    char bytes[8];
    tcp_pair(fds);
    CHECK_EQ(send(fds[1], "abcdef", 6, 0), 6);
    CHECK_EQ(recv(fds[0], NULL, 4, MSG_TRUNC | MSG_WAITALL), 4);
    CHECK_EQ(recv(fds[0], bytes, 8, 0), 2);
    CHECK(memcmp(bytes, "ef", 2) == 0);
    close_pair(fds);
}

static void out_of_band(void)
{
    int fds[2];
    char bytes[8];
    tcp_pair(fds);
    CHECK_ERRNO(recv(fds[0], bytes, 1, MSG_OOB), EINVAL);
    CHECK_EQ(send(fds[1], "ab!", 3, MSG_OOB), 3);
    struct pollfd urgent = {fds[0], POLLPRI, 0};
    CHECK_EQ(poll(&urgent, 1, -1), 1);
    CHECK_EQ(urgent.revents, POLLPRI);
    CHECK_EQ(recv(fds[0], bytes, 8, MSG_OOB), 1);
    CHECK_EQ(bytes[0], '!');
    CHECK_EQ(send(fds[1], "cd", 2, 0), 2);
    CHECK_EQ(recv(fds[0], bytes, 8, 0), 2);
    CHECK(memcmp(bytes, "ab", 2) == 0);
    CHECK_EQ(recv(fds[0], bytes, 8, 0), 2);
    CHECK(memcmp(bytes, "cd", 2) == 0);
    close_pair(fds);
}

static void not_connected(void)
{
    char bytes[8];
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_ERRNO(recv(fd, bytes, 8, 0), ENOTCONN);
    CHECK_ERRNO(send(fd, bytes, 8, MSG_NOSIGNAL), EPIPE);
    CHECK_SYS(close(fd));
    fd = tcp_listener(1);
    CHECK_ERRNO(recv(fd, bytes, 8, 0), ENOTCONN);
    CHECK_ERRNO(send(fd, bytes, 8, MSG_NOSIGNAL), EPIPE);
    CHECK_SYS(close(fd));
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_ERRNO(recv(fd, bytes, 8, 0), EINVAL);
    CHECK_ERRNO(send(fd, bytes, 8, MSG_NOSIGNAL), ENOTCONN);
    CHECK_SYS(close(fd));
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    on_streams("tcp", tcp_pair);
    on_streams("unix", unix_pair);
    printf("-- tcp alone\n");
    RUN(reset_wakes_the_reader);
    RUN(reset_cuts_a_send_short);
    RUN(peek_for_all);
    RUN(trunc_discards);
    RUN(out_of_band);
    RUN(not_connected);
    return 0;
}
