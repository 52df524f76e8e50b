/* pselect: everything that select does, except that its limit is not written to; nanoseconds; a mask. */
#include "fds.h"
#include <sys/select.h>

static int by_pselect(int count, fd_set *reads, fd_set *writes, fd_set *excepts, const struct timeval *span)
{
    struct timespec limit, kept;
    if (span != NULL)
        kept = limit = (struct timespec){span->tv_sec, span->tv_usec * 1000};
    int n = pselect(count, reads, writes, excepts, span ? &limit : NULL, NULL);
    int error = errno;
    if (span != NULL)
        CHECK(limit.tv_sec == kept.tv_sec && limit.tv_nsec == kept.tv_nsec);
    errno = error;
    return n;
}

#define SELECT(count, reads, writes, excepts, limit) by_pselect(count, reads, writes, excepts, limit)
#define TIME_IS_LEFT 0
#define main select_main
#include "select.c"
#undef main

static void nanoseconds(void)
{
    struct timespec limit = {0, 20000001};
    int64_t begun = now_ns();
    CHECK_EQ(pselect(0, NULL, NULL, NULL, &limit, NULL), 0);
    CHECK_LASTED(begun, 20);
    limit = (struct timespec){0, 1000000000};
    CHECK_ERRNO(pselect(0, NULL, NULL, NULL, &limit, NULL), EINVAL);
}

static void with_a_mask(void)
{
    int fds[2];
    sigset_t mask, before, after;
    CHECK_SYS(pipe(fds));
    sigfillset(&mask);
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    pthread_t writer = later(20, put_byte, fds[1]);
    fd_set reads = set_of(fds[0]);
    CHECK_EQ(pselect(fds[0] + 1, &reads, NULL, NULL, NULL, &mask), 1);
    join(writer);
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    for (int i = 1; i < 32; i++)
        CHECK_EQ(sigismember(&before, i), sigismember(&after, i));
    close_pair(fds);
}

int main(void)
{
    select_main();
    RUN(nanoseconds);
    RUN(with_a_mask);
    return 0;
}
