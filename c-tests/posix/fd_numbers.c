/* The numbers of descriptors are the program's: what a library opens for itself is not among the lowest, is not
 * inherited, and does not count. */
#include "fds.h"
#include <sys/eventfd.h>
#include <sys/wait.h>

static int lowest;

static int number_of_next(void)
{
    int fd = dup(0);
    CHECK_SYS(fd);
    CHECK_SYS(close(fd));
    return fd;
}

static void the_lowest_is_the_programs(void)
{
    int fds[2];
    CHECK_SYS(pipe(fds));
    CHECK_EQ(fds[0], lowest);
    CHECK_EQ(fds[1], lowest + 1);
    int listener = tcp_listener(1);
    CHECK_EQ(listener, lowest + 2);
    int client = tcp_connect(port_of(listener));
    CHECK_EQ(client, lowest + 3);
    int server = accept(listener, NULL, NULL);
    CHECK_EQ(server, lowest + 4);
    CHECK_SYS(close(fds[0]));
    int event = eventfd(0, 0);
    CHECK_EQ(event, lowest);
    pthread_t writer = later(10, put_byte, client);
    char byte;
    CHECK_EQ(read(server, &byte, 1), 1);
    join(writer);
    CHECK_EQ(number_of_next(), lowest + 5);
    CHECK_SYS(close(event));
    CHECK_SYS(close(fds[1]));
    CHECK_SYS(close(listener));
    CHECK_SYS(close(client));
    CHECK_SYS(close(server));
    CHECK_EQ(number_of_next(), lowest);
}

static void copies_go_where_they_are_sent(void)
{
    CHECK_EQ(fcntl(0, F_DUPFD, lowest + 7), lowest + 7);
    CHECK_EQ(fcntl(0, F_DUPFD, lowest + 7), lowest + 8);
    CHECK_EQ(fcntl(0, F_DUPFD_CLOEXEC, lowest), lowest);
    CHECK_EQ(dup2(0, lowest + 9), lowest + 9);
    CHECK_EQ(fcntl(lowest + 9, F_GETFD), 0);
    CHECK_EQ(fcntl(lowest, F_GETFD), FD_CLOEXEC);
    for (int fd = lowest + 7; fd < lowest + 10; fd++)
        CHECK_SYS(close(fd));
    CHECK_SYS(close(lowest));
}

static void *open_and_close(void *arg)
{
    for (int i = 0; i < 200; i++) {
        int fds[2];
        CHECK_SYS(pipe2(fds, O_CLOEXEC));
        CHECK(fds[0] >= lowest && fds[1] < lowest + 2 * 16);
        if (i % 10 == 0) {
            pthread_t writer = later(0, put_byte, fds[1]);
            get_byte(fds[0]);
            join(writer);
        }
        close_pair(fds);
    }
    return arg;
}

static void nothing_leaks(void)
{
    pthread_t threads[16];
    for (int i = 0; i < 16; i++)
        threads[i] = start(open_and_close, NULL);
    for (int i = 0; i < 16; i++)
        join(threads[i]);
    CHECK_EQ(number_of_next(), lowest);
}

/* A limit that leaves the program a few descriptors leaves it those few. */
static void the_limit_is_the_programs(void)
{
    struct rlimit files, few;
    int fds[64], count = 0;
    CHECK_SYS(getrlimit(RLIMIT_NOFILE, &files));
    few = files;
    few.rlim_cur = (rlim_t)lowest + 10;
    CHECK_SYS(setrlimit(RLIMIT_NOFILE, &few));
    while (count < 64 && (fds[count] = dup(0)) >= 0)
        count++;
    CHECK_EQ(errno, EMFILE);
    CHECK_EQ(count, 10);
    CHECK_SYS(close(fds[9]));
    CHECK_SYS(close(fds[8]));
    int pipes[2];
    CHECK_SYS(pipe(pipes));
    pthread_t writer = later(10, put_byte, pipes[1]);
    get_byte(pipes[0]);
    join(writer);
    close_pair(pipes);
    for (int i = 0; i < 8; i++)
        CHECK_SYS(close(fds[i]));
    CHECK_SYS(setrlimit(RLIMIT_NOFILE, &files));
}

int main(void)
{
    for (int fd = 3; fd < 256; fd++) /* what was inherited by accident */
        close(fd);
    lowest = number_of_next();
    RUN(the_lowest_is_the_programs);
    RUN(copies_go_where_they_are_sent);
    RUN(nothing_leaks);
    RUN(the_limit_is_the_programs);
    return 0;
}
