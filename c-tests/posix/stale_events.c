/* A number is closed while its description lives on under another: what happens there must not disturb whatever gets
 * the number next. */
#include "fds.h"
#include <sys/wait.h>

/* Somebody has waited on it: whatever a wait leaves behind is there. */
static void wait_once(int fds[2])
{
    pthread_t writer = later(1, put_byte, fds[1]);
    get_byte(fds[0]);
    join(writer);
}

static void make_pipe(int fds[2])
{
    CHECK_SYS(pipe(fds));
    wait_once(fds);
}

/* A new pipe whose reading end has the number `fd`. */
static void pipe_at(int fd, int fds[2])
{
    int made[2];
    CHECK_SYS(pipe(made));
    if (made[0] != fd) {
        CHECK_EQ(dup2(made[0], fd), fd);
        CHECK_SYS(close(made[0]));
    }
    fds[0] = fd;
    fds[1] = made[1];
}

static void the_new_one_stays_quiet(int old_writer, int fd)
{
    int fresh[2];
    pipe_at(fd, fresh);
    CHECK_EQ(write(old_writer, "old", 3), 3);
    struct pollfd one = {fd, POLLIN, 0};
    CHECK_EQ(poll(&one, 1, 20), 0);
    pthread_t noise = later(5, put_byte, old_writer), writer = later(20, put_byte, fresh[1]);
    char bytes[8] = "";
    int64_t begun = now_ns();
    CHECK_EQ(read(fd, bytes, sizeof bytes), 1);
    CHECK_LASTED(begun, 15);
    join(noise);
    join(writer);
    close_pair(fresh);
}

static void after_dup(void)
{
    int fds[2];
    char bytes[8];
    make_pipe(fds);
    int copy = dup(fds[0]);
    CHECK_SYS(close(fds[0]));
    the_new_one_stays_quiet(fds[1], fds[0]);
    CHECK_EQ(read(copy, bytes, sizeof bytes), 4);
    pthread_t writer = later(20, put_byte, fds[1]);
    get_byte(copy);
    join(writer);
    CHECK_SYS(close(copy));
    CHECK_SYS(close(fds[1]));
}

static void after_dup2(void)
{
    int fds[2], other[2];
    char bytes[8];
    make_pipe(fds);
    make_pipe(other);
    int copy = dup(fds[0]);
    CHECK_EQ(dup2(other[0], fds[0]), fds[0]); /* closes and reuses in one step */
    CHECK_EQ(write(fds[1], "old", 3), 3);
    struct pollfd one = {fds[0], POLLIN, 0};
    CHECK_EQ(poll(&one, 1, 20), 0);
    pthread_t writer = later(20, put_byte, other[1]);
    get_byte(fds[0]);
    join(writer);
    CHECK_EQ(read(copy, bytes, sizeof bytes), 3);
    CHECK_SYS(close(copy));
    close_pair(fds);
    close_pair(other);
}

static void send_fd(int over, int fd)
{
    char byte = 'f', control[CMSG_SPACE(sizeof fd)] = "";
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    CHECK_EQ(sendmsg(over, &message, 0), 1);
}

static int receive_fd(int over)
{
    int fd;
    char byte, control[CMSG_SPACE(sizeof fd)];
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    CHECK_EQ(recvmsg(over, &message, 0), 1);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

static void while_under_way_in_a_message(void)
{
    int fds[2], over[2];
    char bytes[8];
    make_pipe(fds);
    unix_pair(over);
    send_fd(over[0], fds[0]);
    CHECK_SYS(close(fds[0]));
    the_new_one_stays_quiet(fds[1], fds[0]);
    int back = receive_fd(over[1]);
    CHECK_EQ(read(back, bytes, sizeof bytes), 4);
    pthread_t writer = later(20, put_byte, fds[1]);
    get_byte(back);
    join(writer);
    CHECK_SYS(close(back));
    CHECK_SYS(close(fds[1]));
    close_pair(over);
}

static void while_a_child_has_it(void)
{
    int fds[2], hold[2], status;
    char byte;
    make_pipe(fds);
    CHECK_SYS(pipe(hold));
    pid_t child = fork();
    CHECK_SYS(child);
    if (child == 0) { /* keeps everything open until it is told */
        close(hold[1]);
        _exit(read(hold[0], &byte, 1) == 0 ? 0 : 1);
    }
    CHECK_SYS(close(fds[0]));
    the_new_one_stays_quiet(fds[1], fds[0]);
    close_pair(hold);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_ERRNO(write(fds[1], "x", 1), EPIPE);
    CHECK_SYS(close(fds[1]));
}

/* The old description is at its end for good: an event that never goes away must not burn time either. */
static void no_time_is_burnt(void)
{
    int fds[2], fresh[2];
    struct timespec before, after;
    make_pipe(fds);
    int copy = dup(fds[0]);
    CHECK_SYS(close(fds[0]));
    pipe_at(fds[0], fresh);
    CHECK_SYS(close(fds[1]));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    struct pollfd one = {fresh[0], POLLIN, 0};
    CHECK_EQ(poll(&one, 1, 300), 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    CHECK((after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec < 150000000);
    CHECK_SYS(close(copy));
    close_pair(fresh);
}

enum { THREADS = 8, TURNS = 150 };

static void *churn(void *arg)
{
    for (int i = 0; i < TURNS; i++) {
        int fds[2];
        CHECK_SYS(pipe(fds));
        pthread_t writer = later(0, put_byte, fds[1]);
        get_byte(fds[0]);
        join(writer);
        int copy = dup(fds[0]);
        CHECK_SYS(copy);
        CHECK_SYS(close(fds[0]));
        put_byte(fds[1]);
        sched_yield();
        get_byte(copy);
        CHECK_SYS(close(fds[1]));
        CHECK_SYS(close(copy));
    }
    return arg;
}

static void in_many_threads(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(churn, NULL);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    RUN(after_dup);
    RUN(after_dup2);
    RUN(while_under_way_in_a_message);
    RUN(while_a_child_has_it);
    RUN(no_time_is_burnt);
    RUN(in_many_threads);
    return 0;
}
