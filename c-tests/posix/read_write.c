/* read and write: pipes that are empty, full, closed; counts and errors. */
#include "fds.h"

static volatile sig_atomic_t pipe_signals;

static void count_signal(int signal)
{
    (void)signal;
    pipe_signals++;
}

static void read_waits_for_data(void)
{
    int fds[2];
    char buffer[16];
    CHECK_SYS(pipe(fds));
    int64_t begun = now_ns();
    pthread_t writer = later(30, put_byte, fds[1]);
    CHECK_EQ(read(fds[0], buffer, sizeof buffer), 1);
    CHECK_LASTED(begun, 25);
    CHECK_EQ(buffer[0], 'x');
    join(writer);
    close_pair(fds);
}

static void read_returns_what_is_there(void)
{
    int fds[2];
    char buffer[100];
    CHECK_SYS(pipe(fds));
    CHECK_EQ(write(fds[1], "hello", 5), 5);
    CHECK_EQ(read(fds[0], buffer, 2), 2);
    CHECK(memcmp(buffer, "he", 2) == 0);
    CHECK_EQ(read(fds[0], buffer, sizeof buffer), 3);
    CHECK(memcmp(buffer, "llo", 3) == 0);
    CHECK_EQ(write(fds[1], "a", 1), 1);
    CHECK_EQ(write(fds[1], "b", 1), 1);
    CHECK_EQ(read(fds[0], buffer, sizeof buffer), 2);
    close_pair(fds);
}

static void read_sees_the_end(void)
{
    int fds[2];
    char buffer[16];
    CHECK_SYS(pipe(fds));
    int64_t begun = now_ns();
    pthread_t closer = later(30, close_it, fds[1]);
    CHECK_EQ(read(fds[0], buffer, sizeof buffer), 0);
    CHECK_LASTED(begun, 25);
    CHECK_EQ(read(fds[0], buffer, sizeof buffer), 0);
    join(closer);
    CHECK_SYS(close(fds[0]));
}

static void data_comes_before_the_end(void)
{
    int fds[2];
    char buffer[16];
    CHECK_SYS(pipe(fds));
    CHECK_EQ(write(fds[1], "last", 4), 4);
    CHECK_SYS(close(fds[1]));
    CHECK_EQ(read(fds[0], buffer, sizeof buffer), 4);
    CHECK_EQ(read(fds[0], buffer, sizeof buffer), 0);
    CHECK_SYS(close(fds[0]));
}

static void write_waits_for_room_and_writes_everything(void)
{
    enum { SIZE = 1000003 };
    int fds[2];
    char *data = malloc(SIZE);
    CHECK_SYS(pipe(fds));
    fill(data, SIZE, 7, 0);
    struct drain drain = {fds[0], 7, 0};
    pthread_t reader = start(drain_body, &drain);
    CHECK_EQ(write(fds[1], data, SIZE), SIZE);
    CHECK_SYS(close(fds[1]));
    join(reader);
    CHECK_EQ(drain.total, SIZE);
    CHECK_SYS(close(fds[0]));
    free(data);
}

enum { WRITERS = 8, EACH = 300, RECORD = 1000 };

struct writer {
    int fd;
    char letter;
};

static void *write_records(void *arg)
{
    struct writer *writer = arg;
    char record[RECORD];
    memset(record, writer->letter, RECORD);
    for (int n = 0; n < EACH; n++)
        CHECK_EQ(write(writer->fd, record, RECORD), RECORD);
    return NULL;
}

static void small_writes_are_atomic(void)
{
    int fds[2], counts[WRITERS] = {0};
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS];
    char record[RECORD];
    CHECK_SYS(pipe(fds));
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){fds[1], (char)('a' + i)};
        threads[i] = start(write_records, &writers[i]);
    }
    for (int n = 0; n < WRITERS * EACH; n++) {
        CHECK_EQ(read_all(fds[0], record, RECORD), RECORD);
        for (int i = 1; i < RECORD; i++)
            CHECK_EQ(record[i], record[0]);
        counts[record[0] - 'a']++;
    }
    for (int i = 0; i < WRITERS; i++) {
        join(threads[i]);
        CHECK_EQ(counts[i], EACH);
    }
    close_pair(fds);
}

static void writing_to_nobody(void)
{
    int fds[2];
    CHECK_SYS(pipe(fds));
    CHECK_SYS(close(fds[0]));
    pipe_signals = 0;
    CHECK_ERRNO(write(fds[1], "x", 1), EPIPE);
    CHECK_EQ(pipe_signals, 1);
    CHECK_EQ(write(fds[1], "x", 0), 0);
    CHECK_EQ(pipe_signals, 1);
    signal(SIGPIPE, SIG_IGN);
    CHECK_ERRNO(write(fds[1], "x", 1), EPIPE);
    signal(SIGPIPE, count_signal);
    CHECK_EQ(pipe_signals, 1);
    CHECK_SYS(close(fds[1]));
}

static void reader_leaves_a_waiting_writer(void)
{
    int fds[2];
    static char data[200000];
    CHECK_SYS(pipe(fds));
    int room = fcntl(fds[1], F_GETPIPE_SZ);
    pipe_signals = 0;
    pthread_t closer = later(30, close_it, fds[0]);
    CHECK_EQ(write(fds[1], data, sizeof data), room);
    CHECK_EQ(pipe_signals, 1);
    CHECK_ERRNO(write(fds[1], data, 1), EPIPE);
    CHECK_EQ(pipe_signals, 2);
    join(closer);
    CHECK_SYS(close(fds[1]));

    CHECK_SYS(pipe(fds));
    CHECK_EQ(write(fds[1], data, (size_t)room), room);
    closer = later(30, close_it, fds[0]);
    CHECK_ERRNO(write(fds[1], data, 10), EPIPE);
    CHECK_EQ(pipe_signals, 3);
    join(closer);
    CHECK_SYS(close(fds[1]));
}

static void zero_bytes(void)
{
    int fds[2];
    char buffer[4];
    CHECK_SYS(pipe(fds));
    CHECK_EQ(read(fds[0], buffer, 0), 0);
    CHECK_EQ(write(fds[1], buffer, 0), 0);
    CHECK_EQ(write(fds[1], "ab", 2), 2);
    CHECK_EQ(read(fds[0], buffer, 0), 0);
    CHECK_EQ(read(fds[0], buffer, 4), 2);
    close_pair(fds);
    unix_pair(fds);
    CHECK_EQ(write(fds[1], buffer, 0), 0);
    CHECK_EQ(write(fds[1], "ab", 2), 2);
    CHECK_EQ(read(fds[0], buffer, 4), 2);
    close_pair(fds);
}

static void bad_descriptors(void)
{
    int fds[2];
    char buffer[4] = "";
    CHECK_ERRNO(read(-1, buffer, 4), EBADF);
    CHECK_ERRNO(write(-1, buffer, 4), EBADF);
    CHECK_ERRNO(read(1000000, buffer, 4), EBADF);
    CHECK_ERRNO(write(0x7fffffff, buffer, 4), EBADF);
    CHECK_ERRNO(read(-1, buffer, 0), EBADF);
    CHECK_SYS(pipe(fds));
    CHECK_ERRNO(read(fds[1], buffer, 4), EBADF);
    CHECK_ERRNO(write(fds[0], buffer, 4), EBADF);
    close_pair(fds);
    CHECK_ERRNO(read(fds[0], buffer, 4), EBADF);
    CHECK_ERRNO(write(fds[1], buffer, 4), EBADF);
}

static void bad_pointers(void)
{
    int fds[2];
    CHECK_SYS(pipe(fds));
    CHECK_ERRNO(write(fds[1], bad_pointer(), 4), EFAULT);
    CHECK_EQ(write(fds[1], "abcd", 4), 4);
    CHECK_ERRNO(read(fds[0], bad_pointer(), 4), EFAULT);
    close_pair(fds);
    tcp_pair(fds);
    CHECK_ERRNO(write(fds[1], bad_pointer(), 4), EFAULT);
    CHECK_EQ(write(fds[1], "abcd", 4), 4);
    CHECK_ERRNO(read(fds[0], bad_pointer(), 4), EFAULT);
    close_pair(fds);
}

static void files_and_devices(void)
{
    char buffer[16];
    int fd = open("/", O_RDONLY | O_DIRECTORY);
    CHECK_ERRNO(read(fd, buffer, 4), EISDIR);
    CHECK_SYS(close(fd));
    fd = open("/dev/null", O_RDWR);
    CHECK_EQ(read(fd, buffer, 4), 0);
    CHECK_EQ(write(fd, buffer, 4), 4);
    CHECK_SYS(close(fd));
    fd = open("/dev/zero", O_RDWR);
    memset(buffer, 1, sizeof buffer);
    CHECK_EQ(read(fd, buffer, 4), 4);
    CHECK_EQ(buffer[3], 0);
    CHECK_EQ(buffer[4], 1);
    CHECK_SYS(close(fd));
    fd = open("/dev/full", O_RDWR);
    CHECK_ERRNO(write(fd, buffer, 4), ENOSPC);
    CHECK_SYS(close(fd));
    fd = temp_file();
    CHECK_EQ(write(fd, "0123456789", 10), 10);
    CHECK_EQ(read(fd, buffer, 4), 0);
    CHECK_EQ(lseek(fd, 4, SEEK_SET), 4);
    CHECK_EQ(read(fd, buffer, 16), 6);
    CHECK(memcmp(buffer, "456789", 6) == 0);
    CHECK_SYS(close(fd));
    fd = open("/dev/null", O_PATH);
    CHECK_ERRNO(read(fd, buffer, 4), EBADF);
    CHECK_SYS(close(fd));
}

static void errno_survives_success(void)
{
    int fds[2];
    char buffer[4];
    CHECK_SYS(pipe(fds));
    pthread_t writer = later(20, put_byte, fds[1]);
    errno = 77;
    ssize_t n = read(fds[0], buffer, 4);
    int kept = errno;
    CHECK_EQ(n, 1);
    CHECK_EQ(kept, 77);
    join(writer);
    close_pair(fds);
}

int main(void)
{
    struct sigaction action = {.sa_handler = count_signal};
    sigaction(SIGPIPE, &action, NULL);
    RUN(read_waits_for_data);
    RUN(read_returns_what_is_there);
    RUN(read_sees_the_end);
    RUN(data_comes_before_the_end);
    RUN(write_waits_for_room_and_writes_everything);
    RUN(small_writes_are_atomic);
    RUN(writing_to_nobody);
    RUN(reader_leaves_a_waiting_writer);
    RUN(zero_bytes);
    RUN(bad_descriptors);
    RUN(bad_pointers);
    RUN(files_and_devices);
    RUN(errno_survives_success);
    return 0;
}
