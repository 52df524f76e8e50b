// Read-write locks: shared and exclusive, try, timed and clock variants, kinds of preference, errors.
#include "check.h"

#include <stdatomic.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static void *denied_all(void *arg)
{
    struct timespec when = in_ms(CLOCK_REALTIME, -1000);
    CHECK_ERR(pthread_rwlock_tryrdlock(&lock), EBUSY);
    CHECK_ERR(pthread_rwlock_trywrlock(&lock), EBUSY);
    CHECK_ERR(pthread_rwlock_timedrdlock(&lock, &when), ETIMEDOUT);
    CHECK_ERR(pthread_rwlock_timedwrlock(&lock, &when), ETIMEDOUT);
    int64_t began = now_ns();
    when = in_ms(CLOCK_REALTIME, 20);
    CHECK_ERR(pthread_rwlock_timedrdlock(&lock, &when), ETIMEDOUT);
    when = in_ms(CLOCK_REALTIME, 20);
    CHECK_ERR(pthread_rwlock_timedwrlock(&lock, &when), ETIMEDOUT);
    when = in_ms(CLOCK_MONOTONIC, 20);
    CHECK_ERR(pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &when), ETIMEDOUT);
    when = in_ms(CLOCK_MONOTONIC, 20);
    CHECK_ERR(pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &when), ETIMEDOUT);
    CHECK_LASTED(began, 78);
    CHECK_ERR(pthread_rwlock_clockrdlock(&lock, CLOCK_THREAD_CPUTIME_ID, &when), EINVAL);
    CHECK_ERR(pthread_rwlock_clockwrlock(&lock, CLOCK_THREAD_CPUTIME_ID, &when), EINVAL);
    when.tv_nsec = 1000000000;
    CHECK_ERR(pthread_rwlock_timedrdlock(&lock, &when), EINVAL);
    CHECK_ERR(pthread_rwlock_timedwrlock(&lock, &when), EINVAL);
    return arg;
}

static void *denied_writing(void *arg)
{
    struct timespec when = in_ms(CLOCK_REALTIME, 20);
    CHECK_OK(pthread_rwlock_tryrdlock(&lock));
    CHECK_ERR(pthread_rwlock_trywrlock(&lock), EBUSY);
    CHECK_OK(pthread_rwlock_unlock(&lock));
    CHECK_ERR(pthread_rwlock_timedwrlock(&lock, &when), ETIMEDOUT);
    when = in_ms(CLOCK_MONOTONIC, 20);
    CHECK_ERR(pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &when), ETIMEDOUT);
    /* A writer that gave up does not keep readers out. */
    when = in_ms(CLOCK_REALTIME, 20000);
    CHECK_OK(pthread_rwlock_timedrdlock(&lock, &when));
    CHECK_OK(pthread_rwlock_unlock(&lock));
    return arg;
}

/* All readers are inside together: each waits until all have come. */
static atomic_int readers;
enum { READERS = 50 };

static void *read_together(void *arg)
{
    struct timespec when = in_ms(CLOCK_REALTIME, 20000);
    long how = (long)arg;
    CHECK_OK(how % 3 == 0   ? pthread_rwlock_rdlock(&lock)
             : how % 3 == 1 ? pthread_rwlock_timedrdlock(&lock, &when)
                            : pthread_rwlock_clockrdlock(&lock, CLOCK_REALTIME, &when));
    atomic_fetch_add(&readers, 1);
    while (atomic_load(&readers) < READERS)
        usleep(500);
    CHECK_OK(pthread_rwlock_unlock(&lock));
    return arg;
}

/* Readers see what writers leave, never what they are at. */
static volatile long left, right;
static atomic_int inside;

static void *write_pair(void *arg)
{
    for (int i = 0; i < 200; i++) {
        struct timespec when = in_ms(CLOCK_MONOTONIC, 20000);
        CHECK_OK(i % 2 ? pthread_rwlock_wrlock(&lock)
                       : pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &when));
        CHECK_EQ(atomic_fetch_add(&inside, 1), 0);
        left++;
        if (i % 8 == 0)
            sched_yield();
        right++;
        atomic_fetch_sub(&inside, 1);
        CHECK_OK(pthread_rwlock_unlock(&lock));
    }
    return arg;
}

static void *read_pair(void *arg)
{
    for (int i = 0; i < 200; i++) {
        CHECK_OK(pthread_rwlock_rdlock(&lock));
        CHECK_EQ(atomic_load(&inside), 0);
        long now = left;
        if (i % 8 == 0)
            sched_yield();
        CHECK_EQ(right, now);
        CHECK_OK(pthread_rwlock_unlock(&lock));
        if (i % 16 == 0)
            usleep(100);
    }
    return arg;
}

static void readers_and_writers(void)
{
    pthread_t threads[40];
    left = right = 0;
    for (long i = 0; i < 40; i++)
        threads[i] = start(i % 4 ? read_pair : write_pair, NULL);
    for (int i = 0; i < 40; i++)
        join(threads[i]);
    CHECK_EQ(left, 10 * 200);
}

/* A waiting writer gets in before readers that come later, if the lock prefers writers. */
static atomic_int order, writer_was, reader_was;

static void *late_writer(void *arg)
{
    CHECK_OK(pthread_rwlock_wrlock(&lock));
    atomic_store(&writer_was, atomic_fetch_add(&order, 1) + 1);
    sleep_ms(5);
    CHECK_OK(pthread_rwlock_unlock(&lock));
    return arg;
}

static void *later_reader(void *arg)
{
    CHECK_OK(pthread_rwlock_rdlock(&lock));
    atomic_store(&reader_was, atomic_fetch_add(&order, 1) + 1);
    CHECK_OK(pthread_rwlock_unlock(&lock));
    return arg;
}

static void preference(int writers_first)
{
    atomic_store(&order, 0);
    CHECK_OK(pthread_rwlock_rdlock(&lock));
    pthread_t writer = start(late_writer, NULL);
    sleep_ms(200);
    pthread_t reader = start(later_reader, NULL);
    sleep_ms(200);
    CHECK_EQ(atomic_load(&order), writers_first ? 0 : 1);
    CHECK_OK(pthread_rwlock_unlock(&lock));
    join(writer);
    join(reader);
    CHECK_EQ(atomic_load(&writer_was), writers_first ? 1 : 2);
    CHECK_EQ(atomic_load(&reader_was), writers_first ? 2 : 1);
}

static void check(void)
{
    struct timespec when = in_ms(CLOCK_REALTIME, 20);

    CHECK_OK(pthread_rwlock_wrlock(&lock));
    join(start(denied_all, NULL));
    CHECK_ERR(pthread_rwlock_rdlock(&lock), EDEADLK);
    CHECK_ERR(pthread_rwlock_wrlock(&lock), EDEADLK);
    CHECK_ERR(pthread_rwlock_timedrdlock(&lock, &when), EDEADLK);
    CHECK_ERR(pthread_rwlock_timedwrlock(&lock, &when), EDEADLK);
    CHECK_ERR(pthread_rwlock_tryrdlock(&lock), EBUSY);
    CHECK_ERR(pthread_rwlock_trywrlock(&lock), EBUSY);
    CHECK_OK(pthread_rwlock_unlock(&lock));

    CHECK_OK(pthread_rwlock_rdlock(&lock));
    CHECK_OK(pthread_rwlock_rdlock(&lock)); /* readers may nest */
    join(start(denied_writing, NULL));
    CHECK_OK(pthread_rwlock_unlock(&lock));
    join(start(denied_writing, NULL));
    CHECK_OK(pthread_rwlock_unlock(&lock));

    CHECK_OK(pthread_rwlock_trywrlock(&lock));
    CHECK_OK(pthread_rwlock_unlock(&lock));
    when = in_ms(CLOCK_REALTIME, -1000); /* free: taken whatever the deadline says */
    CHECK_OK(pthread_rwlock_timedwrlock(&lock, &when));
    CHECK_OK(pthread_rwlock_unlock(&lock));
    CHECK_OK(pthread_rwlock_timedrdlock(&lock, &when));
    CHECK_OK(pthread_rwlock_unlock(&lock));

    pthread_t threads[READERS];
    atomic_store(&readers, 0);
    CHECK_OK(pthread_rwlock_wrlock(&lock));
    for (long i = 0; i < READERS; i++)
        threads[i] = start(read_together, (void *)i);
    sleep_ms(10);
    CHECK_EQ(atomic_load(&readers), 0);
    CHECK_OK(pthread_rwlock_unlock(&lock));
    for (int i = 0; i < READERS; i++)
        join(threads[i]);

    readers_and_writers();
}

int main(void)
{
    check();
    preference(0);
    CHECK_OK(pthread_rwlock_destroy(&lock));

    pthread_rwlockattr_t attr;
    int value;
    CHECK_OK(pthread_rwlockattr_init(&attr));
    CHECK_OK(pthread_rwlockattr_getkind_np(&attr, &value));
    CHECK_EQ(value, PTHREAD_RWLOCK_DEFAULT_NP);
    CHECK_ERR(pthread_rwlockattr_setkind_np(&attr, 99), EINVAL);
    CHECK_OK(pthread_rwlockattr_getpshared(&attr, &value));
    CHECK_EQ(value, PTHREAD_PROCESS_PRIVATE);
    CHECK_ERR(pthread_rwlockattr_setpshared(&attr, 99), EINVAL);
    int kinds[] = {PTHREAD_RWLOCK_PREFER_READER_NP, PTHREAD_RWLOCK_PREFER_WRITER_NP};
    for (int i = 0; i < 2; i++) { /* in glibc, PREFER_WRITER_NP alone means nothing */
        CHECK_OK(pthread_rwlockattr_setkind_np(&attr, kinds[i]));
        CHECK_OK(pthread_rwlockattr_getkind_np(&attr, &value));
        CHECK_EQ(value, kinds[i]);
        CHECK_OK(pthread_rwlock_init(&lock, &attr));
        check();
        preference(0);
        CHECK_OK(pthread_rwlock_destroy(&lock));
    }
    CHECK_OK(pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP));
    CHECK_OK(pthread_rwlock_init(&lock, &attr));
    preference(1);
    readers_and_writers();
    CHECK_OK(pthread_rwlock_destroy(&lock));
    CHECK_OK(pthread_rwlockattr_destroy(&attr));
    puts("read-write locks: ok");
    return 0;
}
