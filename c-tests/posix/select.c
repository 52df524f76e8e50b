/* select: time limits and what is left of them, the three sets, invalid, many and shared descriptors. */
#include "many.h"
#include <sys/select.h>

#ifndef SELECT
#define SELECT(count, reads, writes, excepts, limit) select(count, reads, writes, excepts, limit)
#define TIME_IS_LEFT 1
#endif

static fd_set set_of(int fd)
{
    fd_set set;
    FD_ZERO(&set);
    if (fd >= 0)
        FD_SET(fd, &set);
    return set;
}

static void as_a_sleep(void)
{
    struct timeval limit = {0, 30000};
    int64_t begun = now_ns();
    CHECK_EQ(SELECT(0, NULL, NULL, NULL, &limit), 0);
    CHECK_LASTED(begun, 30);
    if (TIME_IS_LEFT)
        CHECK(limit.tv_sec == 0 && limit.tv_usec == 0);
    limit = (struct timeval){0, 0};
    CHECK_EQ(SELECT(0, NULL, NULL, NULL, &limit), 0);
    fd_set none = set_of(-1), nothing = set_of(-1);
    limit = (struct timeval){0, 20000};
    begun = now_ns();
    CHECK_EQ(SELECT(FD_SETSIZE, &none, &nothing, NULL, &limit), 0);
    CHECK_LASTED(begun, 20);
}

static void waits_for_data(void)
{
    int fds[2];
    CHECK_SYS(pipe(fds));
    fd_set reads = set_of(fds[0]);
    struct timeval limit = {0, 0};
    CHECK_EQ(SELECT(fds[0] + 1, &reads, NULL, NULL, &limit), 0);
    CHECK(!FD_ISSET(fds[0], &reads));
    reads = set_of(fds[0]);
    limit = (struct timeval){0, 30000};
    int64_t begun = now_ns();
    CHECK_EQ(SELECT(fds[0] + 1, &reads, NULL, NULL, &limit), 0);
    CHECK_LASTED(begun, 30);
    CHECK(!FD_ISSET(fds[0], &reads));
    pthread_t writer = later(20, put_byte, fds[1]);
    reads = set_of(fds[0]);
    CHECK_EQ(SELECT(fds[0] + 1, &reads, NULL, NULL, NULL), 1);
    CHECK(FD_ISSET(fds[0], &reads));
    join(writer);
    get_byte(fds[0]);
    pthread_t closer = later(20, close_it, fds[1]);
    CHECK_EQ(SELECT(fds[0] + 1, &reads, NULL, NULL, NULL), 1);
    CHECK(FD_ISSET(fds[0], &reads));
    join(closer);
    CHECK_SYS(close(fds[0]));
}

/* What is left of the limit is written back. */
static void time_that_is_left(void)
{
    int fds[2];
    CHECK_SYS(pipe(fds));
    fd_set reads = set_of(fds[0]);
    struct timeval limit = {100, 0};
    pthread_t writer = later(30, put_byte, fds[1]);
    CHECK_EQ(SELECT(fds[0] + 1, &reads, NULL, NULL, &limit), 1);
    join(writer);
    if (TIME_IS_LEFT)
        CHECK(limit.tv_sec >= 10 && limit.tv_sec <= 99);
    else
        CHECK(limit.tv_sec == 100 && limit.tv_usec == 0);
    limit = (struct timeval){100, 0};
    CHECK_EQ(SELECT(fds[0] + 1, &reads, NULL, NULL, &limit), 1);
    CHECK(limit.tv_sec >= 10 && limit.tv_sec <= 100);
    close_pair(fds);
}

static void three_sets(void)
{
    int fds[2];
    tcp_pair(fds);
    int top = (fds[0] > fds[1] ? fds[0] : fds[1]) + 1;
    fd_set reads = set_of(fds[0]), writes = set_of(fds[0]), excepts = set_of(fds[0]);
    CHECK_EQ(SELECT(top, &reads, &writes, &excepts, NULL), 1);
    CHECK(!FD_ISSET(fds[0], &reads) && FD_ISSET(fds[0], &writes) && !FD_ISSET(fds[0], &excepts));
    CHECK_EQ(send(fds[1], "a!", 2, MSG_OOB), 2);
    fd_set only = set_of(fds[0]);
    CHECK_EQ(SELECT(top, NULL, NULL, &only, NULL), 1);
    CHECK(FD_ISSET(fds[0], &only));
    reads = writes = excepts = set_of(fds[0]);
    CHECK_EQ(SELECT(top, &reads, &writes, &excepts, NULL), 3);
    CHECK(FD_ISSET(fds[0], &reads) && FD_ISSET(fds[0], &writes) && FD_ISSET(fds[0], &excepts));
    close_pair(fds);
}

/* A hang-up counts as readable, an error as readable and writable. */
static void ends_of_connections(void)
{
    int fds[2];
    tcp_pair(fds);
    pthread_t closer = later(20, reset_it, fds[1]);
    fd_set reads = set_of(fds[0]), writes, excepts = set_of(fds[0]);
    CHECK_EQ(SELECT(fds[0] + 1, &reads, NULL, &excepts, NULL), 1);
    CHECK(FD_ISSET(fds[0], &reads) && !FD_ISSET(fds[0], &excepts));
    join(closer);
    CHECK_SYS(close(fds[0]));
    CHECK_SYS(pipe(fds));
    writes = set_of(fds[1]);
    CHECK_SYS(close(fds[0]));
    CHECK_EQ(SELECT(fds[1] + 1, NULL, &writes, NULL, NULL), 1);
    CHECK(FD_ISSET(fds[1], &writes));
    CHECK_SYS(close(fds[1]));
    int fd = temp_file();
    reads = writes = excepts = set_of(fd);
    CHECK_EQ(SELECT(fd + 1, &reads, &writes, &excepts, NULL), 2);
    CHECK_SYS(close(fd));
}

static void wrong_arguments(void)
{
    int fds[2];
    CHECK_SYS(pipe(fds));
    close_pair(fds);
    fd_set reads = set_of(fds[0]);
    struct timeval limit = {0, 0};
    CHECK_ERRNO(SELECT(fds[0] + 1, &reads, NULL, NULL, &limit), EBADF);
    CHECK_ERRNO(SELECT(-1, NULL, NULL, NULL, &limit), EINVAL);
    CHECK_EQ(SELECT(fds[0], &reads, NULL, NULL, &limit), 0);
    limit = (struct timeval){-1, 0};
    CHECK_ERRNO(SELECT(0, NULL, NULL, NULL, &limit), EINVAL);
    limit = (struct timeval){0, -1};
    CHECK_ERRNO(SELECT(0, NULL, NULL, NULL, &limit), EINVAL);
}

static void only_below_the_count(void)
{
    int fds[2];
    CHECK_SYS(pipe(fds));
    put_byte(fds[1]);
    int low = fds[0] < fds[1] ? fds[0] : fds[1];
    fd_set reads = set_of(fds[0]);
    FD_SET(low, &reads);
    struct timeval limit = {0, 0};
    CHECK_EQ(SELECT(low, &reads, NULL, NULL, &limit), 0);
    close_pair(fds);
}

static void many(void)
{
    int count = 450; /* of numbers below FD_SETSIZE */
    open_many(count);
    for (int round = 0; round < 20; round++) {
        int which = (round * 379 + 11) % count, top = 0;
        fd_set reads = set_of(-1);
        for (int i = 0; i < count; i++) {
            FD_SET(watch_reads[i], &reads);
            top = watch_reads[i] >= top ? watch_reads[i] + 1 : top;
        }
        pthread_t writer = later(round % 4, put_byte, watch_writes[which]);
        CHECK_EQ(SELECT(top, &reads, NULL, NULL, NULL), 1);
        for (int i = 0; i < count; i++)
            CHECK_EQ(!!FD_ISSET(watch_reads[i], &reads), i == which);
        join(writer);
        get_byte(watch_reads[which]);
    }
    close_many(count);
}

static int shared;

static void *select_shared(void *arg)
{
    (void)arg;
    fd_set reads = set_of(shared);
    CHECK_EQ(SELECT(shared + 1, &reads, NULL, NULL, NULL), 1);
    CHECK(FD_ISSET(shared, &reads));
    return NULL;
}

static void several_threads_on_one(void)
{
    int fds[2];
    pthread_t threads[16];
    unix_pair(fds);
    shared = fds[0];
    for (int i = 0; i < 16; i++)
        threads[i] = start(select_shared, NULL);
    sleep_ms(20);
    put_byte(fds[1]);
    for (int i = 0; i < 16; i++)
        join(threads[i]);
    close_pair(fds);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    RUN(as_a_sleep);
    RUN(waits_for_data);
    RUN(time_that_is_left);
    RUN(three_sets);
    RUN(ends_of_connections);
    RUN(wrong_arguments);
    RUN(only_below_the_count);
    RUN(many);
    RUN(several_threads_on_one);
    return 0;
}
