/* 250 socket pairs of all kinds, two threads each, that play ball. */
#include "fds.h"

enum { PAIRS = 250, TURNS = 40 };

static void *serve(void *arg)
{
    int fd = *(int *)arg, number;
    for (int i = 0; i < TURNS; i++) {
        CHECK_EQ(read(fd, &number, sizeof number), (int)sizeof number);
        number++;
        CHECK_EQ(write(fd, &number, sizeof number), (int)sizeof number);
    }
    return NULL;
}

static void *rally(void *arg)
{
    int fd = *(int *)arg, number = fd * 1000, first = number;
    for (int i = 0; i < TURNS; i++) {
        CHECK_EQ(write(fd, &number, sizeof number), (int)sizeof number);
        CHECK_EQ(read(fd, &number, sizeof number), (int)sizeof number);
    }
    CHECK_EQ(number, first + TURNS);
    return NULL;
}

static void many_rallies(void)
{
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
    static int fds[PAIRS][2];
    pthread_t threads[PAIRS][2];
    for (int i = 0; i < PAIRS; i++) {
        CHECK_SYS(socketpair(AF_UNIX, types[i % 3], 0, fds[i]));
        threads[i][0] = start(serve, &fds[i][0]);
        threads[i][1] = start(rally, &fds[i][1]);
    }
    for (int i = 0; i < PAIRS; i++) {
        join(threads[i][0]);
        join(threads[i][1]);
        close_pair(fds[i]);
    }
}

int main(void)
{
    raise_files();
    RUN(many_rallies);
    return 0;
}
