// Threads that wait by reading memory in a loop, with or without sched_yield: who must write it gets to run.
#include "check.h"

#include <stdatomic.h>

static atomic_int turn;

struct spinner {
    int me, yield;
};

static void *spin(void *arg)
{
    struct spinner *spinner = arg;
    for (int i = 0; i < (spinner->yield ? 2000 : 10); i++) {
        while (atomic_load(&turn) != spinner->me)
            if (spinner->yield)
                sched_yield();
        atomic_store(&turn, !spinner->me);
    }
    return NULL;
}

int main(void)
{
    for (int yield = 0; yield < 2; yield++) {
        struct spinner spinners[2] = {{0, yield}, {1, yield}};
        pthread_t threads[2];
        for (int i = 0; i < 2; i++)
            threads[i] = start(spin, &spinners[i]);
        for (int i = 0; i < 2; i++)
            join(threads[i]);
        CHECK_EQ(atomic_load(&turn), 0);
    }
    puts("spinning on memory: ok");
    return 0;
}
