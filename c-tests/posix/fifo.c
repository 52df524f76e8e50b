/* FIFOs: opening waits for the other side, reading and writing wait, ends are seen. */
#include "fds.h"

static char directory[64], path[96];

static void make(void)
{
    snprintf(path, sizeof path, "%s/fifo", directory);
    CHECK_SYS(mkfifo(path, 0600));
}

static void *open_to_read(void *arg)
{
    (void)arg;
    int fd = open(path, O_RDONLY);
    CHECK_SYS(fd);
    return (void *)(intptr_t)fd;
}

static void *open_to_write(void *arg)
{
    (void)arg;
    int fd = open(path, O_WRONLY);
    CHECK_SYS(fd);
    return (void *)(intptr_t)fd;
}

static void open_both(int fds[2])
{
    pthread_t reader = start(open_to_read, NULL);
    sleep_ms(10);
    fds[1] = open(path, O_WRONLY);
    CHECK_SYS(fds[1]);
    fds[0] = (int)(intptr_t)join(reader);
}

static void opening_waits(void)
{
    int fds[2];
    make();
    open_both(fds);
    CHECK_EQ(fcntl(fds[0], F_GETFL) & O_NONBLOCK, 0);
    close_pair(fds);
    /* The other way round. */
    pthread_t writer = start(open_to_write, NULL);
    sleep_ms(10);
    fds[0] = open(path, O_RDONLY);
    CHECK_SYS(fds[0]);
    fds[1] = (int)(intptr_t)join(writer);
    close_pair(fds);
    CHECK_SYS(unlink(path));
}

static void opening_without_waiting(void)
{
    make();
    CHECK_ERRNO(open(path, O_WRONLY | O_NONBLOCK), ENXIO);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    CHECK_SYS(reader);
    char byte;
    CHECK_EQ(read(reader, &byte, 1), 0);
    int writer = open(path, O_WRONLY | O_NONBLOCK);
    CHECK_SYS(writer);
    CHECK_ERRNO(read(reader, &byte, 1), EAGAIN);
    CHECK_EQ(write(writer, "x", 1), 1);
    CHECK_EQ(read(reader, &byte, 1), 1);
    CHECK_SYS(close(writer));
    CHECK_EQ(read(reader, &byte, 1), 0);
    CHECK_SYS(close(reader));
    CHECK_SYS(unlink(path));
}

static void reading_waits(void)
{
    int fds[2];
    char buffer[8];
    make();
    open_both(fds);
    int64_t begun = now_ns();
    pthread_t writer = later(30, put_byte, fds[1]);
    CHECK_EQ(read(fds[0], buffer, 8), 1);
    CHECK_LASTED(begun, 25);
    join(writer);
    pthread_t closer = later(20, close_it, fds[1]);
    CHECK_EQ(read(fds[0], buffer, 8), 0);
    join(closer);
    CHECK_SYS(close(fds[0]));
    CHECK_SYS(unlink(path));
}

static void writing_waits(void)
{
    enum { SIZE = 700001 };
    int fds[2];
    char *data = malloc(SIZE);
    make();
    open_both(fds);
    fill(data, SIZE, 31, 0);
    struct drain drain = {fds[0], 31, 0};
    pthread_t reader = start(drain_body, &drain);
    CHECK_EQ(write(fds[1], data, SIZE), SIZE);
    CHECK_SYS(close(fds[1]));
    join(reader);
    CHECK_EQ(drain.total, SIZE);
    CHECK_SYS(close(fds[0]));
    CHECK_SYS(unlink(path));
    free(data);
}

static void both_ends_in_one(void)
{
    char buffer[8];
    make();
    int fd = open(path, O_RDWR);
    CHECK_SYS(fd);
    pthread_t writer = later(20, put_byte, fd);
    CHECK_EQ(read(fd, buffer, 8), 1);
    join(writer);
    struct pollfd one = {fd, POLLIN | POLLOUT, 0};
    CHECK_EQ(poll(&one, 1, -1), 1);
    CHECK_EQ(one.revents, POLLOUT);
    one.events = POLLIN;
    CHECK_EQ(poll(&one, 1, 10), 0);
    CHECK_SYS(close(fd));
    CHECK_SYS(unlink(path));
}

/* Writers come and go; the reader sees an end between them and reads on. */
static void *write_and_go(void *arg)
{
    (void)arg;
    int fd = open(path, O_WRONLY);
    CHECK_SYS(fd);
    CHECK_EQ(write(fd, "guest", 5), 5);
    CHECK_SYS(close(fd));
    return NULL;
}

static void guests(void)
{
    char buffer[16];
    make();
    for (int i = 0; i < 20; i++) {
        pthread_t guest = start(write_and_go, NULL);
        int fd = open(path, O_RDONLY);
        CHECK_SYS(fd);
        CHECK_EQ(read_all(fd, buffer, sizeof buffer), 5);
        join(guest);
        CHECK_SYS(close(fd));
    }
    CHECK_SYS(unlink(path));
}

/* Several openers wait at once, while others go on. */
static void several_open(void)
{
    enum { READERS = 6 };
    pthread_t readers[READERS];
    int pipes[2];
    char byte;
    make();
    for (int i = 0; i < READERS; i++)
        readers[i] = start(open_to_read, NULL);
    CHECK_SYS(pipe(pipes));
    for (int i = 0; i < 10; i++) {
        pthread_t writer = later(1, put_byte, pipes[1]);
        CHECK_EQ(read(pipes[0], &byte, 1), 1);
        join(writer);
    }
    int writer = open(path, O_WRONLY);
    CHECK_SYS(writer);
    for (int i = 0; i < READERS; i++)
        CHECK_SYS(close((int)(intptr_t)join(readers[i])));
    CHECK_SYS(close(writer));
    close_pair(pipes);
    CHECK_SYS(unlink(path));
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    temp_dir(directory);
    RUN(opening_waits);
    RUN(opening_without_waiting);
    RUN(reading_waits);
    RUN(writing_waits);
    RUN(both_ends_in_one);
    RUN(guests);
    RUN(several_open);
    CHECK_SYS(rmdir(directory));
    return 0;
}
