/* A ring of 2,000 threads and 2,000 pipes; tokens go round it. */
#include "fds.h"

enum { PIPES = 2000, TOKENS = 50, HOPS = 4000 };

static int ring[PIPES][2];
static int64_t passed[PIPES];

struct token {
    int32_t number, hops;
};

/* A token that has made its hops is passed on to the end of the ring, marked as done; thread 0 counts those. */
static void *station(void *arg)
{
    int me = (int)(intptr_t)arg, next = (me + 1) % PIPES, done = 0;
    struct token token;
    for (;;) {
        ssize_t n = read(ring[me][0], &token, sizeof token);
        if (n == 0)
            break;
        CHECK_EQ(n, (int)sizeof token);
        CHECK(token.number >= 0 && token.number < TOKENS);
        passed[me]++;
        if (token.hops > 0)
            token.hops--;
        if (token.hops == 0 && me == 0) {
            if (++done == TOKENS)
                break;
            continue;
        }
        CHECK_EQ(write(ring[next][1], &token, sizeof token), (int)sizeof token);
    }
    CHECK_SYS(close(ring[next][1]));
    return (void *)(intptr_t)done;
}

static void tokens_in_a_ring(void)
{
    pthread_t threads[PIPES];
    for (int i = 0; i < PIPES; i++)
        CHECK_SYS(pipe(ring[i]));
    for (int i = 0; i < PIPES; i++)
        threads[i] = start(station, (void *)(intptr_t)i);
    for (int i = 0; i < TOKENS; i++) {
        struct token token = {i, HOPS};
        CHECK_EQ(write(ring[i * (PIPES / TOKENS)][1], &token, sizeof token), (int)sizeof token);
    }
    int64_t total = 0;
    for (int i = 0; i < PIPES; i++) {
        int done = (int)(intptr_t)join(threads[i]);
        CHECK_EQ(done, i == 0 ? TOKENS : 0);
        total += passed[i];
        CHECK_SYS(close(ring[i][0]));
    }
    printf("%d pipes, %d tokens, %lld hops\n", PIPES, TOKENS, (long long)total);
}

int main(void)
{
    raise_files();
    RUN(tokens_in_a_ring);
    return 0;
}
