// syscall(SYS_futex): wait, wake, bitsets, requeue, timeouts, as Rust's std and C++20 atomics use it.
#include "check.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>

enum { THREADS = 30 };
static atomic_uint word, other;
static atomic_int waiting, woken;

static long futex(atomic_uint *at, int op, unsigned value, const void *timeout, atomic_uint *second, unsigned third)
{
    return syscall(SYS_futex, at, op | FUTEX_PRIVATE_FLAG, value, timeout, second, third);
}

/* Waits until the word is no longer 0. */
static void *wait_for_change(void *arg)
{
    atomic_fetch_add(&waiting, 1);
    while (atomic_load(&word) == 0) {
        long got = futex(&word, FUTEX_WAIT, 0, NULL, NULL, 0);
        CHECK(got == 0 || (got == -1 && (errno == EAGAIN || errno == EINTR)));
    }
    atomic_fetch_add(&woken, 1);
    return arg;
}

/* Waits once, to be woken by name. */
static void *wait_once(void *arg)
{
    unsigned bits = (unsigned)(long)arg;
    atomic_fetch_add(&waiting, 1);
    CHECK_EQ(bits ? futex(&word, FUTEX_WAIT_BITSET, 0, NULL, NULL, bits) : futex(&word, FUTEX_WAIT, 0, NULL, NULL, 0), 0);
    atomic_fetch_add(&woken, 1);
    return arg;
}

static void start_all(pthread_t *threads, void *(*routine)(void *), long bits)
{
    atomic_store(&waiting, 0);
    atomic_store(&woken, 0);
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(routine, (void *)(bits ? bits << i % 2 : 0));
    while (atomic_load(&waiting) < THREADS)
        usleep(1000);
    sleep_ms(50); /* until they sleep */
}

static void await_woken(int count)
{
    while (atomic_load(&woken) < count)
        usleep(1000);
    sleep_ms(5);
    CHECK_EQ(atomic_load(&woken), count);
}

static void join_all(pthread_t *threads)
{
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
}

static void *timeouts(void *arg)
{
    struct timespec span = {0, 20000000}, when;
    int64_t began = now_ns();
    CHECK_ERRNO(futex(&other, FUTEX_WAIT, 0, &span, NULL, 0), ETIMEDOUT);
    CHECK_LASTED(began, 20);
    began = now_ns();
    when = in_ms(CLOCK_MONOTONIC, 20);
    CHECK_ERRNO(futex(&other, FUTEX_WAIT_BITSET, 0, &when, NULL, FUTEX_BITSET_MATCH_ANY), ETIMEDOUT);
    CHECK_LASTED(began, 20);
    when = in_ms(CLOCK_REALTIME, 20);
    CHECK_ERRNO(futex(&other, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0, &when, NULL, FUTEX_BITSET_MATCH_ANY), ETIMEDOUT);
    span.tv_nsec = 1000000000;
    CHECK_ERRNO(futex(&other, FUTEX_WAIT, 0, &span, NULL, 0), EINVAL);
    CHECK_ERRNO(futex(&other, FUTEX_WAIT, 1, NULL, NULL, 0), EAGAIN);
    CHECK_ERRNO(futex(&other, FUTEX_WAIT_BITSET, 0, NULL, NULL, 0), EINVAL);
    CHECK_EQ(futex(&other, FUTEX_WAKE, 100, NULL, NULL, 0), 0);
    return arg;
}

int main(void)
{
    pthread_t threads[THREADS];

    timeouts(NULL);
    join(start(timeouts, NULL));

    /* Wake says how many it woke. */
    start_all(threads, wait_once, 0);
    CHECK_EQ(futex(&word, FUTEX_WAKE, 1, NULL, NULL, 0), 1);
    await_woken(1);
    CHECK_EQ(futex(&word, FUTEX_WAKE, 10, NULL, NULL, 0), 10);
    await_woken(11);
    CHECK_EQ(futex(&word, FUTEX_WAKE, 1000, NULL, NULL, 0), THREADS - 11);
    join_all(threads);

    start_all(threads, wait_for_change, 0);
    atomic_store(&word, 1);
    CHECK_EQ(futex(&word, FUTEX_WAKE, 1000, NULL, NULL, 0), THREADS);
    join_all(threads);
    atomic_store(&word, 0);

    /* Bitsets: half of them wait for bit 0, half for bit 1. */
    start_all(threads, wait_once, 1);
    CHECK_EQ(futex(&word, FUTEX_WAKE_BITSET, 1000, NULL, NULL, 4), 0);
    CHECK_EQ(futex(&word, FUTEX_WAKE_BITSET, 1000, NULL, NULL, 2), THREADS / 2);
    await_woken(THREADS / 2);
    CHECK_EQ(futex(&word, FUTEX_WAKE_BITSET, 1000, NULL, NULL, 3), THREADS / 2);
    join_all(threads);

    /* Requeue: one is woken, five go to the other word, the rest stays. */
    start_all(threads, wait_once, 0);
    CHECK_ERRNO(futex(&word, FUTEX_CMP_REQUEUE, 1, (void *)5, &other, 77), EAGAIN);
    CHECK_EQ(futex(&word, FUTEX_CMP_REQUEUE, 1, (void *)5, &other, 0), 6);
    await_woken(1);
    CHECK_EQ(futex(&other, FUTEX_WAKE, 1000, NULL, NULL, 0), 5);
    await_woken(6);
    CHECK_EQ(futex(&word, FUTEX_REQUEUE, 0, (void *)1000, &other, 0), THREADS - 6);
    CHECK_EQ(futex(&word, FUTEX_WAKE, 1000, NULL, NULL, 0), 0);
    CHECK_EQ(futex(&other, FUTEX_WAKE, 1000, NULL, NULL, 0), THREADS - 6);
    join_all(threads);

    puts("SYS_futex: ok");
    return 0;
}
