// The main thread and created threads share mutexes, condition variables, semaphores, barriers and locks.
#include "check.h"

#include <semaphore.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t ping, pong;
static long counter, turn;

enum { THREADS = 8, ROUNDS = 2000 };

/* Everybody, main too, counts. */
static void *count_up(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_OK(pthread_mutex_lock(&mutex));
        long now = counter;
        if (i % 100 == 0)
            sched_yield();
        counter = now + 1;
        CHECK_OK(pthread_mutex_unlock(&mutex));
    }
    return arg;
}

/* Turns go round: 0 is main. */
static void *take_turns(void *arg)
{
    long me = (long)arg;
    for (int i = 0; i < 200; i++) {
        CHECK_OK(pthread_mutex_lock(&mutex));
        while (turn != me)
            CHECK_OK(pthread_cond_wait(&cond, &mutex));
        turn = (turn + 1) % (THREADS + 1);
        CHECK_OK(pthread_cond_broadcast(&cond));
        CHECK_OK(pthread_mutex_unlock(&mutex));
    }
    return arg;
}

static void *answer(void *arg)
{
    for (int i = 0; i < 1000; i++) {
        CHECK_SYS(sem_wait(&ping));
        CHECK_SYS(sem_post(&pong));
    }
    return arg;
}

static void *meet(void *arg)
{
    for (int i = 0; i < 200; i++)
        pthread_barrier_wait(&barrier);
    return arg;
}

static void *read_and_write(void *arg)
{
    for (int i = 0; i < 300; i++) {
        if (i % 4) {
            CHECK_OK(pthread_rwlock_rdlock(&rwlock));
            long now = counter;
            sched_yield();
            CHECK_EQ(counter, now);
        } else {
            CHECK_OK(pthread_rwlock_wrlock(&rwlock));
            long now = counter;
            sched_yield();
            counter = now + 1;
        }
        CHECK_OK(pthread_rwlock_unlock(&rwlock));
    }
    return arg;
}

static void together(void *(*routine)(void *))
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        threads[i] = start(routine, (void *)(i + 1));
    routine((void *)0);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
}

int main(void)
{
    together(count_up);
    CHECK_EQ(counter, (THREADS + 1) * ROUNDS);
    together(take_turns);
    CHECK_EQ(turn, 0);
    CHECK_OK(pthread_barrier_init(&barrier, NULL, THREADS + 1));
    together(meet);
    CHECK_OK(pthread_barrier_destroy(&barrier));
    counter = 0;
    together(read_and_write);
    CHECK_EQ(counter, (THREADS + 1) * 75);

    CHECK_SYS(sem_init(&ping, 0, 0));
    CHECK_SYS(sem_init(&pong, 0, 0));
    pthread_t thread = start(answer, NULL);
    for (int i = 0; i < 1000; i++) {
        CHECK_SYS(sem_post(&ping));
        CHECK_SYS(sem_wait(&pong));
    }
    join(thread);
    puts("main and threads together: ok");
    return 0;
}
