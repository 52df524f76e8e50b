// A token goes round a ring of threads, by semaphores and by condition variables.
#include "check.h"

#include <semaphore.h>

enum { RING = 100, ROUNDS = 50 };
static sem_t sems[RING];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t conds[RING];
static long token;

static void *by_sem(void *arg)
{
    long me = (long)arg;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_SYS(sem_wait(&sems[me]));
        CHECK_EQ(token, i * RING + me);
        token++;
        CHECK_SYS(sem_post(&sems[(me + 1) % RING]));
    }
    return arg;
}

static void *by_cond(void *arg)
{
    long me = (long)arg;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&mutex);
        while (token != i * RING + me)
            pthread_cond_wait(&conds[me], &mutex);
        token++;
        pthread_cond_signal(&conds[(me + 1) % RING]);
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}

static void run(void *(*routine)(void *))
{
    pthread_t threads[RING];
    token = 0;
    for (long i = 0; i < RING; i++)
        threads[i] = start(routine, (void *)i);
    if (routine == by_sem)
        CHECK_SYS(sem_post(&sems[0]));
    for (int i = 0; i < RING; i++)
        join(threads[i]);
    CHECK_EQ(token, RING * ROUNDS);
}

int main(void)
{
    for (int i = 0; i < RING; i++) {
        CHECK_SYS(sem_init(&sems[i], 0, 0));
        CHECK_OK(pthread_cond_init(&conds[i], NULL));
    }
    run(by_sem);
    run(by_cond);
    puts("ring: ok");
    return 0;
}
