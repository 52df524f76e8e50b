// Threads that compute without a call hold up nobody: the others sleep, wait, lock and create meanwhile.
#include "check.h"

#include <stdatomic.h>

static atomic_int done;
static atomic_int stop;

/* Computes until all others are done: if it held them up, it would never end. */
static void *compute(void *arg)
{
    volatile unsigned long x = (unsigned long)arg;
    while (atomic_load_explicit(&stop, memory_order_relaxed) == 0)
        x = x * 6364136223846793005 + 1442695040888963407;
    return arg;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int turn;
static int pipes[2];

static void *sleeps(void *arg)
{
    for (int i = 0; i < 10; i++)
        usleep(1000);
    atomic_fetch_add(&done, 1);
    return arg;
}

static void *pingpong(void *arg)
{
    int me = (int)(long)arg;
    for (int i = 0; i < 10; i++) {
        pthread_mutex_lock(&mutex);
        while (turn != me)
            pthread_cond_wait(&cond, &mutex);
        turn = !me;
        pthread_cond_broadcast(&cond);
        pthread_mutex_unlock(&mutex);
    }
    atomic_fetch_add(&done, 1);
    return arg;
}

static void *reads(void *arg)
{
    char byte;
    for (int i = 0; i < 10; i++)
        CHECK_EQ(read(pipes[0], &byte, 1), 1);
    atomic_fetch_add(&done, 1);
    return arg;
}

static void *writes(void *arg)
{
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(write(pipes[1], "x", 1), 1);
        sched_yield();
    }
    atomic_fetch_add(&done, 1);
    return arg;
}

static void *creates(void *arg)
{
    for (int i = 0; i < 3; i++)
        join(start(sleeps, NULL));
    atomic_fetch_add(&done, 1);
    return arg;
}

int main(void)
{
    enum { COMPUTING = 5, OTHERS = 6 };
    pthread_t computing[COMPUTING], others[OTHERS];
    CHECK_SYS(pipe(pipes));
    for (long i = 0; i < COMPUTING; i++)
        computing[i] = start(compute, (void *)i);
    others[0] = start(sleeps, NULL);
    others[1] = start(pingpong, (void *)0);
    others[2] = start(pingpong, (void *)1);
    others[3] = start(reads, NULL);
    others[4] = start(writes, NULL);
    others[5] = start(creates, NULL);
    for (int i = 0; i < OTHERS; i++)
        join(others[i]);
    CHECK_EQ(atomic_load(&done), OTHERS + 3);
    atomic_store(&stop, 1);
    for (int i = 0; i < COMPUTING; i++)
        join(computing[i]);
    puts("compute: ok");
    return 0;
}
