// setjmp and longjmp within one thread, across yields and from deep.
#include "check.h"

#include <setjmp.h>

enum { THREADS = 50 };

static void (*volatile jump_back)(jmp_buf, int) = longjmp;

__attribute__((noinline)) static void dive(jmp_buf env, int depth, int value)
{
    volatile char room[300];
    room[0] = (char)depth;
    if (depth % 5 == 0)
        sched_yield();
    if (depth == 0) {
        jump_back(env, value);
        return;
    }
    dive(env, depth - 1, value);
    room[1] = room[0];
}

static void *jump(void *arg)
{
    jmp_buf env;
    volatile int rounds = 0;
    volatile long me = (long)arg;

    int got = setjmp(env);
    CHECK_EQ(got, rounds);
    CHECK(me == (long)arg);
    if (rounds < 30) {
        rounds++;
        if (rounds % 10 == 0)
            usleep(100);
        dive(env, 20, rounds);
    }
    CHECK_EQ(rounds, 30);

    /* 0 becomes 1. */
    volatile int jumped = 0;
    got = setjmp(env);
    if (!jumped) {
        CHECK_EQ(got, 0);
        jumped = 1;
        sched_yield();
        longjmp(env, 0);
    }
    CHECK_EQ(got, 1);

    /* The old names. */
    if (_setjmp(env) == 0) {
        usleep(50);
        _longjmp(env, 2);
    }
    return arg;
}

int main(void)
{
    pthread_t threads[THREADS];
    jump((void *)99);
    for (long i = 0; i < THREADS; i++)
        threads[i] = start(jump, (void *)i);
    for (long i = 0; i < THREADS; i++)
        CHECK(join(threads[i]) == (void *)i);
    puts("setjmp: ok");
    return 0;
}
