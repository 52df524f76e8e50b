/* sendfile: a file through a socket or pipe whose other end takes its time; offsets; errors. */
#include "fds.h"
#include <sys/sendfile.h>

enum { SIZE = 4 << 20 };

static int file_of(size_t size, unsigned seed)
{
    int fd = temp_file();
    char *data = malloc(size);
    fill(data, size, seed, 0);
    write_all(fd, data, size);
    free(data);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static void send_everything(int to, int from)
{
    size_t total = 0;
    while (total < SIZE) {
        ssize_t n = sendfile(to, from, NULL, SIZE - total);
        CHECK_SYS(n);
        CHECK(n > 0);
        total += (size_t)n;
        CHECK_EQ(lseek(from, 0, SEEK_CUR), total);
    }
    CHECK_EQ(sendfile(to, from, NULL, 1), 0);
}

static void to_a_slow_reader(int fds[2])
{
    int file = file_of(SIZE, 4);
    struct drain drain = {fds[0], 4, 0};
    pthread_t reader = start(drain_body, &drain);
    send_everything(fds[1], file);
    CHECK_SYS(close(fds[1]));
    join(reader);
    CHECK_EQ(drain.total, SIZE);
    CHECK_SYS(close(fds[0]));
    CHECK_SYS(close(file));
}

static void to_tcp(void)
{
    int fds[2];
    tcp_pair(fds);
    to_a_slow_reader(fds);
}

static void to_a_unix_socket(void)
{
    int fds[2];
    unix_pair(fds);
    to_a_slow_reader(fds);
}

static void to_a_pipe(void)
{
    int fds[2];
    CHECK_SYS(pipe(fds));
    to_a_slow_reader(fds);
}

static void with_an_offset(void)
{
    int fds[2], file = file_of(1000, 6);
    char buffer[1000];
    off_t offset = 100;
    unix_pair(fds);
    CHECK_EQ(sendfile(fds[1], file, &offset, 300), 300);
    CHECK_EQ(offset, 400);
    CHECK_EQ(lseek(file, 0, SEEK_CUR), 0);
    CHECK_EQ(read_all(fds[0], buffer, 300), 300);
    check_fill(buffer, 300, 6, 100);
    offset = 900;
    CHECK_EQ(sendfile(fds[1], file, &offset, 1000), 100);
    CHECK_EQ(sendfile(fds[1], file, &offset, 1000), 0);
    off64_t wide = 10;
    CHECK_EQ(sendfile64(fds[1], file, &wide, 5), 5);
    CHECK_EQ(wide, 15);
    CHECK_EQ(read_all(fds[0], buffer, 105), 105);
    close_pair(fds);
    CHECK_SYS(close(file));
}

static void from_file_to_file(void)
{
    int from = file_of(100000, 8), to = temp_file();
    char *data = malloc(100000);
    CHECK_EQ(sendfile(to, from, NULL, 100000), 100000);
    CHECK_EQ(pread(to, data, 100000, 0), 100000);
    check_fill(data, 100000, 8, 0);
    free(data);
    CHECK_SYS(close(from));
    CHECK_SYS(close(to));
}

static void nonblocking(void)
{
    int fds[2], file = file_of(SIZE, 4);
    off_t offset = 0;
    unix_pair(fds);
    set_nonblock(fds[1], true);
    for (;;) {
        ssize_t n = sendfile(fds[1], file, &offset, SIZE);
        if (n == -1)
            break;
        CHECK(n > 0);
    }
    CHECK_EQ(errno, EAGAIN);
    CHECK(offset > 0 && offset < SIZE);
    close_pair(fds);
    CHECK_SYS(close(file));
}

static void errors(void)
{
    int fds[2], file = file_of(10, 4);
    off_t offset = -1;
    unix_pair(fds);
    CHECK_ERRNO(sendfile(fds[1], file, &offset, 4), EINVAL);
    CHECK_ERRNO(sendfile(fds[1], -1, NULL, 4), EBADF);
    CHECK_ERRNO(sendfile(-1, file, NULL, 4), EBADF);
    CHECK_ERRNO(sendfile(fds[1], file, bad_pointer(), 4), EFAULT);
    offset = 0;
    CHECK_ERRNO(sendfile(file, fds[0], &offset, 4), ESPIPE);
    CHECK_SYS(close(fds[0]));
    CHECK_ERRNO(sendfile(fds[1], file, NULL, 4), EPIPE);
    CHECK_SYS(close(fds[1]));
    CHECK_SYS(close(file));
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    RUN(to_tcp);
    RUN(to_a_unix_socket);
    RUN(to_a_pipe);
    RUN(with_an_offset);
    RUN(from_file_to_file);
    RUN(nonblocking);
    RUN(errors);
    return 0;
}
