/* pread, pwrite and their vectored kin: regular files at an offset, descriptors that have none. */
#include "fds.h"
#include <sys/uio.h>

static void at_an_offset(void)
{
    int fd = temp_file();
    char buffer[16] = "";
    CHECK_EQ(write(fd, "0123456789", 10), 10);
    CHECK_EQ(pwrite(fd, "ABC", 3, 4), 3);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 10);
    CHECK_EQ(pread(fd, buffer, 5, 3), 5);
    CHECK(memcmp(buffer, "3ABC7", 5) == 0);
    CHECK_EQ(pread(fd, buffer, 16, 8), 2);
    CHECK_EQ(pread(fd, buffer, 16, 10), 0);
    CHECK_EQ(pread(fd, buffer, 16, 1000), 0);
    CHECK_EQ(pwrite(fd, "z", 1, 20), 1);
    CHECK_EQ(pread(fd, buffer, 16, 10), 11);
    CHECK_EQ(buffer[0], 0);
    CHECK_EQ(buffer[10], 'z');
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 10);
    CHECK_EQ(pread(fd, buffer, 0, 0), 0);
    CHECK_SYS(close(fd));
}

static void vectored(void)
{
    int fd = temp_file();
    char a[4], b[8];
    struct iovec out[] = {{"abc", 3}, {"defgh", 5}}, in[] = {{a, 4}, {b, 8}};
    CHECK_EQ(pwritev(fd, out, 2, 2), 8);
    CHECK_EQ(preadv(fd, in, 2, 2), 8);
    CHECK(memcmp(a, "abcd", 4) == 0 && memcmp(b, "efgh", 4) == 0);
    CHECK_EQ(pwritev2(fd, out, 2, 0, RWF_DSYNC), 8);
    CHECK_EQ(preadv2(fd, in, 1, 0, 0), 4);
    CHECK(memcmp(a, "abcd", 4) == 0);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 0);
    CHECK_EQ(pwritev2(fd, out, 1, -1, 0), 3);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 3);
    CHECK_EQ(preadv2(fd, in, 1, -1, 0), 4);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 7);
    CHECK_EQ(pwritev2(fd, out, 1, 0, RWF_APPEND), 3);
    CHECK_EQ(lseek(fd, 0, SEEK_END), 13);
    CHECK_SYS(close(fd));
}

static void without_an_offset(void)
{
    int fds[2];
    char byte = 0;
    struct iovec one = {&byte, 1};
    CHECK_SYS(pipe(fds));
    CHECK_ERRNO(pread(fds[0], &byte, 1, 0), ESPIPE);
    CHECK_ERRNO(pwrite(fds[1], &byte, 1, 0), ESPIPE);
    CHECK_ERRNO(preadv(fds[0], &one, 1, 0), ESPIPE);
    CHECK_ERRNO(pwritev(fds[1], &one, 1, 0), ESPIPE);
    close_pair(fds);
    unix_pair(fds);
    CHECK_ERRNO(pread(fds[0], &byte, 1, 0), ESPIPE);
    CHECK_ERRNO(pwrite(fds[1], &byte, 1, 0), ESPIPE);
    close_pair(fds);
}

static void current_position_of_a_pipe(void)
{
    int fds[2];
    char byte = 0;
    struct iovec one = {&byte, 1};
    CHECK_SYS(pipe(fds));
    CHECK_ERRNO(preadv2(fds[0], &one, 1, -1, RWF_NOWAIT), EAGAIN);
    pthread_t writer = later(20, put_byte, fds[1]);
    int64_t begun = now_ns();
    CHECK_EQ(preadv2(fds[0], &one, 1, -1, 0), 1);
    CHECK_LASTED(begun, 15);
    CHECK_EQ(byte, 'x');
    join(writer);
    CHECK_EQ(pwritev2(fds[1], &one, 1, -1, 0), 1);
    CHECK_EQ(read(fds[0], &byte, 1), 1);
    close_pair(fds);
}

static void bad_arguments(void)
{
    int fd = temp_file();
    char byte = 'q';
    struct iovec one = {&byte, 1};
    CHECK_ERRNO(pread(fd, &byte, 1, -1), EINVAL);
    CHECK_ERRNO(pwrite(fd, &byte, 1, -1), EINVAL);
    CHECK_ERRNO(preadv(fd, &one, 1, -1), EINVAL);
    CHECK_ERRNO(pwritev(fd, &one, 1, -1), EINVAL);
    CHECK_ERRNO(preadv2(fd, &one, 1, 0, 0x40000000), EOPNOTSUPP);
    CHECK_ERRNO(pread(-1, &byte, 1, 0), EBADF);
    CHECK_ERRNO(pwrite(-1, &byte, 1, 0), EBADF);
    CHECK_EQ(pwrite(fd, &byte, 1, 0), 1);
    CHECK_ERRNO(pread(fd, bad_pointer(), 1, 0), EFAULT);
    CHECK_ERRNO(pwrite(fd, bad_pointer(), 1, 0), EFAULT);
    CHECK_SYS(close(fd));
    fd = open("/", O_RDONLY | O_DIRECTORY);
    CHECK_ERRNO(pread(fd, &byte, 1, 0), EISDIR);
    CHECK_SYS(close(fd));
}

static void append_ignores_the_offset(void)
{
    char buffer[8];
    int fd = temp_file();
    CHECK_EQ(write(fd, "abc", 3), 3);
    CHECK_SYS(fcntl(fd, F_SETFL, O_APPEND));
    CHECK_EQ(pwrite(fd, "d", 1, 0), 1);
    CHECK_EQ(pread(fd, buffer, 8, 0), 4);
    CHECK(memcmp(buffer, "abcd", 4) == 0);
    CHECK_SYS(close(fd));
}

enum { THREADS = 16, BLOCKS = 64, BLOCK = 4096 };
static int shared_file;

static void *own_blocks(void *arg)
{
    int me = (int)(intptr_t)arg;
    char block[BLOCK], back[BLOCK];
    for (int i = 0; i < BLOCKS; i++) {
        fill(block, BLOCK, (unsigned)me, (size_t)i * BLOCK);
        off_t at = (off_t)(i * THREADS + me) * BLOCK;
        CHECK_EQ(pwrite(shared_file, block, BLOCK, at), BLOCK);
        CHECK_EQ(pread(shared_file, back, BLOCK, at), BLOCK);
        CHECK(memcmp(block, back, BLOCK) == 0);
    }
    return NULL;
}

static void many_threads_on_one_file(void)
{
    pthread_t threads[THREADS];
    shared_file = temp_file();
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(own_blocks, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    CHECK_EQ(lseek(shared_file, 0, SEEK_END), THREADS * BLOCKS * BLOCK);
    CHECK_EQ(lseek(shared_file, 0, SEEK_SET), 0);
    CHECK_SYS(close(shared_file));
}

int main(void)
{
    RUN(at_an_offset);
    RUN(vectored);
    RUN(without_an_offset);
    RUN(current_position_of_a_pipe);
    RUN(bad_arguments);
    RUN(append_ignores_the_offset);
    RUN(many_threads_on_one_file);
    return 0;
}
