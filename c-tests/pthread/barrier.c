// Barriers: nobody passes before all have come, exactly one is told that it is the serial thread, over many rounds.
#include "check.h"

#include <stdatomic.h>

enum { THREADS = 24, ROUNDS = 500 };
static pthread_barrier_t barrier;
static atomic_int arrived[ROUNDS], serial[ROUNDS];
static int threads;

static void *rounds(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        if ((i + (long)arg) % 97 == 0)
            usleep(100);
        else if ((i + (long)arg) % 3 == 0)
            sched_yield();
        atomic_fetch_add(&arrived[i], 1);
        int got = pthread_barrier_wait(&barrier);
        CHECK(got == 0 || got == PTHREAD_BARRIER_SERIAL_THREAD);
        atomic_fetch_add(&serial[i], got == PTHREAD_BARRIER_SERIAL_THREAD);
        CHECK_EQ(atomic_load(&arrived[i]), threads);
    }
    return arg;
}

static void run(int count)
{
    pthread_t handles[THREADS];
    threads = count;
    memset(arrived, 0, sizeof arrived);
    memset(serial, 0, sizeof serial);
    CHECK_OK(pthread_barrier_init(&barrier, NULL, (unsigned)count));
    for (long i = 0; i < count; i++)
        handles[i] = start(rounds, (void *)i);
    for (int i = 0; i < count; i++)
        join(handles[i]);
    for (int i = 0; i < ROUNDS; i++)
        CHECK_EQ(atomic_load(&serial[i]), 1);
    CHECK_OK(pthread_barrier_destroy(&barrier));
}

/* The serial thread may destroy the barrier at once and reuse its memory. */
static void *last_destroys(void *arg)
{
    pthread_barrier_t *it = arg;
    if (pthread_barrier_wait(it) == PTHREAD_BARRIER_SERIAL_THREAD) {
        CHECK_OK(pthread_barrier_destroy(it));
        memset(it, 0xff, sizeof *it);
    }
    return NULL;
}

int main(void)
{
    pthread_barrierattr_t attr;
    int value;
    CHECK_ERR(pthread_barrier_init(&barrier, NULL, 0), EINVAL);
    CHECK_OK(pthread_barrierattr_init(&attr));
    CHECK_OK(pthread_barrierattr_getpshared(&attr, &value));
    CHECK_EQ(value, PTHREAD_PROCESS_PRIVATE);
    CHECK_OK(pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    CHECK_OK(pthread_barrierattr_getpshared(&attr, &value));
    CHECK_EQ(value, PTHREAD_PROCESS_SHARED);
    CHECK_ERR(pthread_barrierattr_setpshared(&attr, 99), EINVAL);
    CHECK_OK(pthread_barrierattr_destroy(&attr));

    CHECK_OK(pthread_barrier_init(&barrier, NULL, 1));
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_barrier_wait(&barrier), PTHREAD_BARRIER_SERIAL_THREAD);
    CHECK_OK(pthread_barrier_destroy(&barrier));

    run(1);
    run(2);
    run(THREADS);

    for (int round = 0; round < 100; round++) {
        pthread_t handles[4];
        pthread_barrier_t own;
        CHECK_OK(pthread_barrier_init(&own, NULL, 4));
        for (int i = 0; i < 4; i++)
            handles[i] = start(last_destroys, &own);
        for (int i = 0; i < 4; i++)
            join(handles[i]);
    }
    puts("barriers: ok");
    return 0;
}
