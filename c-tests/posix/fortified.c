// cflags: -O2 -D_FORTIFY_SOURCE=2
/* Programs built with _FORTIFY_SOURCE call __read_chk and its kin: the twins wait and fail as the plain ones do. */
#include "fds.h"
#include <sys/select.h>
#include <sys/wait.h>

/* The compiler knows the size of the buffer and not how much is asked for: that is when it calls the twins. */
static volatile size_t ask = 8;
static volatile nfds_t ask_fds = 1;

static void by_read(void)
{
    int fds[2];
    char bytes[16];
    CHECK_SYS(pipe(fds));
    int64_t begun = now_ns();
    pthread_t writer = later(30, put_byte, fds[1]);
    CHECK_EQ(read(fds[0], bytes, ask), 1);
    CHECK_LASTED(begun, 25);
    join(writer);
    CHECK_ERRNO(read(-1, bytes, ask), EBADF);
    close_pair(fds);
}

static void by_recv(void)
{
    int fds[2];
    char bytes[16];
    tcp_pair(fds);
    int64_t begun = now_ns();
    pthread_t writer = later(30, put_byte, fds[1]);
    CHECK_EQ(recv(fds[0], bytes, ask, 0), 1);
    CHECK_LASTED(begun, 25);
    join(writer);
    CHECK_ERRNO(recv(fds[0], bytes, ask, MSG_DONTWAIT), EAGAIN);
    CHECK_ERRNO(recv(-1, bytes, ask, 0), EBADF);
    close_pair(fds);
}

static void by_recvfrom(void)
{
    int fds[2];
    char bytes[16];
    CHECK_SYS(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds));
    struct sockaddr_un from;
    socklen_t size = sizeof from;
    pthread_t writer = later(20, put_byte, fds[1]);
    CHECK_EQ(recvfrom(fds[0], bytes, ask, 0, (struct sockaddr *)&from, &size), 1);
    join(writer);
    CHECK_ERRNO(recvfrom(fds[0], bytes, ask, MSG_DONTWAIT, NULL, NULL), EAGAIN);
    close_pair(fds);
}

static void by_poll(void)
{
    int fds[2];
    CHECK_SYS(pipe(fds));
    struct pollfd watch[2] = {{fds[0], POLLIN, 0}, {-1, 0, 0}};
    pthread_t writer = later(20, put_byte, fds[1]);
    CHECK_EQ(poll(watch, ask_fds, -1), 1);
    CHECK_EQ(watch[0].revents, POLLIN);
    join(writer);
    get_byte(fds[0]);
    int64_t begun = now_ns();
    CHECK_EQ(poll(watch, ask_fds, 20), 0);
    CHECK_LASTED(begun, 20);
    struct timespec limit = {0, 20000000};
    begun = now_ns();
    CHECK_EQ(ppoll(watch, ask_fds, &limit, NULL), 0);
    CHECK_LASTED(begun, 20);
    writer = later(20, put_byte, fds[1]);
    CHECK_EQ(ppoll(watch, ask_fds, NULL, NULL), 1);
    join(writer);
    close_pair(fds);
}

static void by_pread(void)
{
    char bytes[16];
    int fd = temp_file(), fds[2];
    CHECK_EQ(write(fd, "0123456789", 10), 10);
    CHECK_EQ(pread(fd, bytes, ask, 1), 8);
    CHECK(memcmp(bytes, "12345678", 8) == 0);
    CHECK_EQ(pread64(fd, bytes, ask, 5), 5);
    CHECK_SYS(close(fd));
    CHECK_SYS(pipe(fds));
    CHECK_ERRNO(pread(fds[0], bytes, ask, 0), ESPIPE);
    close_pair(fds);
}

static void by_select(void)
{
    int fds[2];
    fd_set reads;
    CHECK_SYS(pipe(fds));
    volatile int fd = fds[0];
    FD_ZERO(&reads);
    FD_SET(fd, &reads); /* __fdelt_chk */
    pthread_t writer = later(20, put_byte, fds[1]);
    CHECK_EQ(select(fd + 1, &reads, NULL, NULL, NULL), 1);
    CHECK(FD_ISSET(fd, &reads));
    join(writer);
    close_pair(fds);
}

/* More is asked for than there is room: the twin ends the process with SIGABRT, before it reads. */
static void overflow_is_caught(void)
{
    fflush(stdout);
    pid_t child = fork();
    CHECK_SYS(child);
    if (child == 0) {
        char bytes[16];
        int fds[2];
        volatile size_t too_much = 17;
        close(2);
        signal(SIGABRT, SIG_DFL);
        if (pipe(fds) == 0 && write(fds[1], "abc", 3) == 3 && read(fds[0], bytes, too_much) > 0)
            _exit(1);
        _exit(2);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main(void)
{
    RUN(by_read);
    RUN(by_recv);
    RUN(by_recvfrom);
    RUN(by_poll);
    RUN(by_pread);
    RUN(by_select);
    overflow_is_caught();
    return 0;
}
