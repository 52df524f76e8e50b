// 10,000 threads alive at once: asleep, waiting on a condition, on a semaphore and on a mutex; all come back.
// timeout: 180
#include "check.h"

#include <semaphore.h>
#include <stdatomic.h>

enum { THREADS = 10000 };
static pthread_t threads[THREADS];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static atomic_int here;
static int go;

static void *wait_cond(void *arg)
{
    pthread_mutex_lock(&mutex);
    atomic_fetch_add(&here, 1);
    while (!go)
        pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
    return arg;
}

static void *wait_sem(void *arg)
{
    atomic_fetch_add(&here, 1);
    CHECK_SYS(sem_wait(&sem));
    CHECK_SYS(sem_post(&sem));
    return arg;
}

static void *sleeps(void *arg)
{
    atomic_fetch_add(&here, 1);
    sleep_ms(200 + (long)arg % 100);
    return arg;
}

static void *mixed(void *arg)
{
    switch ((long)arg % 3) {
    case 0:
        return wait_cond(arg);
    case 1:
        return wait_sem(arg);
    default:
        while (atomic_load(&here) < THREADS / 3)
            sleep_ms(20);
        return sleeps(arg);
    }
}

static void run(void *(*routine)(void *), int all_wait)
{
    pthread_attr_t attr;
    CHECK_OK(pthread_attr_init(&attr));
    CHECK_OK(pthread_attr_setstacksize(&attr, 64 << 10));
    atomic_store(&here, 0);
    go = 0;
    CHECK_SYS(sem_init(&sem, 0, 0));
    for (long i = 0; i < THREADS; i++)
        CHECK_OK(pthread_create(&threads[i], &attr, routine, (void *)i));
    while (all_wait && atomic_load(&here) < THREADS)
        usleep(1000);
    pthread_mutex_lock(&mutex);
    go = 1;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&mutex);
    CHECK_SYS(sem_post(&sem));
    for (long i = 0; i < THREADS; i++)
        CHECK(join(threads[i]) == (void *)i);
    CHECK_SYS(sem_destroy(&sem));
    CHECK_OK(pthread_attr_destroy(&attr));
}

int main(void)
{
    run(wait_cond, 1);
    run(wait_sem, 1);
    run(sleeps, 0);
    run(mixed, 1);
    puts("10,000 threads: ok");
    return 0;
}
