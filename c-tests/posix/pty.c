/* Pseudo terminals: lines in canonical mode, VMIN and VTIME in raw mode, hang-up. */
#include "fds.h"
#include <sys/ioctl.h>
#include <termios.h>

static int master, slave;

static void open_pty(void)
{
    master = posix_openpt(O_RDWR | O_NOCTTY);
    CHECK_SYS(master);
    CHECK_SYS(grantpt(master));
    CHECK_SYS(unlockpt(master));
    slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    CHECK_SYS(slave);
}

static void close_pty(void)
{
    CHECK_SYS(close(slave));
    CHECK_SYS(close(master));
}

static void mode(bool canonical, int vmin, int vtime)
{
    struct termios term;
    CHECK_SYS(tcgetattr(slave, &term));
    if (canonical)
        term.c_lflag |= ICANON | ECHO;
    else {
        cfmakeraw(&term);
        term.c_cc[VMIN] = (cc_t)vmin;
        term.c_cc[VTIME] = (cc_t)vtime;
    }
    CHECK_SYS(tcsetattr(slave, TCSANOW, &term));
}

static void type_line(int fd)
{
    CHECK_EQ(write(fd, "hel", 3), 3);
    sleep_ms(20);
    CHECK_EQ(write(fd, "lo\n", 3), 3);
}

static void lines(void)
{
    char bytes[64];
    open_pty();
    CHECK_EQ(isatty(slave), 1);
    int64_t begun = now_ns();
    pthread_t typist = later(20, type_line, master);
    CHECK_EQ(read(slave, bytes, sizeof bytes), 6);
    CHECK_LASTED(begun, 35);
    CHECK(memcmp(bytes, "hello\n", 6) == 0);
    join(typist);
    CHECK_EQ(read_all(master, bytes, 7), 7); /* the echo */
    CHECK(memcmp(bytes, "hello\r\n", 7) == 0);
    CHECK_EQ(write(master, "two\nlines\n", 10), 10);
    CHECK_EQ(read(slave, bytes, sizeof bytes), 4);
    CHECK_EQ(read(slave, bytes, 3), 3);
    CHECK_EQ(read(slave, bytes, sizeof bytes), 3);
    CHECK(memcmp(bytes, "es\n", 3) == 0);
    CHECK_EQ(write(master, "\004", 1), 1);
    CHECK_EQ(read(slave, bytes, sizeof bytes), 0);
    pthread_t writer = later(20, type_line, master);
    CHECK_EQ(read(slave, bytes, sizeof bytes), 6);
    join(writer);
    close_pty();
}

static void output_reaches_the_master(void)
{
    char bytes[64];
    open_pty();
    int64_t begun = now_ns();
    pthread_t writer = later(30, put_byte, slave);
    CHECK_EQ(read(master, bytes, sizeof bytes), 1);
    CHECK_LASTED(begun, 25);
    join(writer);
    CHECK_EQ(write(slave, "a\n", 2), 2);
    CHECK_EQ(read_all(master, bytes, 3), 3);
    CHECK(memcmp(bytes, "a\r\n", 3) == 0);
    close_pty();
}

static void raw_bytes(void)
{
    char bytes[64];
    open_pty();
    mode(false, 1, 0);
    pthread_t typist = later(20, put_byte, master);
    CHECK_EQ(read(slave, bytes, sizeof bytes), 1);
    join(typist);
    mode(false, 0, 0);
    CHECK_EQ(read(slave, bytes, sizeof bytes), 0);
    CHECK_EQ(write(master, "abc", 3), 3);
    struct pollfd watch = {slave, POLLIN, 0};
    CHECK_EQ(poll(&watch, 1, -1), 1);
    CHECK_EQ(read(slave, bytes, sizeof bytes), 3);
    close_pty();
}

static void raw_with_a_time_limit(void)
{
    char bytes[64];
    open_pty();
    mode(false, 0, 1);
    int64_t begun = now_ns();
    CHECK_EQ(read(slave, bytes, sizeof bytes), 0);
    CHECK_LASTED(begun, 90);
    mode(false, 0, 100);
    pthread_t typist = later(20, put_byte, master);
    CHECK_EQ(read(slave, bytes, sizeof bytes), 1);
    join(typist);
    close_pty();
}

static void type_slowly(int fd)
{
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(write(fd, "x", 1), 1);
        sleep_ms(10);
    }
}

static void raw_with_a_minimum(void)
{
    char bytes[64];
    open_pty();
    mode(false, 3, 0);
    int64_t begun = now_ns();
    pthread_t typist = later(10, type_slowly, master);
    CHECK_EQ(read(slave, bytes, sizeof bytes), 3);
    CHECK_LASTED(begun, 25);
    join(typist);
    close_pty();
}

static void nonblocking(void)
{
    char bytes[8];
    open_pty();
    set_nonblock(slave, true);
    set_nonblock(master, true);
    CHECK_ERRNO(read(slave, bytes, 8), EAGAIN);
    CHECK_ERRNO(read(master, bytes, 8), EAGAIN);
    CHECK_EQ(fcntl(slave, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    close_pty();
}

static void hang_up(void)
{
    char bytes[8];
    open_pty();
    pthread_t closer = later(20, close_it, master);
    /* EIO when the hang-up finds the reader in the kernel, the end when the reader comes later. */
    ssize_t n = read(slave, bytes, 8);
    CHECK(n == 0 || (n == -1 && errno == EIO));
    join(closer);
    CHECK_EQ(read(slave, bytes, 8), 0);
    CHECK_ERRNO(write(slave, "x", 1), EIO);
    CHECK_SYS(close(slave));
    open_pty();
    closer = later(20, close_it, slave);
    CHECK_ERRNO(read(master, bytes, 8), EIO);
    join(closer);
    CHECK_SYS(close(master));
}

enum { SIZE = 300000 };

static void *drain_some(void *arg)
{
    struct drain *drain = arg;
    char bite[1000];
    while (drain->total < SIZE) {
        ssize_t n = read(drain->fd, bite, sizeof bite);
        CHECK_SYS(n);
        check_fill(bite, (size_t)n, drain->seed, drain->total);
        drain->total += (size_t)n;
        if (drain->total % 16 == 0)
            sleep_ms(1);
    }
    return NULL;
}

/* The master's reader is slow, and what the slave prints has to wait. */
static void much_output(void)
{
    open_pty();
    mode(false, 1, 0);
    char *data = malloc(SIZE);
    fill(data, SIZE, 6, 0);
    struct drain drain = {master, 6, 0};
    pthread_t reader = start(drain_some, &drain);
    for (int at = 0; at < SIZE;) {
        ssize_t n = write(slave, data + at, (size_t)(SIZE - at));
        CHECK_SYS(n);
        at += (int)n;
    }
    join(reader);
    CHECK_EQ(drain.total, SIZE);
    free(data);
    close_pty();
}

int main(void)
{
    RUN(lines);
    RUN(output_reaches_the_master);
    RUN(raw_bytes);
    RUN(raw_with_a_time_limit);
    RUN(raw_with_a_minimum);
    RUN(nonblocking);
    RUN(hang_up);
    RUN(much_output);
    return 0;
}
