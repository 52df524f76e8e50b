// Nobody starves: threads that yield, that take turns, that fight for a lock, that sleep, that wait for a pipe, that
// create others, all get on beside each other, although none of them ever stops.
#include "check.h"

#include <semaphore.h>
#include <stdatomic.h>

enum { YIELD, SPIN, LOCK, COND, SEM, PIPE, SLEEP, CREATE, KINDS };
enum { OF_EACH = 4, ENOUGH = 50 };

static atomic_int rounds[KINDS][OF_EACH];
static atomic_int stop;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t turn_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_cond = PTHREAD_COND_INITIALIZER;
static int turn;
static sem_t sems[OF_EACH];
static int pipes[OF_EACH][2];
static long shared;

static void *nothing(void *arg)
{
    return arg;
}

/* One round of its kind. Those who wait for each other go round in a ring of their kind. */
static void go(int kind, int me)
{
    int next = (me + 1) % OF_EACH;
    char byte = 'x';
    switch (kind) {
    case YIELD:
        CHECK_EQ(sched_yield(), 0);
        break;
    case SPIN: /* computes, and never calls anything */
        for (volatile int i = 0; i < 1000; i++)
            ;
        break;
    case LOCK:
        CHECK_OK(pthread_mutex_lock(&mutex));
        shared++;
        CHECK_OK(pthread_mutex_unlock(&mutex));
        break;
    case COND:
        CHECK_OK(pthread_mutex_lock(&turn_mutex));
        while (turn != me && !atomic_load(&stop))
            CHECK_OK(pthread_cond_wait(&turn_cond, &turn_mutex));
        turn = next;
        CHECK_OK(pthread_cond_broadcast(&turn_cond));
        CHECK_OK(pthread_mutex_unlock(&turn_mutex));
        break;
    case SEM:
        CHECK_SYS(sem_wait(&sems[me]));
        CHECK_SYS(sem_post(&sems[next]));
        break;
    case PIPE:
        CHECK_EQ(read(pipes[me][0], &byte, 1), 1);
        CHECK_EQ(write(pipes[next][1], &byte, 1), 1);
        break;
    case SLEEP:
        CHECK_SYS(usleep(100));
        break;
    default:
        CHECK(join(start(nothing, &byte)) == &byte);
    }
}

static void *run(void *arg)
{
    long number = (long)arg;
    int kind = (int)(number / OF_EACH), me = (int)(number % OF_EACH);
    while (!atomic_load(&stop)) {
        go(kind, me);
        atomic_fetch_add_explicit(&rounds[kind][me], 1, memory_order_relaxed);
    }
    return NULL;
}

/* All have come so far, or further. */
static void await(int count)
{
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < OF_EACH; i++)
            while (atomic_load(&rounds[kind][i]) < count)
                usleep(1000);
}

/* Ends them all: those who wait for their turn get one. */
static void end(void)
{
    CHECK_OK(pthread_mutex_lock(&turn_mutex));
    atomic_store(&stop, 1);
    CHECK_OK(pthread_cond_broadcast(&turn_cond));
    CHECK_OK(pthread_mutex_unlock(&turn_mutex));
    for (int i = 0; i < OF_EACH; i++) {
        CHECK_SYS(sem_post(&sems[i]));
        CHECK_EQ(write(pipes[i][1], "x", 1), 1);
    }
}

int main(void)
{
    pthread_t threads[KINDS * OF_EACH];
    for (int i = 0; i < OF_EACH; i++) {
        CHECK_SYS(sem_init(&sems[i], 0, i == 0));
        CHECK_SYS(pipe(pipes[i]));
    }
    CHECK_EQ(write(pipes[0][1], "x", 1), 1);
    for (long i = 0; i < KINDS * OF_EACH; i++)
        threads[i] = start(run, (void *)i);
    await(ENOUGH);
    end();
    for (int i = 0; i < KINDS * OF_EACH; i++)
        join(threads[i]);
    puts("nobody starves: ok");
    return 0;
}
