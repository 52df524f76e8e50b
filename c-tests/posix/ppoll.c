/* ppoll: everything that poll does, then nanoseconds, no limit, and a limit that is not written to. */
#include "fds.h"

static int by_ppoll(struct pollfd *set, nfds_t count, int ms)
{
    struct timespec limit = {ms / 1000, ms % 1000 * 1000000}, kept = limit;
    int n = ppoll(set, count, ms < 0 ? NULL : &limit, NULL);
    int error = errno;
    CHECK(limit.tv_sec == kept.tv_sec && limit.tv_nsec == kept.tv_nsec);
    errno = error;
    return n;
}

#define POLL(set, count, ms) by_ppoll(set, count, ms)
#define main poll_main
#include "poll.c"
#undef main

static void nanoseconds(void)
{
    struct timespec limit = {0, 20000001};
    int64_t begun = now_ns();
    CHECK_EQ(ppoll(NULL, 0, &limit, NULL), 0);
    CHECK_LASTED(begun, 20);
    limit = (struct timespec){0, 1};
    CHECK_EQ(ppoll(NULL, 0, &limit, NULL), 0);
    limit = (struct timespec){0, 1000000000};
    CHECK_ERRNO(ppoll(NULL, 0, &limit, NULL), EINVAL);
    limit = (struct timespec){0, -1};
    CHECK_ERRNO(ppoll(NULL, 0, &limit, NULL), EINVAL);
    limit = (struct timespec){-1, 0};
    CHECK_ERRNO(ppoll(NULL, 0, &limit, NULL), EINVAL);
}

static void with_a_mask(void)
{
    int fds[2];
    sigset_t mask, before, after;
    CHECK_SYS(pipe(fds));
    sigfillset(&mask);
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    pthread_t writer = later(20, put_byte, fds[1]);
    struct pollfd watch = {fds[0], POLLIN, 0};
    CHECK_EQ(ppoll(&watch, 1, NULL, &mask), 1);
    join(writer);
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    for (int i = 1; i < 32; i++)
        CHECK_EQ(sigismember(&before, i), sigismember(&after, i));
    close_pair(fds);
}

int main(void)
{
    poll_main();
    RUN(nanoseconds);
    RUN(with_a_mask);
    return 0;
}
