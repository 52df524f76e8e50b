// Every kind of lock at once: created threads and the initial thread, all ways to wait, objects freed by the last
// user right after it was let through. What is counted must add up, and nothing may hang.
#include "check.h"

#include <semaphore.h>
#include <stdatomic.h>

enum { TIMES = 250, PLAYERS = 7 };

static __thread unsigned seed;

static unsigned any(unsigned below)
{
    return (unsigned)rand_r(&seed) % below;
}

static void dawdle(void)
{
    switch (any(16)) {
    case 0:
        usleep(any(200));
        break;
    case 1:
    case 2:
        sched_yield();
        break;
    case 3:
        for (volatile unsigned i = any(2000); i > 0; i--)
            ;
    }
}

static struct timespec in_us(clockid_t clock, unsigned us)
{
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += us * 1000L;
    if (time.tv_nsec >= 1000000000) {
        time.tv_nsec -= 1000000000;
        time.tv_sec++;
    }
    return time;
}

/* A bounded queue; signals inside and outside of the mutex, broadcasts, waits with and without a time. */
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
static int queued, ended;

static void wait_for(pthread_cond_t *cond)
{
    if (any(4)) {
        CHECK_OK(pthread_cond_wait(cond, &queue_lock));
        return;
    }
    struct timespec time = in_us(CLOCK_MONOTONIC, any(100));
    int got = pthread_cond_clockwait(cond, &queue_lock, CLOCK_MONOTONIC, &time);
    CHECK(got == 0 || got == ETIMEDOUT);
}

static void *produce(void *arg)
{
    seed = (unsigned)(long)arg;
    for (int i = 0; i < TIMES; i++) {
        CHECK_OK(pthread_mutex_lock(&queue_lock));
        while (queued == 4)
            wait_for(&not_full);
        queued++;
        int inside = (int)any(4);
        if (inside)
            CHECK_OK(pthread_cond_signal(&not_empty));
        CHECK_OK(pthread_mutex_unlock(&queue_lock));
        if (!inside)
            CHECK_OK(any(2) ? pthread_cond_signal(&not_empty) : pthread_cond_broadcast(&not_empty));
        dawdle();
    }
    return NULL;
}

static void *consume(void *arg)
{
    long got = 0;
    seed = (unsigned)(long)arg;
    CHECK_OK(pthread_mutex_lock(&queue_lock));
    for (;;) {
        while (queued == 0 && !ended)
            wait_for(&not_empty);
        if (queued == 0)
            break;
        queued--;
        got++;
        CHECK_OK(any(2) ? pthread_cond_signal(&not_full) : pthread_cond_broadcast(&not_full));
        if (any(4) == 0) {
            CHECK_OK(pthread_mutex_unlock(&queue_lock));
            dawdle();
            CHECK_OK(pthread_mutex_lock(&queue_lock));
        }
    }
    CHECK_OK(pthread_mutex_unlock(&queue_lock));
    return (void *)got;
}

/* Two threads in turns by one condition variable; the last one frees it. A lost wake-up hangs. */
struct turns {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int next, joined, users;
};

static void *take_turns(void *arg)
{
    struct turns *turns = arg;
    CHECK_OK(pthread_mutex_lock(&turns->lock));
    int me = turns->joined++;
    CHECK_OK(pthread_mutex_unlock(&turns->lock));
    for (int i = 0; i < TIMES; i++) {
        CHECK_OK(pthread_mutex_lock(&turns->lock));
        while (turns->next != me)
            CHECK_OK(pthread_cond_wait(&turns->changed, &turns->lock));
        turns->next = !me;
        if (i % 2)
            CHECK_OK(pthread_cond_signal(&turns->changed));
        CHECK_OK(pthread_mutex_unlock(&turns->lock));
        if (i % 2 == 0)
            CHECK_OK(pthread_cond_signal(&turns->changed));
    }
    CHECK_OK(pthread_mutex_lock(&turns->lock));
    int last = --turns->users == 0;
    CHECK_OK(pthread_mutex_unlock(&turns->lock));
    if (last) {
        CHECK_OK(pthread_mutex_destroy(&turns->lock));
        CHECK_OK(pthread_cond_destroy(&turns->changed));
        memset(turns, 0xaa, sizeof *turns);
        free(turns);
    }
    return NULL;
}

/* Many wait for one event, pass a semaphore, meet at a barrier; whoever is last there frees it all at once. */
struct event {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int happened;
    sem_t tickets;
    pthread_barrier_t all;
};

static void *attend(void *arg)
{
    struct event *event = arg;
    CHECK_OK(pthread_mutex_lock(&event->lock));
    while (!event->happened)
        CHECK_OK(pthread_cond_wait(&event->changed, &event->lock));
    CHECK_OK(pthread_mutex_unlock(&event->lock));
    CHECK_EQ(sem_wait(&event->tickets), 0);
    int got = pthread_barrier_wait(&event->all);
    if (got == PTHREAD_BARRIER_SERIAL_THREAD) {
        CHECK_OK(pthread_barrier_destroy(&event->all));
        CHECK_OK(pthread_cond_destroy(&event->changed));
        CHECK_OK(pthread_mutex_destroy(&event->lock));
        memset(event, 0x55, sizeof *event);
        free(event);
    } else {
        CHECK_EQ(got, 0);
    }
    return NULL;
}

static void *hold_events(void *arg)
{
    seed = (unsigned)(long)arg;
    for (int i = 0; i < TIMES / 8; i++) {
        int guests = 1 + (int)any(12);
        pthread_t threads[12];
        struct event *event = malloc(sizeof *event);
        memset(event, 0xff, sizeof *event);
        event->happened = 0;
        CHECK_OK(pthread_mutex_init(&event->lock, NULL));
        CHECK_OK(pthread_cond_init(&event->changed, NULL));
        CHECK_EQ(sem_init(&event->tickets, 0, 0), 0);
        CHECK_OK(pthread_barrier_init(&event->all, NULL, (unsigned)guests + 1));
        for (int j = 0; j < guests; j++)
            threads[j] = start(attend, event);
        dawdle();
        CHECK_OK(pthread_mutex_lock(&event->lock));
        event->happened = 1;
        CHECK_OK(pthread_cond_broadcast(&event->changed));
        CHECK_OK(pthread_mutex_unlock(&event->lock));
        for (int j = 0; j <= guests; j++)
            CHECK_EQ(sem_post(&event->tickets), 0);
        attend(event);
        for (int j = 0; j < guests; j++)
            join(threads[j]);
    }
    return NULL;
}

static pthread_rwlock_t rwlocks[2];
static volatile long left[2], right[2];
static atomic_int readers[2];

static void lock_rw(pthread_rwlock_t *lock, int write)
{
    struct timespec time;
    int got;
    switch (any(3)) {
    case 0:
        do {
            time = in_us(CLOCK_REALTIME, any(100));
            got = write ? pthread_rwlock_timedwrlock(lock, &time) : pthread_rwlock_timedrdlock(lock, &time);
        } while (got == ETIMEDOUT);
        break;
    case 1:
        while ((got = write ? pthread_rwlock_trywrlock(lock) : pthread_rwlock_tryrdlock(lock)) == EBUSY)
            sched_yield();
        break;
    default:
        got = write ? pthread_rwlock_wrlock(lock) : pthread_rwlock_rdlock(lock);
    }
    CHECK_OK(got);
}

static void *read_and_write(void *arg)
{
    seed = (unsigned)(long)arg;
    for (int i = 0; i < TIMES; i++) {
        int which = (int)any(2), write = any(4) == 0;
        lock_rw(&rwlocks[which], write);
        if (write) {
            CHECK_EQ(atomic_load(&readers[which]), 0);
            left[which]++;
            dawdle();
            right[which]++;
        } else {
            atomic_fetch_add(&readers[which], 1);
            CHECK_EQ(left[which], right[which]);
            dawdle();
            CHECK_EQ(left[which], right[which]);
            atomic_fetch_sub(&readers[which], 1);
        }
        CHECK_OK(pthread_rwlock_unlock(&rwlocks[which]));
    }
    return NULL;
}

static pthread_mutex_t mutexes[4];
static const int kinds[4] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                             PTHREAD_MUTEX_ADAPTIVE_NP};
static long counts[4];

static void lock_mutex(pthread_mutex_t *mutex)
{
    struct timespec time;
    int got;
    switch (any(3)) {
    case 0:
        do {
            time = in_us(CLOCK_REALTIME, any(50));
            got = pthread_mutex_timedlock(mutex, &time);
        } while (got == ETIMEDOUT);
        break;
    case 1:
        while ((got = pthread_mutex_trylock(mutex)) == EBUSY)
            sched_yield();
        break;
    default:
        got = pthread_mutex_lock(mutex);
    }
    CHECK_OK(got);
}

static void *exclude(void *arg)
{
    seed = (unsigned)(long)arg;
    for (int i = 0; i < TIMES; i++) {
        int which = (int)any(4);
        pthread_mutex_t *mutex = &mutexes[which];
        lock_mutex(mutex);
        long before = counts[which];
        if (kinds[which] == PTHREAD_MUTEX_RECURSIVE)
            CHECK_OK(pthread_mutex_lock(mutex));
        if (kinds[which] == PTHREAD_MUTEX_ERRORCHECK)
            CHECK_ERR(pthread_mutex_lock(mutex), EDEADLK);
        dawdle();
        counts[which] = before + 1;
        if (kinds[which] == PTHREAD_MUTEX_RECURSIVE)
            CHECK_OK(pthread_mutex_unlock(mutex));
        CHECK_OK(pthread_mutex_unlock(mutex));
        if (kinds[which] == PTHREAD_MUTEX_ERRORCHECK)
            CHECK_ERR(pthread_mutex_unlock(mutex), EPERM);
    }
    return NULL;
}

static sem_t three;
static atomic_int inside;

static void *limit(void *arg)
{
    seed = (unsigned)(long)arg;
    for (int i = 0; i < TIMES; i++) {
        struct timespec time = in_us(CLOCK_REALTIME, any(50));
        while (any(2) ? sem_wait(&three) : sem_timedwait(&three, &time)) {
            CHECK_EQ(errno, ETIMEDOUT);
            time = in_us(CLOCK_REALTIME, any(50));
        }
        CHECK(atomic_fetch_add(&inside, 1) < 3);
        dawdle();
        atomic_fetch_sub(&inside, 1);
        CHECK_EQ(sem_post(&three), 0);
    }
    return NULL;
}

static pthread_barrier_t barrier;
static atomic_int arrived[PLAYERS], serial;

static void *meet(void *arg)
{
    long me = (long)arg;
    seed = (unsigned)me;
    for (int i = 1; i <= TIMES; i++) {
        dawdle();
        atomic_store(&arrived[me], i);
        int got = pthread_barrier_wait(&barrier);
        CHECK(got == 0 || got == PTHREAD_BARRIER_SERIAL_THREAD);
        atomic_fetch_add(&serial, got != 0);
        for (int j = 0; j < PLAYERS; j++)
            CHECK(atomic_load(&arrived[j]) >= i);
    }
    return NULL;
}

static void initialise(void)
{
    for (int i = 0; i < 4; i++) {
        pthread_mutexattr_t attr;
        CHECK_OK(pthread_mutexattr_init(&attr));
        CHECK_OK(pthread_mutexattr_settype(&attr, kinds[i]));
        CHECK_OK(pthread_mutex_init(&mutexes[i], &attr));
    }
    pthread_rwlockattr_t attr;
    CHECK_OK(pthread_rwlockattr_init(&attr));
    CHECK_OK(pthread_rwlock_init(&rwlocks[0], &attr));
    CHECK_OK(pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP));
    CHECK_OK(pthread_rwlock_init(&rwlocks[1], &attr));
    CHECK_EQ(sem_init(&three, 0, 3), 0);
    CHECK_OK(pthread_barrier_init(&barrier, NULL, PLAYERS));
}

int main(void)
{
    enum { CONSUMERS = 6, PRODUCERS = 5, USERS = 8, COUPLES = 3 };
    pthread_t consumers[CONSUMERS], threads[64];
    long number = 0, total = 0;
    initialise();
    seed = 1;
    for (long i = 0; i < CONSUMERS; i++)
        consumers[i] = start(consume, (void *)(100 + i));
    for (long i = 0; i < PRODUCERS; i++)
        threads[number++] = start(produce, (void *)(200 + i));
    for (int i = 0; i < COUPLES; i++) {
        struct turns *turns = calloc(1, sizeof *turns);
        turns->users = 2;
        threads[number++] = start(take_turns, turns);
        threads[number++] = start(take_turns, turns);
    }
    for (long i = 0; i < USERS; i++) {
        threads[number++] = start(read_and_write, (void *)(300 + i));
        threads[number++] = start(exclude, (void *)(400 + i));
        threads[number++] = start(limit, (void *)(500 + i));
    }
    for (long i = 0; i < PLAYERS; i++)
        threads[number++] = start(meet, (void *)i);
    threads[number++] = start(hold_events, (void *)600);
    threads[number++] = start(hold_events, (void *)601);

    /* The initial thread uses it all, too. */
    exclude((void *)1);
    read_and_write((void *)2);
    limit((void *)3);
    hold_events((void *)4);
    produce((void *)5);

    for (long i = 0; i < number; i++)
        join(threads[i]);
    CHECK_OK(pthread_mutex_lock(&queue_lock));
    ended = 1;
    CHECK_OK(pthread_cond_broadcast(&not_empty));
    CHECK_OK(pthread_mutex_unlock(&queue_lock));
    for (int i = 0; i < CONSUMERS; i++)
        total += (long)join(consumers[i]);
    CHECK_EQ(total, (PRODUCERS + 1) * TIMES);
    CHECK_EQ(counts[0] + counts[1] + counts[2] + counts[3], (USERS + 1) * TIMES);
    CHECK_EQ(atomic_load(&serial), TIMES);
    int value;
    CHECK_EQ(sem_getvalue(&three, &value), 0);
    CHECK_EQ(value, 3);
    for (int i = 0; i < 4; i++)
        CHECK_OK(pthread_mutex_destroy(&mutexes[i]));
    CHECK_OK(pthread_mutex_destroy(&queue_lock));
    CHECK_OK(pthread_cond_destroy(&not_empty));
    CHECK_OK(pthread_cond_destroy(&not_full));
    puts("locks under stress: ok");
    return 0;
}
