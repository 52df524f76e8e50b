/* Pseudo-terminals: lines in canonical mode, bytes in raw mode, VMIN and VTIME, ends. */
#include "fds.h"
#include <sys/ioctl.h>
#include <termios.h>

static void open_pty(int fds[2])
{
    char name[64];
    fds[0] = posix_openpt(O_RDWR | O_NOCTTY);
    CHECK_SYS(fds[0]);
    CHECK_SYS(grantpt(fds[0]));
    CHECK_SYS(unlockpt(fds[0]));
    CHECK_OK(ptsname_r(fds[0], name, sizeof name));
    fds[1] = open(name, O_RDWR | O_NOCTTY);
    CHECK_SYS(fds[1]);
    CHECK(isatty(fds[1]));
}

static void set_echo(int fd, bool on)
{
    struct termios mode;
    CHECK_SYS(tcgetattr(fd, &mode));
    mode.c_lflag = on ? mode.c_lflag | ECHO : mode.c_lflag & ~(tcflag_t)ECHO;
    CHECK_SYS(tcsetattr(fd, TCSANOW, &mode));
}

static void set_raw(int fd, int least, int tenths)
{
    struct termios mode;
    CHECK_SYS(tcgetattr(fd, &mode));
    cfmakeraw(&mode);
    mode.c_cc[VMIN] = (cc_t)least;
    mode.c_cc[VTIME] = (cc_t)tenths;
    CHECK_SYS(tcsetattr(fd, TCSANOW, &mode));
}

static void type_end_of_line(int fd) { CHECK_EQ(write(fd, "lo\nmore\n", 8), 8); }
static void type_end(int fd) { CHECK_EQ(write(fd, "\4", 1), 1); }

static void lines(void)
{
    int fds[2];
    char buffer[32];
    open_pty(fds);
    set_echo(fds[1], false);
    CHECK_EQ(write(fds[0], "hxx\177\177el", 7), 7); /* two of them taken back */
    int64_t begun = now_ns();
    pthread_t typist = later(30, type_end_of_line, fds[0]);
    CHECK_EQ(read(fds[1], buffer, sizeof buffer), 6);
    CHECK_LASTED(begun, 25);
    CHECK(memcmp(buffer, "hello\n", 6) == 0);
    CHECK_EQ(read(fds[1], buffer, 2), 2);
    CHECK_EQ(read(fds[1], buffer, sizeof buffer), 3);
    join(typist);
    typist = later(20, type_end, fds[0]);
    CHECK_EQ(read(fds[1], buffer, sizeof buffer), 0);
    join(typist);
    typist = later(20, type_end_of_line, fds[0]);
    CHECK_EQ(read(fds[1], buffer, sizeof buffer), 3);
    join(typist);
    close_pair(fds);
}

static void output_and_echo(void)
{
    int fds[2];
    char buffer[32];
    open_pty(fds);
    CHECK_EQ(write(fds[1], "out\n", 4), 4);
    CHECK_EQ(read_all(fds[0], buffer, 5), 5);
    CHECK(memcmp(buffer, "out\r\n", 5) == 0);
    CHECK_EQ(write(fds[0], "in\n", 3), 3);
    CHECK_EQ(read_all(fds[0], buffer, 4), 4);
    CHECK(memcmp(buffer, "in\r\n", 4) == 0);
    CHECK_EQ(read(fds[1], buffer, sizeof buffer), 3);
    pthread_t writer = later(20, put_byte, fds[1]);
    CHECK_EQ(read(fds[0], buffer, sizeof buffer), 1);
    join(writer);
    close_pair(fds);
}

static void raw_bytes(void)
{
    int fds[2];
    char buffer[32];
    open_pty(fds);
    set_raw(fds[1], 1, 0);
    int64_t begun = now_ns();
    pthread_t typist = later(30, put_byte, fds[0]);
    CHECK_EQ(read(fds[1], buffer, sizeof buffer), 1);
    CHECK_LASTED(begun, 25);
    CHECK_EQ(buffer[0], 'x');
    join(typist);
    CHECK_EQ(write(fds[0], "\3\4\n\0", 4), 4);
    CHECK_EQ(read_all(fds[1], buffer, 4), 4);
    CHECK(memcmp(buffer, "\3\4\n\0", 4) == 0);
    CHECK_EQ(write(fds[1], "\n", 1), 1);
    CHECK_EQ(read(fds[0], buffer, sizeof buffer), 1);
    close_pair(fds);
}

static void type_four(int fd)
{
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(write(fd, "y", 1), 1);
        sleep_ms(5);
    }
}

static void at_least_four(void)
{
    int fds[2];
    char buffer[32];
    open_pty(fds);
    set_raw(fds[1], 4, 0);
    pthread_t typist = later(10, type_four, fds[0]);
    CHECK_EQ(read(fds[1], buffer, 4), 4);
    join(typist);
    close_pair(fds);
}

static void tenths_of_a_second(void)
{
    int fds[2];
    char buffer[32];
    open_pty(fds);
    set_raw(fds[1], 0, 2);
    int64_t begun = now_ns();
    CHECK_EQ(read(fds[1], buffer, sizeof buffer), 0);
    CHECK_LASTED(begun, 150);
    pthread_t typist = later(20, put_byte, fds[0]);
    CHECK_EQ(read(fds[1], buffer, sizeof buffer), 1);
    join(typist);
    /* Between bytes only: the first may take for ever. */
    set_raw(fds[1], 5, 2);
    begun = now_ns();
    typist = later(250, put_byte, fds[0]);
    CHECK_EQ(read(fds[1], buffer, sizeof buffer), 1);
    CHECK_LASTED(begun, 400);
    join(typist);
    set_raw(fds[1], 0, 0);
    CHECK_EQ(read(fds[1], buffer, sizeof buffer), 0);
    close_pair(fds);
}

static void nonblocking(void)
{
    int fds[2];
    char buffer[32];
    open_pty(fds);
    set_echo(fds[1], false);
    set_nonblock(fds[0], true);
    set_nonblock(fds[1], true);
    CHECK_ERRNO(read(fds[0], buffer, sizeof buffer), EAGAIN);
    CHECK_ERRNO(read(fds[1], buffer, sizeof buffer), EAGAIN);
    CHECK_EQ(write(fds[0], "half", 4), 4);
    struct pollfd one = {fds[1], POLLIN, 0};
    CHECK_EQ(poll(&one, 1, 20), 0);
    CHECK_EQ(write(fds[0], "\n", 1), 1);
    CHECK_EQ(poll(&one, 1, -1), 1);
    CHECK_EQ(read(fds[1], buffer, sizeof buffer), 5);
    close_pair(fds);
}

static void the_slave_goes(void)
{
    int fds[2];
    char buffer[32];
    open_pty(fds);
    CHECK_EQ(write(fds[1], "bye", 3), 3);
    pthread_t closer = later(20, close_it, fds[1]);
    CHECK_EQ(read_all(fds[0], buffer, 3), 3);
    CHECK_ERRNO(read(fds[0], buffer, sizeof buffer), EIO);
    join(closer);
    CHECK_SYS(close(fds[0]));
}

static void the_master_goes(void)
{
    int fds[2];
    char buffer[32];
    open_pty(fds);
    pthread_t closer = later(20, close_it, fds[0]);
    errno = 0;
    ssize_t n = read(fds[1], buffer, sizeof buffer); /* an error or the end: the kernel's hang-up has two steps */
    CHECK(n == 0 || (n == -1 && errno == EIO));
    join(closer);
    CHECK_EQ(read(fds[1], buffer, sizeof buffer), 0);
    CHECK_ERRNO(write(fds[1], "x", 1), EIO);
    CHECK_SYS(close(fds[1]));
}

static void *drain_master(void *arg)
{
    char buffer[1000];
    size_t total = 0;
    sleep_ms(20);
    while (total < 200000) {
        ssize_t n = read(*(int *)arg, buffer, sizeof buffer);
        CHECK(n > 0);
        check_fill(buffer, (size_t)n, 77, total);
        total += (size_t)n;
    }
    return NULL;
}

static void writing_waits(void)
{
    enum { SIZE = 200000 };
    int fds[2];
    char *data = malloc(SIZE);
    open_pty(fds);
    set_raw(fds[1], 1, 0);
    fill(data, SIZE, 77, 0);
    pthread_t reader = start(drain_master, &fds[0]);
    CHECK_EQ(write(fds[1], data, SIZE), SIZE);
    join(reader);
    free(data);
    close_pair(fds);
}

static void window_size(void)
{
    int fds[2];
    struct winsize size = {25, 81, 0, 0}, got;
    open_pty(fds);
    CHECK_SYS(ioctl(fds[0], TIOCSWINSZ, &size));
    CHECK_SYS(ioctl(fds[1], TIOCGWINSZ, &got));
    CHECK_EQ(got.ws_row, 25);
    CHECK_EQ(got.ws_col, 81);
    close_pair(fds);
}

int main(void)
{
    RUN(lines);
    RUN(output_and_echo);
    RUN(raw_bytes);
    RUN(at_least_four);
    RUN(tenths_of_a_second);
    RUN(nonblocking);
    RUN(the_slave_goes);
    RUN(the_master_goes);
    RUN(writing_waits);
    RUN(window_size);
    return 0;
}
