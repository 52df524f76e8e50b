/* What the tests of descriptors share: cases, pairs of connected sockets, things that happen later, patterns.
 *
 * A case is a function; RUN calls it on a thread of its own, because main is not what these tests are about. */
#ifndef FDS_H
#define FDS_H

#include "../common/check.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* ---- cases; CASE=name in the environment runs that one alone ---- */

#define RUN(test) run_case(#test, test)

CHECK_UNUSED static void *case_body(void *test)
{
    (*(void (**)(void))test)();
    return NULL;
}

CHECK_UNUSED static void run_case(const char *name, void (*test)(void))
{
    const char *only = getenv("CASE");
    if (only != NULL && strcmp(only, name) != 0)
        return;
    join(start(case_body, &test));
    printf("%s: ok\n", name);
    fflush(stdout);
}

/* ---- later(20, put_byte, fd): another thread does something to a descriptor in 20 ms ---- */

struct later {
    long ms;
    void (*act)(int fd);
    int fd;
};

CHECK_UNUSED static void *later_body(void *arg)
{
    struct later later = *(struct later *)arg;
    free(arg);
    sleep_ms(later.ms);
    later.act(later.fd);
    return NULL;
}

CHECK_UNUSED static pthread_t later(long ms, void (*act)(int fd), int fd)
{
    struct later *later = malloc(sizeof *later);
    CHECK(later != NULL);
    *later = (struct later){ms, act, fd};
    return start(later_body, later);
}

CHECK_UNUSED static void put_byte(int fd) { CHECK_EQ(write(fd, "x", 1), 1); }
CHECK_UNUSED static void get_byte(int fd)
{
    char byte;
    CHECK_EQ(read(fd, &byte, 1), 1);
}
CHECK_UNUSED static void close_it(int fd) { CHECK_SYS(close(fd)); }
CHECK_UNUSED static void shut_read(int fd) { CHECK_SYS(shutdown(fd, SHUT_RD)); }
CHECK_UNUSED static void shut_write(int fd) { CHECK_SYS(shutdown(fd, SHUT_WR)); }
CHECK_UNUSED static void shut_both(int fd) { CHECK_SYS(shutdown(fd, SHUT_RDWR)); }

/* Closes so that the peer sees a reset. */
CHECK_UNUSED static void reset_it(int fd)
{
    struct linger linger = {1, 0};
    CHECK_SYS(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
    CHECK_SYS(close(fd));
}

/* ---- everything, however many calls it takes ---- */

CHECK_UNUSED static void write_all(int fd, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        ssize_t n = write(fd, at, size);
        CHECK_SYS(n);
        at += n;
        size -= (size_t)n;
    }
}

/* Reads until `size` bytes or the end; returns how many there were. */
CHECK_UNUSED static size_t read_all(int fd, void *data, size_t size)
{
    size_t have = 0;
    while (have < size) {
        ssize_t n = read(fd, (char *)data + have, size - have);
        CHECK_SYS(n);
        if (n == 0)
            break;
        have += (size_t)n;
    }
    return have;
}

/* Byte `i` of a stream known by its seed: what was sent can be checked without keeping it. */
CHECK_UNUSED static unsigned char pattern(unsigned seed, size_t i)
{
    return (unsigned char)((i * 2654435761u + seed * 40503u) >> 13);
}

CHECK_UNUSED static void fill(void *data, size_t size, unsigned seed, size_t from)
{
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)data)[i] = pattern(seed, from + i);
}

CHECK_UNUSED static void check_fill(const void *data, size_t size, unsigned seed, size_t from)
{
    for (size_t i = 0; i < size; i++)
        if (((const unsigned char *)data)[i] != pattern(seed, from + i))
            CHECK_FAIL("byte %zu is wrong", from + i);
}

/* A reader that takes its time: drains `fd` to its end in small bites, checks the pattern, returns the count. */
struct drain {
    int fd;
    unsigned seed;
    size_t total;
};

CHECK_UNUSED static void *drain_body(void *arg)
{
    struct drain *drain = arg;
    char bite[65536];
    sleep_ms(20);
    for (size_t turn = 0;; turn++) {
        ssize_t n = read(drain->fd, bite, sizeof bite);
        CHECK_SYS(n);
        if (n == 0)
            return NULL;
        check_fill(bite, (size_t)n, drain->seed, drain->total);
        drain->total += (size_t)n;
        if (turn % 8 == 0)
            sleep_ms(1);
    }
}

/* ---- sockets ---- */

CHECK_UNUSED static struct sockaddr_in loopback(int port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return addr;
}

CHECK_UNUSED static int port_of(int fd)
{
    struct sockaddr_in addr;
    socklen_t size = sizeof addr;
    CHECK_SYS(getsockname(fd, (struct sockaddr *)&addr, &size));
    return ntohs(addr.sin_port);
}

CHECK_UNUSED static int bound(int type)
{
    struct sockaddr_in addr = loopback(0);
    int fd = socket(AF_INET, type, 0);
    CHECK_SYS(fd);
    CHECK_SYS(bind(fd, (struct sockaddr *)&addr, sizeof addr));
    return fd;
}

CHECK_UNUSED static int tcp_listener(int backlog)
{
    int fd = bound(SOCK_STREAM);
    CHECK_SYS(listen(fd, backlog));
    return fd;
}

CHECK_UNUSED static int tcp_connect(int port)
{
    struct sockaddr_in addr = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_SYS(fd);
    CHECK_SYS(connect(fd, (struct sockaddr *)&addr, sizeof addr));
    return fd;
}

CHECK_UNUSED static void tcp_pair(int fds[2])
{
    int listener = tcp_listener(1);
    fds[0] = tcp_connect(port_of(listener));
    fds[1] = accept(listener, NULL, NULL);
    CHECK_SYS(fds[1]);
    CHECK_SYS(close(listener));
    for (int i = 0; i < 2; i++) {
        int on = 1;
        CHECK_SYS(setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
    }
}

CHECK_UNUSED static void unix_pair(int fds[2]) { CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, fds)); }

CHECK_UNUSED static void close_pair(int fds[2])
{
    CHECK_SYS(close(fds[0]));
    CHECK_SYS(close(fds[1]));
}

CHECK_UNUSED static void set_timeout(int fd, int which, long ms)
{
    struct timeval span = {ms / 1000, ms % 1000 * 1000};
    CHECK_SYS(setsockopt(fd, SOL_SOCKET, which, &span, sizeof span));
}

CHECK_UNUSED static void set_nonblock(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFL);
    CHECK_SYS(flags);
    CHECK_SYS(fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK));
}

/* ---- files ---- */

/* A directory of the test's own, its name into `path`, removed by the caller. */
CHECK_UNUSED static void temp_dir(char path[64])
{
    strcpy(path, "/tmp/c-test-XXXXXX");
    CHECK(mkdtemp(path) != NULL);
}

/* A regular file without a name. */
CHECK_UNUSED static int temp_file(void)
{
    char path[] = "/tmp/c-test-XXXXXX";
    int fd = mkstemp(path);
    CHECK_SYS(fd);
    CHECK_SYS(unlink(path));
    return fd;
}

/* A pointer that no process may use, hidden from the compiler. */
CHECK_UNUSED static void *bad_pointer(void)
{
    void *volatile bad = (void *)16;
    return bad;
}

/* As many descriptors as the system allows. */
CHECK_UNUSED static void raise_files(void)
{
    struct rlimit files;
    CHECK_SYS(getrlimit(RLIMIT_NOFILE, &files));
    files.rlim_cur = files.rlim_max;
    CHECK_SYS(setrlimit(RLIMIT_NOFILE, &files));
}

#endif
