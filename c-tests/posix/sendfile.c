/* sendfile: from a file into a socket whose reader is slow, offsets, errors. */
#include "fds.h"
#include <sys/sendfile.h>

enum { SIZE = 3000017 };

static int filled_file(void)
{
    int fd = temp_file();
    char *data = malloc(SIZE);
    fill(data, SIZE, 12, 0);
    write_all(fd, data, SIZE);
    free(data);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static void to_a_slow_reader_over(void (*pair)(int fds[2]), bool with_offset)
{
    int fds[2], file = filled_file();
    off_t offset = 0;
    size_t sent = 0;
    pair(fds);
    struct drain drain = {fds[1], 12, 0};
    pthread_t reader = start(drain_body, &drain);
    while (sent < SIZE) {
        ssize_t n = sendfile(fds[0], file, with_offset ? &offset : NULL, SIZE - sent);
        CHECK(n > 0);
        sent += (size_t)n;
    }
    CHECK_EQ(lseek(file, 0, SEEK_CUR), with_offset ? 0 : SIZE);
    CHECK_EQ(offset, with_offset ? SIZE : 0);
    CHECK_EQ(sendfile(fds[0], file, with_offset ? &offset : NULL, 100), 0);
    CHECK_EQ(fcntl(fds[0], F_GETFL), O_RDWR);
    CHECK_SYS(close(fds[0]));
    join(reader);
    CHECK_EQ(drain.total, SIZE);
    CHECK_SYS(close(fds[1]));
    CHECK_SYS(close(file));
}

static void to_tcp(void) { to_a_slow_reader_over(tcp_pair, true); }
static void to_tcp_by_position(void) { to_a_slow_reader_over(tcp_pair, false); }
static void to_unix(void) { to_a_slow_reader_over(unix_pair, true); }

static void between_files(void)
{
    int from = filled_file(), to = temp_file();
    char *data = malloc(SIZE);
    CHECK_EQ(sendfile(to, from, NULL, SIZE), SIZE);
    CHECK_EQ(pread(to, data, SIZE, 0), SIZE);
    check_fill(data, SIZE, 12, 0);
    free(data);
    CHECK_SYS(close(from));
    CHECK_SYS(close(to));
}

static void without_blocking(void)
{
    int fds[2], file = filled_file();
    ssize_t n;
    tcp_pair(fds);
    set_nonblock(fds[0], true);
    off_t offset = 0;
    while ((n = sendfile(fds[0], file, &offset, SIZE)) > 0)
        offset = 0;
    CHECK_EQ(n, -1);
    CHECK_EQ(errno, EAGAIN);
    close_pair(fds);
    CHECK_SYS(close(file));
}

static void errors(void)
{
    int fds[2], file = filled_file();
    off_t offset = -1;
    unix_pair(fds);
    CHECK_ERRNO(sendfile(-1, file, NULL, 10), EBADF);
    CHECK_ERRNO(sendfile(fds[0], -1, NULL, 10), EBADF);
    CHECK_ERRNO(sendfile(fds[0], file, &offset, 10), EINVAL);
    CHECK_ERRNO(sendfile(fds[0], file, bad_pointer(), 10), EFAULT);
    CHECK_ERRNO(sendfile(fds[0], fds[1], NULL, 10), EINVAL);
    CHECK_SYS(close(fds[1]));
    CHECK_ERRNO(sendfile(fds[0], file, NULL, 10), EPIPE);
    CHECK_SYS(close(fds[0]));
    CHECK_SYS(close(file));
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    RUN(to_tcp);
    RUN(to_tcp_by_position);
    RUN(to_unix);
    RUN(between_files);
    RUN(without_blocking);
    RUN(errors);
    return 0;
}
