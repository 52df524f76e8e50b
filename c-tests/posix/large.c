/* 64 MiB through a socketpair and through a pipe between two threads, in odd sizes, checked by a sum. */
#include "fds.h"

static const size_t TOTAL = 64u << 20;

struct flow {
    int fd;
    uint64_t sum;
};

static uint64_t sum_up(uint64_t sum, const unsigned char *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        sum = sum * 31 + data[i];
    return sum;
}

static size_t odd_size(size_t turn, size_t most) { return (turn * 7919 + turn * turn * 31) % most + 1; }

static void *pour(void *arg)
{
    struct flow *flow = arg;
    unsigned char *data = malloc(400000);
    uint32_t state = 1;
    for (size_t i = 0; i < 400000; i++)
        data[i] = (unsigned char)((state = state * 1664525u + 1013904223u) >> 24);
    for (size_t at = 0, turn = 0; at < TOTAL; turn++) {
        size_t size = odd_size(turn, 390000), from = turn % 10000;
        if (size > TOTAL - at)
            size = TOTAL - at;
        flow->sum = sum_up(flow->sum, data + from, size);
        CHECK_EQ(write(flow->fd, data + from, size), (long long)size);
        at += size;
    }
    CHECK_SYS(close(flow->fd));
    free(data);
    return NULL;
}

static void *drink(void *arg)
{
    struct flow *flow = arg;
    unsigned char *data = malloc(300000);
    size_t at = 0;
    for (size_t turn = 0;; turn++) {
        ssize_t n = read(flow->fd, data, odd_size(turn, 299999));
        CHECK_SYS(n);
        if (n == 0)
            break;
        flow->sum = sum_up(flow->sum, data, (size_t)n);
        at += (size_t)n;
    }
    CHECK_EQ(at, TOTAL);
    CHECK_SYS(close(flow->fd));
    free(data);
    return NULL;
}

static void flow_through(int fds[2])
{
    struct flow out = {fds[1], 0}, in = {fds[0], 0};
    pthread_t writer = start(pour, &out), reader = start(drink, &in);
    join(writer);
    join(reader);
    CHECK(out.sum == in.sum);
}

static void through_a_socketpair(void)
{
    int fds[2];
    unix_pair(fds);
    flow_through(fds);
}

static void through_a_pipe(void)
{
    int fds[2];
    CHECK_SYS(pipe(fds));
    flow_through(fds);
}

static void through_tcp(void)
{
    int fds[2];
    tcp_pair(fds);
    flow_through(fds);
}

int main(void)
{
    RUN(through_a_socketpair);
    RUN(through_a_pipe);
    RUN(through_tcp);
    return 0;
}
