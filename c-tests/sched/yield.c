// sched_yield lets others run and returns 0; two threads that yield to each other both get on.
#include "check.h"

#include <stdatomic.h>

enum { THREADS = 100, ROUNDS = 2000 };
static atomic_long rounds;

static void *yields(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ(sched_yield(), 0);
        atomic_fetch_add_explicit(&rounds, 1, memory_order_relaxed);
    }
    return arg;
}

static atomic_int flag;

static void *sets(void *arg)
{
    usleep(1000);
    atomic_store(&flag, 1);
    return arg;
}

static void *awaits(void *arg)
{
    while (!atomic_load(&flag))
        sched_yield();
    return arg;
}

int main(void)
{
    pthread_t threads[THREADS];
    CHECK_EQ(sched_yield(), 0);
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(yields, NULL);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    CHECK_EQ(atomic_load(&rounds), THREADS * ROUNDS);
    for (int i = 0; i < 10; i++)
        threads[i] = start(awaits, NULL);
    join(start(sets, NULL));
    for (int i = 0; i < 10; i++)
        join(threads[i]);
    puts("yield: ok");
    return 0;
}
