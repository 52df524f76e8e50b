/* readv and writev: scatter, gather, waiting, limits. */
#include "fds.h"
#include <limits.h>
#include <sys/uio.h>

static void gathers_and_scatters(void)
{
    int fds[2];
    char a[3], b[1], c[10];
    CHECK_SYS(pipe(fds));
    struct iovec out[] = {{"hel", 3}, {"", 0}, {"lo wor", 6}, {"ld", 2}};
    struct iovec in[] = {{a, 3}, {b, 0}, {b, 1}, {c, 10}};
    CHECK_EQ(writev(fds[1], out, 4), 11);
    CHECK_EQ(readv(fds[0], in, 4), 11);
    CHECK(memcmp(a, "hel", 3) == 0 && b[0] == 'l' && memcmp(c, "o world", 7) == 0);
    close_pair(fds);
}

static void readv_waits(void)
{
    int fds[2];
    char a[1], b[8];
    struct iovec in[] = {{a, 1}, {b, 8}};
    CHECK_SYS(pipe(fds));
    int64_t begun = now_ns();
    pthread_t writer = later(30, put_byte, fds[1]);
    CHECK_EQ(readv(fds[0], in, 2), 1);
    CHECK_LASTED(begun, 25);
    join(writer);
    pthread_t closer = later(20, close_it, fds[1]);
    CHECK_EQ(readv(fds[0], in, 2), 0);
    join(closer);
    CHECK_SYS(close(fds[0]));
}

static void writev_writes_everything(int fds[2])
{
    enum { PART = 333331, PARTS = 5 };
    struct iovec out[PARTS + 1];
    char *data = malloc((size_t)PART * PARTS);
    fill(data, (size_t)PART * PARTS, 3, 0);
    for (int i = 0; i < PARTS; i++)
        out[i] = (struct iovec){data + (size_t)i * PART, PART};
    out[PARTS] = (struct iovec){NULL, 0};
    struct drain drain = {fds[0], 3, 0};
    pthread_t reader = start(drain_body, &drain);
    CHECK_EQ(writev(fds[1], out, PARTS + 1), PART * PARTS);
    for (int i = 0; i < PARTS; i++)
        CHECK(out[i].iov_base == data + (size_t)i * PART && out[i].iov_len == PART);
    CHECK_SYS(close(fds[1]));
    join(reader);
    CHECK_EQ(drain.total, PART * PARTS);
    CHECK_SYS(close(fds[0]));
    free(data);
}

static void writev_on_a_pipe(void)
{
    int fds[2];
    CHECK_SYS(pipe(fds));
    writev_writes_everything(fds);
}

static void writev_on_tcp(void)
{
    int fds[2];
    tcp_pair(fds);
    writev_writes_everything(fds);
}

static void writev_on_unix(void)
{
    int fds[2];
    unix_pair(fds);
    writev_writes_everything(fds);
}

static void many_small_parts(void)
{
    int fds[2];
    static char data[IOV_MAX * 100], back[IOV_MAX * 100];
    static struct iovec parts[IOV_MAX + 1];
    fill(data, sizeof data, 5, 0);
    CHECK_SYS(pipe(fds));
    CHECK_SYS(fcntl(fds[0], F_SETPIPE_SZ, 262144));
    for (int i = 0; i < IOV_MAX; i++)
        parts[i] = (struct iovec){data + i * 100, 100};
    CHECK_EQ(writev(fds[1], parts, IOV_MAX), (int)sizeof data);
    for (int i = 0; i < IOV_MAX; i++)
        parts[i] = (struct iovec){back + i * 100, 100};
    CHECK_EQ(readv(fds[0], parts, IOV_MAX), (int)sizeof data);
    check_fill(back, sizeof back, 5, 0);
    CHECK_ERRNO(writev(fds[1], parts, IOV_MAX + 1), EINVAL);
    CHECK_ERRNO(readv(fds[0], parts, IOV_MAX + 1), EINVAL);
    close_pair(fds);
}

static void bad_arguments(void)
{
    int fds[2];
    char byte;
    struct iovec one = {&byte, 1}, huge[2] = {{&byte, SSIZE_MAX}, {&byte, SSIZE_MAX}}, bad = {bad_pointer(), 4};
    volatile int minus = -1;
    CHECK_SYS(pipe(fds));
    CHECK_EQ(readv(fds[0], &one, 0), 0);
    CHECK_EQ(writev(fds[1], &one, 0), 0);
    CHECK_ERRNO(readv(fds[0], &one, minus), EINVAL);
    CHECK_ERRNO(writev(fds[1], &one, minus), EINVAL);
    huge[0].iov_len = (size_t)-1;
    CHECK_ERRNO(writev(fds[1], huge, 1), EINVAL);
    CHECK_ERRNO(writev(fds[1], &bad, 1), EFAULT);
    CHECK_ERRNO(readv(-1, &one, 1), EBADF);
    CHECK_ERRNO(writev(-1, &one, 1), EBADF);
    CHECK_ERRNO(readv(fds[1], &one, 1), EBADF);
    CHECK_ERRNO(writev(fds[0], &one, 1), EBADF);
    close_pair(fds);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    RUN(gathers_and_scatters);
    RUN(readv_waits);
    RUN(writev_on_a_pipe);
    RUN(writev_on_tcp);
    RUN(writev_on_unix);
    RUN(many_small_parts);
    RUN(bad_arguments);
    return 0;
}
