/* A ring of 2,000 threads and pipes: a token goes round many times, then several tokens at once. */
#include "fds.h"

enum { RING = 2000, ROUNDS = 20, TOKENS = 16 };
static int reads[RING], writes[RING];

/* Passes tokens on, each one higher, until it passed a negative one. */
static void *pass_on(void *arg)
{
    int me = (int)(intptr_t)arg, token, passed = 0;
    for (;;) {
        CHECK_EQ(read(reads[me], &token, sizeof token), (int)sizeof token);
        if (token >= 0) {
            token++;
            passed++;
        }
        CHECK_EQ(write(writes[(me + 1) % RING], &token, sizeof token), (int)sizeof token);
        if (token < 0)
            return (void *)(intptr_t)passed;
    }
}

int main(void)
{
    static pthread_t threads[RING];
    int token;
    raise_files();
    for (int i = 0; i < RING; i++) {
        int fds[2];
        CHECK_SYS(pipe(fds));
        reads[i] = fds[0];
        writes[i] = fds[1];
    }
    for (int i = 1; i < RING; i++)
        threads[i] = start(pass_on, (void *)(intptr_t)i);

    /* Main is number 0. */
    token = 0;
    for (int round = 0; round < ROUNDS; round++) {
        CHECK_EQ(write(writes[1], &token, sizeof token), (int)sizeof token);
        CHECK_EQ(read(reads[0], &token, sizeof token), (int)sizeof token);
    }
    CHECK_EQ(token, ROUNDS * (RING - 1));
    printf("one token, %d rounds: %d steps\n", ROUNDS, token);

    token = 0;
    for (int i = 0; i < TOKENS; i++)
        CHECK_EQ(write(writes[1], &token, sizeof token), (int)sizeof token);
    for (int i = 0; i < TOKENS; i++) {
        CHECK_EQ(read(reads[0], &token, sizeof token), (int)sizeof token);
        CHECK_EQ(token, RING - 1);
    }
    printf("%d tokens: each %d steps\n", TOKENS, token);

    token = -1;
    CHECK_EQ(write(writes[1], &token, sizeof token), (int)sizeof token);
    CHECK_EQ(read(reads[0], &token, sizeof token), (int)sizeof token);
    CHECK_EQ(token, -1);
    for (int i = 1; i < RING; i++)
        CHECK_EQ((intptr_t)join(threads[i]), ROUNDS + TOKENS);
    for (int i = 0; i < RING; i++) {
        CHECK_SYS(close(reads[i]));
        CHECK_SYS(close(writes[i]));
    }
    return 0;
}
