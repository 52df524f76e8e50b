// sigsetjmp and siglongjmp: the signal mask comes back when it was saved, and only then; across yields and sleeps.
#include "check.h"

#include <setjmp.h>
#include <signal.h>

enum { THREADS = 50 };

static void rest(long how)
{
    if (how % 10 == 0)
        usleep(100);
    else
        sched_yield();
}

static void *jump(void *arg)
{
    sigjmp_buf env;
    sigset_t mask, now;
    volatile long me = (long)arg;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    for (volatile int round = 0; round < 20; round++) {
        int save = round % 2;
        CHECK_OK(pthread_sigmask(SIG_UNBLOCK, &mask, NULL));
        int got = sigsetjmp(env, save);
        if (got == 0) {
            CHECK_OK(pthread_sigmask(SIG_BLOCK, &mask, NULL));
            rest(me + round);
            siglongjmp(env, 7);
        }
        CHECK_EQ(got, 7);
        CHECK(me == (long)arg);
        rest(me + round);
        CHECK_OK(pthread_sigmask(SIG_BLOCK, NULL, &now));
        CHECK_EQ(sigismember(&now, SIGUSR2), round % 2 == 0);
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
    puts("sigsetjmp: ok");
    return 0;
}
