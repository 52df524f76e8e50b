// A thread that recurses for ever runs into its guard page: the process dies by SIGSEGV.
// no-stats
// expects-stderr
#include "check.h"

static volatile int forever = 1;

__attribute__((noinline)) static int recurse(int depth)
{
    volatile char room[1000];
    room[0] = (char)depth;
    if (forever)
        return recurse(depth + 1) + room[0];
    return 0;
}

static void *overflow(void *arg)
{
    sched_yield();
    return (void *)(long)(recurse(0) + (int)(long)arg);
}

static void *bystander(void *arg)
{
    sleep(1000);
    return arg;
}

int main(void)
{
    for (int i = 0; i < 10; i++)
        start(bystander, NULL);
    puts("before");
    fflush(stdout);
    join(start(overflow, NULL));
    puts("not reached");
    return 0;
}
