/* Named FIFOs: reads and writes that wait, ends that come and go. */
#include "fds.h"

static char dir[64], path[96];

static void make_fifo(void)
{
    temp_dir(dir);
    snprintf(path, sizeof path, "%s/fifo", dir);
    CHECK_SYS(mkfifo(path, 0600));
}

static void remove_fifo(void)
{
    CHECK_SYS(unlink(path));
    CHECK_SYS(rmdir(dir));
}

static void both_ends_in_one(void)
{
    char byte;
    make_fifo();
    int fd = open(path, O_RDWR);
    CHECK_SYS(fd);
    int64_t begun = now_ns();
    pthread_t writer = later(30, put_byte, fd);
    CHECK_EQ(read(fd, &byte, 1), 1);
    CHECK_LASTED(begun, 25);
    join(writer);
    CHECK_SYS(close(fd));
    remove_fifo();
}

static void a_big_write_is_complete(void)
{
    enum { SIZE = 500009 };
    make_fifo();
    char *data = malloc(SIZE);
    fill(data, SIZE, 8, 0);
    int reads = open(path, O_RDONLY | O_NONBLOCK), writes = open(path, O_WRONLY);
    set_nonblock(reads, false);
    struct drain drain = {reads, 8, 0};
    pthread_t reader = start(drain_body, &drain);
    CHECK_EQ(write(writes, data, SIZE), SIZE);
    CHECK_SYS(close(writes));
    join(reader);
    CHECK_EQ(drain.total, SIZE);
    CHECK_SYS(close(reads));
    free(data);
    remove_fifo();
}

static void ends_come_and_go(void)
{
    char byte;
    make_fifo();
    CHECK_ERRNO(open(path, O_WRONLY | O_NONBLOCK), ENXIO);
    int reads = open(path, O_RDONLY | O_NONBLOCK);
    CHECK_EQ(read(reads, &byte, 1), 0);
    for (int i = 0; i < 20; i++) {
        int writes = open(path, O_WRONLY);
        CHECK_ERRNO(read(reads, &byte, 1), EAGAIN);
        set_nonblock(reads, false);
        pthread_t writer = later(2, put_byte, writes);
        CHECK_EQ(read(reads, &byte, 1), 1);
        join(writer);
        pthread_t closer = later(2, close_it, writes);
        CHECK_EQ(read(reads, &byte, 1), 0);
        join(closer);
        CHECK_EQ(read(reads, &byte, 1), 0);
        set_nonblock(reads, true);
    }
    CHECK_SYS(close(reads));
    remove_fifo();
}

/* Without a writer a blocking read is at the end, though poll does not say so before there ever was one. */
static void never_a_writer(void)
{
    char byte;
    make_fifo();
    int reads = open(path, O_RDONLY | O_NONBLOCK);
    struct pollfd watch = {reads, POLLIN, 0};
    set_nonblock(reads, false);
    CHECK_EQ(poll(&watch, 1, 0), 0);
    CHECK_EQ(read(reads, &byte, 1), 0);
    CHECK_SYS(close(reads));
    remove_fifo();
}

static void polled(void)
{
    char byte;
    make_fifo();
    int reads = open(path, O_RDONLY | O_NONBLOCK), writes = open(path, O_WRONLY | O_NONBLOCK);
    struct pollfd watch = {reads, POLLIN, 0};
    pthread_t writer = later(20, put_byte, writes);
    CHECK_EQ(poll(&watch, 1, -1), 1);
    CHECK_EQ(watch.revents, POLLIN);
    CHECK_EQ(read(reads, &byte, 1), 1);
    join(writer);
    pthread_t closer = later(20, close_it, writes);
    CHECK_EQ(poll(&watch, 1, -1), 1);
    CHECK_EQ(watch.revents, POLLHUP);
    join(closer);
    CHECK_SYS(close(reads));
    remove_fifo();
}

static void several_readers(void)
{
    make_fifo();
    int fd = open(path, O_RDWR);
    pthread_t readers[8];
    for (int i = 0; i < 8; i++)
        readers[i] = later(0, get_byte, fd);
    sleep_ms(20);
    CHECK_EQ(write(fd, "12345678", 8), 8);
    for (int i = 0; i < 8; i++)
        join(readers[i]);
    struct pollfd watch = {fd, POLLIN, 0};
    CHECK_EQ(poll(&watch, 1, 0), 0);
    CHECK_SYS(close(fd));
    remove_fifo();
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    RUN(both_ends_in_one);
    RUN(a_big_write_is_complete);
    RUN(ends_come_and_go);
    RUN(never_a_writer);
    RUN(polled);
    RUN(several_readers);
    return 0;
}
