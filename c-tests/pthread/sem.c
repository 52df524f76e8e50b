// Unnamed semaphores: wait, trywait, timedwait, clockwait, post, getvalue, their errors; producers and consumers.
#include "check.h"

#include <limits.h>
#include <semaphore.h>
#include <stdatomic.h>

static sem_t sem;

static int value(void)
{
    int now;
    CHECK_SYS(sem_getvalue(&sem, &now));
    return now;
}

static void *empty(void *arg)
{
    struct timespec when;
    CHECK_ERRNO(sem_trywait(&sem), EAGAIN);
    when = in_ms(CLOCK_REALTIME, -1000);
    CHECK_ERRNO(sem_timedwait(&sem, &when), ETIMEDOUT);
    int64_t began = now_ns();
    when = in_ms(CLOCK_REALTIME, 20);
    CHECK_ERRNO(sem_timedwait(&sem, &when), ETIMEDOUT);
    CHECK_LASTED(began, 19);
    began = now_ns();
    when = in_ms(CLOCK_MONOTONIC, 20);
    CHECK_ERRNO(sem_clockwait(&sem, CLOCK_MONOTONIC, &when), ETIMEDOUT);
    CHECK_LASTED(began, 20);
    CHECK_ERRNO(sem_clockwait(&sem, CLOCK_THREAD_CPUTIME_ID, &when), EINVAL);
    when.tv_nsec = 1000000000;
    CHECK_ERRNO(sem_timedwait(&sem, &when), EINVAL);
    CHECK_EQ(value(), 0);
    return arg;
}

static atomic_int passed;

static void *pass(void *arg)
{
    struct timespec when = in_ms(CLOCK_REALTIME, 20000);
    struct timespec then = in_ms(CLOCK_MONOTONIC, 20000);
    long how = (long)arg;
    CHECK_SYS(how % 3 == 0   ? sem_wait(&sem)
              : how % 3 == 1 ? sem_timedwait(&sem, &when)
                             : sem_clockwait(&sem, CLOCK_MONOTONIC, &then));
    atomic_fetch_add(&passed, 1);
    return arg;
}

/* A ring with two semaphores and a third as a mutex. */
enum { ROOM = 16, PAIRS = 6, ITEMS = 5000 };
static sem_t room, items, lock;
static long ring[ROOM];
static unsigned first, last;
static atomic_long produced, consumed;

static void *produce(void *arg)
{
    for (long i = 0; i < ITEMS; i++) {
        long item = (long)arg * ITEMS + i;
        CHECK_SYS(sem_wait(&room));
        CHECK_SYS(sem_wait(&lock));
        ring[last++ % ROOM] = item;
        CHECK_SYS(sem_post(&lock));
        CHECK_SYS(sem_post(&items));
        atomic_fetch_add(&produced, item);
    }
    return NULL;
}

static void *consume(void *arg)
{
    for (long i = 0; i < ITEMS; i++) {
        while ((long)arg % 2 && sem_trywait(&items) == -1) {
            CHECK_EQ(errno, EAGAIN);
            sched_yield();
            if (i % 2) {
                CHECK_SYS(sem_wait(&items));
                break;
            }
        }
        if ((long)arg % 2 == 0)
            CHECK_SYS(sem_wait(&items));
        CHECK_SYS(sem_wait(&lock));
        atomic_fetch_add(&consumed, ring[first++ % ROOM]);
        CHECK_SYS(sem_post(&lock));
        CHECK_SYS(sem_post(&room));
    }
    return NULL;
}

int main(void)
{
    struct timespec past = in_ms(CLOCK_REALTIME, -1000);

    CHECK_ERRNO(sem_init(&sem, 0, (unsigned)SEM_VALUE_MAX + 1), EINVAL);
    CHECK_SYS(sem_init(&sem, 0, SEM_VALUE_MAX));
    CHECK_EQ(value(), SEM_VALUE_MAX);
    CHECK_ERRNO(sem_post(&sem), EOVERFLOW);
    CHECK_SYS(sem_wait(&sem));
    CHECK_SYS(sem_post(&sem));
    CHECK_SYS(sem_destroy(&sem));

    CHECK_SYS(sem_init(&sem, 0, 4));
    CHECK_SYS(sem_wait(&sem));
    CHECK_SYS(sem_trywait(&sem));
    CHECK_SYS(sem_timedwait(&sem, &past)); /* available: taken whatever the deadline says */
    CHECK_SYS(sem_clockwait(&sem, CLOCK_MONOTONIC, &past));
    CHECK_EQ(value(), 0);
    empty(NULL);
    join(start(empty, NULL));

    /* As many pass as there are posts. */
    enum { MANY = 60 };
    pthread_t threads[MANY];
    for (long i = 0; i < MANY; i++)
        threads[i] = start(pass, (void *)i);
    sleep_ms(10);
    CHECK_EQ(atomic_load(&passed), 0);
    for (int i = 1; i <= MANY; i++) {
        CHECK_SYS(sem_post(&sem));
        if (i % 10 == 0) {
            while (atomic_load(&passed) < i)
                usleep(500);
            sched_yield();
            CHECK_EQ(atomic_load(&passed), i);
        }
    }
    for (int i = 0; i < MANY; i++)
        join(threads[i]);
    CHECK_EQ(value(), 0);
    CHECK_SYS(sem_destroy(&sem));

    CHECK_SYS(sem_init(&room, 0, ROOM));
    CHECK_SYS(sem_init(&items, 0, 0));
    CHECK_SYS(sem_init(&lock, 0, 1));
    pthread_t producers[PAIRS], consumers[PAIRS];
    for (long i = 0; i < PAIRS; i++) {
        consumers[i] = start(consume, (void *)i);
        producers[i] = start(produce, (void *)i);
    }
    for (int i = 0; i < PAIRS; i++) {
        join(producers[i]);
        join(consumers[i]);
    }
    long want = (long)PAIRS * ITEMS * (PAIRS * ITEMS - 1) / 2;
    CHECK_EQ(atomic_load(&produced), want);
    CHECK_EQ(atomic_load(&consumed), want);

    puts("semaphores: ok");
    return 0;
}
