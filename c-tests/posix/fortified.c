// cflags: -O2 -D_FORTIFY_SOURCE=2
/* The calls that a fortified program makes in their stead: __read_chk and its kin wait and answer as the plain ones.
 * Sizes come from variables that the compiler cannot see through, else it would call the plain ones after all. */
#include "fds.h"
#include <setjmp.h>
#include <sys/select.h>

static volatile size_t eight = 8, four = 4, one = 1;
static volatile nfds_t one_fd = 1;

static void fortified_read(void)
{
    int fds[2];
    char buffer[8];
    CHECK_SYS(pipe(fds));
    int64_t begun = now_ns();
    pthread_t writer = later(30, put_byte, fds[1]);
    CHECK_EQ(read(fds[0], buffer, eight), 1);
    CHECK_LASTED(begun, 25);
    join(writer);
    pthread_t closer = later(20, close_it, fds[1]);
    CHECK_EQ(read(fds[0], buffer, eight), 0);
    join(closer);
    CHECK_SYS(close(fds[0]));
    CHECK_ERRNO(read(fds[0], buffer, four), EBADF);
}

static void fortified_pread(void)
{
    char buffer[8];
    int fd = temp_file();
    CHECK_EQ(write(fd, "0123456789", 10), 10);
    CHECK_EQ(pread(fd, buffer, four, 3), 4);
    CHECK(memcmp(buffer, "3456", 4) == 0);
    CHECK_EQ(pread64(fd, buffer, eight, 6), 4);
    CHECK(memcmp(buffer, "6789", 4) == 0);
    CHECK_SYS(close(fd));
}

static void fortified_recv(void)
{
    int fds[2];
    char buffer[8];
    tcp_pair(fds);
    CHECK_ERRNO(recv(fds[0], buffer, eight, MSG_DONTWAIT), EAGAIN);
    int64_t begun = now_ns();
    pthread_t writer = later(30, put_byte, fds[1]);
    CHECK_EQ(recv(fds[0], buffer, eight, 0), 1);
    CHECK_LASTED(begun, 25);
    join(writer);
    CHECK_EQ(send(fds[1], "abcd", 4, 0), 4);
    CHECK_EQ(recv(fds[0], buffer, four, MSG_WAITALL | MSG_PEEK), 4);
    CHECK_EQ(recv(fds[0], buffer, eight, 0), 4);
    close_pair(fds);
}

static void put_datagram(int fd)
{
    struct sockaddr_in to = loopback(port_of(fd));
    CHECK_EQ(sendto(fd, "datagram", 8, 0, (struct sockaddr *)&to, sizeof to), 8);
}

static void fortified_recvfrom(void)
{
    char buffer[8];
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    int fd = bound(SOCK_DGRAM);
    int64_t begun = now_ns();
    pthread_t sender = later(30, put_datagram, fd);
    CHECK_EQ(recvfrom(fd, buffer, eight, 0, (struct sockaddr *)&from, &size), 8);
    CHECK_LASTED(begun, 25);
    CHECK_EQ(ntohs(from.sin_port), port_of(fd));
    join(sender);
    set_timeout(fd, SO_RCVTIMEO, 30);
    CHECK_ERRNO(recvfrom(fd, buffer, four, 0, NULL, NULL), EAGAIN);
    CHECK_SYS(close(fd));
}

static void fortified_poll(void)
{
    int fds[2];
    char byte;
    CHECK_SYS(pipe(fds));
    struct pollfd set[2] = {{fds[0], POLLIN, 0}, {-1, 0, 0}};
    struct timespec soon = {0, 30000000};
    int64_t begun = now_ns();
    CHECK_EQ(poll(set, one_fd, 30), 0);
    CHECK_LASTED(begun, 25);
    begun = now_ns();
    CHECK_EQ(ppoll(set, one_fd, &soon, NULL), 0);
    CHECK_LASTED(begun, 25);
    pthread_t writer = later(20, put_byte, fds[1]);
    CHECK_EQ(poll(set, one_fd + 1, -1), 1);
    CHECK_EQ(set[0].revents, POLLIN);
    CHECK_EQ(ppoll(set, one_fd + 1, NULL, NULL), 1);
    join(writer);
    CHECK_EQ(read(fds[0], &byte, one), 1);
    close_pair(fds);
}

static void fortified_select(void)
{
    int fds[2];
    volatile int fd;
    CHECK_SYS(pipe(fds));
    fd = fds[0];
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    pthread_t writer = later(20, put_byte, fds[1]);
    CHECK_EQ(select(fd + 1, &set, NULL, NULL, NULL), 1);
    CHECK(FD_ISSET(fd, &set));
    join(writer);
    close_pair(fds);
}

static void fortified_stdio(void)
{
    int fds[2];
    char line[8], text[8];
    volatile int size = sizeof line;
    unix_pair(fds);
    FILE *in = fdopen(fds[0], "r"), *out = fdopen(fds[1], "w");
    fprintf(out, "%d %s\n", 42, "x");
    fwrite("bytes", 1, 5, out);
    CHECK_EQ(fclose(out), 0);
    CHECK(fgets(line, size, in) != NULL);
    CHECK_STR(line, "42 x\n");
    CHECK_EQ(fread(line, one, eight, in), 5);
    snprintf(text, eight, "%.*s", (int)four, line);
    CHECK_STR(text, "byte");
    CHECK_EQ(fclose(in), 0);
}

/* longjmp out of a place that waited, and again, within one thread: __longjmp_chk must know the stack. */
static jmp_buf back;
static int deep_pipe[2];

__attribute__((noinline)) static void go_deep(int depth)
{
    volatile char room[512];
    char byte;
    room[0] = (char)depth;
    if (depth > 0)
        go_deep(depth - 1);
    pthread_t writer = later(1, put_byte, deep_pipe[1]);
    CHECK_EQ(read(deep_pipe[0], &byte, one), 1);
    join(writer);
    if (room[0] == (char)depth)
        longjmp(back, depth + 1);
}

static void fortified_longjmp(void)
{
    volatile int jumps = 0;
    CHECK_SYS(pipe(deep_pipe));
    if (setjmp(back) != 0)
        jumps++;
    if (jumps < 5)
        go_deep(10 * jumps);
    CHECK_EQ(jumps, 5);
    close_pair(deep_pipe);
}

int main(void)
{
    RUN(fortified_read);
    RUN(fortified_pread);
    RUN(fortified_recv);
    RUN(fortified_recvfrom);
    RUN(fortified_poll);
    RUN(fortified_select);
    RUN(fortified_stdio);
    RUN(fortified_longjmp);
    return 0;
}
