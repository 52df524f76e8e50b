/* Each call that waits, interrupted in main by a timer that keeps knocking, with and without SA_RESTART; eight
 * threads that block all signals wait beside it. */
#include "fds.h"
#include <sys/select.h>
#include <sys/time.h>
#include <sys/uio.h>

static volatile sig_atomic_t knocks;
static int bell = -1;

static void knock(int signal)
{
    (void)signal;
    knocks++;
    if (bell >= 0) {
        int error = errno;
        if (write(bell, "!", 1) != 1)
            _exit(3);
        bell = -1;
        errno = error;
    }
}

static void begin_knocking(int flags)
{
    struct sigaction action = {.sa_handler = knock, .sa_flags = flags};
    struct itimerval every = {{0, 20000}, {0, 20000}};
    CHECK_SYS(sigaction(SIGALRM, &action, NULL));
    knocks = 0;
    CHECK_SYS(setitimer(ITIMER_REAL, &every, NULL));
}

static void end_knocking(void)
{
    struct itimerval never = {{0, 0}, {0, 0}};
    CHECK_SYS(setitimer(ITIMER_REAL, &never, NULL));
    CHECK(knocks > 0);
}

/* The expression fails with EINTR, and a handler has run meanwhile. */
#define INTERRUPTED(call)                                                                          \
    do {                                                                                           \
        begin_knocking(0);                                                                         \
        CHECK_ERRNO(call, EINTR);                                                                  \
        end_knocking();                                                                            \
        printf("%s: interrupted\n", #call);                                                        \
    } while (0)

static void reads(void)
{
    int pipes[2], pair[2];
    char buffer[8];
    struct iovec part = {buffer, 8};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    CHECK_SYS(pipe(pipes));
    tcp_pair(pair);
    INTERRUPTED(read(pipes[0], buffer, 8));
    INTERRUPTED(read(pair[0], buffer, 8));
    INTERRUPTED(readv(pair[0], &part, 1));
    INTERRUPTED(recv(pair[0], buffer, 8, 0));
    INTERRUPTED(recv(pair[0], buffer, 8, MSG_WAITALL));
    INTERRUPTED(recvfrom(pair[0], buffer, 8, 0, NULL, NULL));
    INTERRUPTED(recvmsg(pair[0], &message, 0));
    close_pair(pipes);
    close_pair(pair);
}

static void writes(void)
{
    int pipes[2], pair[2];
    static char data[8 << 20];
    CHECK_SYS(pipe(pipes));
    int room = fcntl(pipes[1], F_GETPIPE_SZ);
    begin_knocking(0);
    CHECK_EQ(write(pipes[1], data, sizeof data), room);
    end_knocking();
    INTERRUPTED(write(pipes[1], data, 1));
    close_pair(pipes);
    unix_pair(pair);
    begin_knocking(0);
    ssize_t sent = send(pair[1], data, sizeof data, 0);
    end_knocking();
    CHECK(sent > 0 && sent < (ssize_t)sizeof data);
    INTERRUPTED(send(pair[1], data, 65536, 0));
    close_pair(pair);
}

static void accepts(void)
{
    int listener = tcp_listener(4);
    INTERRUPTED(accept(listener, NULL, NULL));
    INTERRUPTED(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
    CHECK_SYS(close(listener));
}

static void polls(void)
{
    int pipes[2];
    CHECK_SYS(pipe(pipes));
    struct pollfd one = {pipes[0], POLLIN, 0};
    struct timespec hour = {3600, 0};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(pipes[0], &set);
    INTERRUPTED(poll(&one, 1, -1));
    INTERRUPTED(poll(NULL, 0, 3600000));
    INTERRUPTED(ppoll(&one, 1, &hour, NULL));
    INTERRUPTED(select(pipes[0] + 1, &set, NULL, NULL, NULL));
    INTERRUPTED(pselect(pipes[0] + 1, &set, NULL, NULL, &hour, NULL));
    close_pair(pipes);
}

static void sleeps(void)
{
    struct timespec hour = {3600, 0}, left = {0, 0};
    INTERRUPTED(nanosleep(&hour, &left));
    CHECK(left.tv_sec == 3599 && left.tv_nsec < 1000000000);
    INTERRUPTED(usleep(3600000000u));
    begin_knocking(0);
    left.tv_sec = 0;
    CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, &hour, &left), EINTR);
    CHECK_EQ(left.tv_sec, 3599);
    left.tv_sec = 7;
    struct timespec then = in_ms(CLOCK_MONOTONIC, 3600000);
    CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, &left), EINTR);
    CHECK_EQ(left.tv_sec, 7);
    CHECK(sleep(3600) >= 3590);
    CHECK_ERRNO(pause(), EINTR);
    end_knocking();
}

static void restarted(void)
{
    int pipes[2], pair[2];
    char buffer[8];
    CHECK_SYS(pipe(pipes));
    unix_pair(pair);
    bell = pipes[1];
    begin_knocking(SA_RESTART);
    CHECK_EQ(read(pipes[0], buffer, 8), 1);
    bell = pair[1];
    CHECK_EQ(recv(pair[0], buffer, 8, 0), 1);
    struct pollfd one = {pipes[0], POLLIN, 0};
    struct timespec hour = {3600, 0};
    CHECK_ERRNO(poll(&one, 1, -1), EINTR);
    CHECK_ERRNO(nanosleep(&hour, NULL), EINTR);
    set_timeout(pair[0], SO_RCVTIMEO, 3600000);
    CHECK_ERRNO(recv(pair[0], buffer, 8, 0), EINTR);
    end_knocking();
    close_pair(pipes);
    close_pair(pair);
}

static void *bystander(void *arg)
{
    char byte;
    sigset_t all;
    sigfillset(&all);
    CHECK_OK(pthread_sigmask(SIG_BLOCK, &all, NULL));
    CHECK_EQ(read(*(int *)arg, &byte, 1), 0);
    return NULL;
}

int main(void)
{
    int quiet[2];
    pthread_t bystanders[8];
    CHECK_SYS(pipe(quiet));
    for (int i = 0; i < 8; i++)
        bystanders[i] = start(bystander, &quiet[0]);
    sleep_ms(20);
    reads();
    writes();
    accepts();
    polls();
    sleeps();
    restarted();
    CHECK_SYS(close(quiet[1]));
    for (int i = 0; i < 8; i++)
        join(bystanders[i]);
    printf("bystanders: undisturbed\n");
    return 0;
}
