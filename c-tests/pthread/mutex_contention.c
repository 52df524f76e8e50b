// A counter behind one mutex, and many mutexes behind many threads: no increment is lost, nobody starves.
#include "check.h"

enum { THREADS = 64, ROUNDS = 20000, LOCKS = 17 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long counter;

static void *count_up(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_OK(pthread_mutex_lock(&mutex));
        counter++;
        CHECK_OK(pthread_mutex_unlock(&mutex));
    }
    return arg;
}

/* Yields and sleeps while it holds the mutex, so that others really wait. */
static void *count_slowly(void *arg)
{
    for (int i = 0; i < 100; i++) {
        CHECK_OK(pthread_mutex_lock(&mutex));
        long now = counter;
        if (i % 50 == 7)
            usleep(100);
        else if (i % 3 == 0)
            sched_yield();
        counter = now + 1;
        CHECK_OK(pthread_mutex_unlock(&mutex));
    }
    return arg;
}

/* Money moves between accounts, two locks at a time, taken in order. */
static pthread_mutex_t locks[LOCKS];
static long accounts[LOCKS];

static void *transfer(void *arg)
{
    unsigned seed = (unsigned)(long)arg;
    for (int i = 0; i < 2000; i++) {
        unsigned from = (unsigned)rand_r(&seed) % LOCKS;
        unsigned to = (from + 1 + (unsigned)rand_r(&seed) % (LOCKS - 1)) % LOCKS;
        unsigned first = from < to ? from : to, second = from < to ? to : from;
        CHECK_OK(pthread_mutex_lock(&locks[first]));
        while (pthread_mutex_trylock(&locks[second]) == EBUSY)
            sched_yield();
        accounts[from]--;
        if (i % 100 == 0)
            sched_yield();
        accounts[to]++;
        CHECK_OK(pthread_mutex_unlock(&locks[second]));
        CHECK_OK(pthread_mutex_unlock(&locks[first]));
    }
    return arg;
}

/* One who takes the lock now and then must get it although others take it all the time. */
static volatile int stop;

static void *greedy(void *arg)
{
    while (!stop) {
        CHECK_OK(pthread_mutex_lock(&mutex));
        counter++;
        sched_yield();
        CHECK_OK(pthread_mutex_unlock(&mutex));
    }
    return arg;
}

static void *modest(void *arg)
{
    for (int i = 0; i < 20; i++) {
        CHECK_OK(pthread_mutex_lock(&mutex));
        CHECK_OK(pthread_mutex_unlock(&mutex));
        usleep(500);
    }
    stop = 1;
    return arg;
}

static void run(int threads, void *(*routine)(void *))
{
    pthread_t thread[THREADS];
    for (long i = 0; i < threads; i++)
        thread[i] = start(routine, (void *)i);
    for (int i = 0; i < threads; i++)
        join(thread[i]);
}

int main(void)
{
    run(THREADS, count_up);
    CHECK_EQ(counter, (long)THREADS * ROUNDS);
    counter = 0;
    run(THREADS, count_slowly);
    CHECK_EQ(counter, THREADS * 100);

    for (int i = 0; i < LOCKS; i++)
        CHECK_OK(pthread_mutex_init(&locks[i], NULL));
    run(THREADS, transfer);
    long sum = 0;
    for (int i = 0; i < LOCKS; i++) {
        sum += accounts[i];
        CHECK_OK(pthread_mutex_destroy(&locks[i]));
    }
    CHECK_EQ(sum, 0);

    pthread_t greedies[3];
    for (int i = 0; i < 3; i++)
        greedies[i] = start(greedy, NULL);
    run(1, modest);
    for (int i = 0; i < 3; i++)
        join(greedies[i]);

    puts("mutex contention: ok");
    return 0;
}
