/* What the calls that never wait cost: lock + unlock, sem_post + sem_wait, pthread_getspecific. Each is measured in
 * slices, and the fastest slice counts: nothing but interference makes a slice slower. */
#include "micro.h"
#include <semaphore.h>

enum { SLICE = 20000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t semaphore;
static pthread_key_t key;
static double limit_ns, results[3];

static void lock_slice(void)
{
    for (int i = 0; i < SLICE; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
}

static void sem_slice(void)
{
    for (int i = 0; i < SLICE; i++) {
        sem_post(&semaphore);
        sem_wait(&semaphore);
    }
}

static void specific_slice(void)
{
    for (int i = 0; i < SLICE; i++)
        if (pthread_getspecific(key) != &key)
            exit(1);
}

static double best(void (*slice)(void))
{
    double fastest = 1e18, begin = now_ns();
    while (now_ns() - begin < limit_ns / 3) {
        double from = now_ns();
        slice();
        double took = (now_ns() - from) / SLICE;
        if (took < fastest)
            fastest = took;
    }
    return fastest;
}

static void *measure(void *argument)
{
    (void)argument;
    check(pthread_setspecific(key, &key), "pthread_setspecific");
    results[0] = best(lock_slice);
    results[1] = best(sem_slice);
    results[2] = best(specific_slice);
    return NULL;
}

int main(int argc, char **argv)
{
    limit_ns = duration_ns(argc, argv);
    check(pthread_key_create(&key, NULL), "pthread_key_create");
    if (sem_init(&semaphore, 0, 0) != 0)
        exit(1);
    pthread_t thread;
    check(pthread_create(&thread, NULL, measure, NULL), "pthread_create");
    check(pthread_join(thread, NULL), "pthread_join");
    printf("{\"name\":\"mutex_uncontended\",\"lock_unlock_ns\":%.2f,\"sem_post_wait_ns\":%.2f,"
           "\"getspecific_ns\":%.2f}\n",
           results[0], results[1], results[2]);
    return 0;
}
