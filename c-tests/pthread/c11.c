// <threads.h>: thrd_*, mtx_*, cnd_*, tss_*, call_once, with their own result codes.
#include "check.h"

#include <stdatomic.h>
#include <threads.h>

static mtx_t mutex;
static cnd_t cond;
static tss_t key;
static once_flag once = ONCE_FLAG_INIT;
static atomic_int inits, destroyed, ready;
static long counter;

static int echo(void *arg)
{
    thrd_yield();
    return (int)(long)arg;
}

static int exits(void *arg)
{
    thrd_exit((int)(long)arg + 1);
}

static int detached(void *arg)
{
    (void)arg;
    CHECK_EQ(thrd_detach(thrd_current()), thrd_success);
    thrd_sleep(&(struct timespec){0, 5000000}, NULL);
    atomic_store(&ready, 1);
    return 0;
}

static int count_up(void *arg)
{
    (void)arg;
    for (int i = 0; i < 1000; i++) {
        CHECK_EQ(mtx_lock(&mutex), thrd_success);
        long now = counter;
        if (i % 100 == 0)
            thrd_yield();
        counter = now + 1;
        CHECK_EQ(mtx_unlock(&mutex), thrd_success);
    }
    return 0;
}

static int busy(void *arg)
{
    CHECK_EQ(mtx_trylock(&mutex), thrd_busy);
    if (arg) {
        struct timespec when = in_ms(CLOCK_REALTIME, 20);
        CHECK_EQ(mtx_timedlock(&mutex, &when), thrd_timedout);
    }
    return 0;
}

static int wait_ready(void *arg)
{
    struct timespec when = in_ms(CLOCK_REALTIME, 20000);
    CHECK_EQ(mtx_lock(&mutex), thrd_success);
    while (!atomic_load(&ready))
        CHECK_EQ(arg ? cnd_wait(&cond, &mutex) : cnd_timedwait(&cond, &mutex, &when), thrd_success);
    atomic_fetch_sub(&ready, 1);
    CHECK_EQ(mtx_unlock(&mutex), thrd_success);
    return 0;
}

static void init(void)
{
    thrd_yield();
    thrd_sleep(&(struct timespec){0, 2000000}, NULL);
    atomic_fetch_add(&inits, 1);
}

static int run_once(void *arg)
{
    (void)arg;
    call_once(&once, init);
    return atomic_load(&inits);
}

static void destroy(void *value)
{
    atomic_fetch_add(&destroyed, (int)(long)value);
}

static int specific(void *arg)
{
    CHECK(tss_get(key) == NULL);
    CHECK_EQ(tss_set(key, arg), thrd_success);
    thrd_yield();
    CHECK(tss_get(key) == arg);
    return 0;
}

enum { MANY = 50 };

static void run(int (*routine)(void *), void *arg, int want)
{
    thrd_t threads[MANY];
    int got;
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(thrd_create(&threads[i], routine, arg), thrd_success);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(thrd_join(threads[i], &got), thrd_success);
        CHECK_EQ(got, want);
    }
}

int main(void)
{
    thrd_t thread;
    struct timespec when;

    run(echo, (void *)-42, -42);
    run(exits, (void *)41, 42);
    CHECK_EQ(thrd_create(&thread, echo, NULL), thrd_success);
    CHECK(!thrd_equal(thread, thrd_current()));
    CHECK_EQ(thrd_join(thread, NULL), thrd_success);
    CHECK(thrd_equal(thrd_current(), thrd_current()));
    CHECK_EQ(thrd_create(&thread, detached, NULL), thrd_success);
    while (!atomic_load(&ready))
        thrd_yield();
    atomic_store(&ready, 0);
    int64_t began = now_ns();
    CHECK_EQ(thrd_sleep(&(struct timespec){0, 20000000}, &when), 0);
    CHECK_LASTED(began, 20);
    CHECK(thrd_sleep(&(struct timespec){0, -1}, NULL) < -1);

    int kinds[] = {mtx_plain, mtx_timed, mtx_plain | mtx_recursive, mtx_timed | mtx_recursive};
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(mtx_init(&mutex, kinds[i]), thrd_success);
        counter = 0;
        run(count_up, NULL, 0);
        CHECK_EQ(counter, MANY * 1000);
        CHECK_EQ(mtx_lock(&mutex), thrd_success);
        run(busy, kinds[i] & mtx_timed ? &mutex : NULL, 0);
        if (kinds[i] & mtx_recursive) {
            CHECK_EQ(mtx_lock(&mutex), thrd_success);
            CHECK_EQ(mtx_trylock(&mutex), thrd_success);
            CHECK_EQ(mtx_unlock(&mutex), thrd_success);
            CHECK_EQ(mtx_unlock(&mutex), thrd_success);
        }
        CHECK_EQ(mtx_unlock(&mutex), thrd_success);
        CHECK_EQ(mtx_trylock(&mutex), thrd_success);
        CHECK_EQ(mtx_unlock(&mutex), thrd_success);
        mtx_destroy(&mutex);
    }

    CHECK_EQ(mtx_init(&mutex, mtx_timed), thrd_success);
    CHECK_EQ(cnd_init(&cond), thrd_success);
    for (int broadcast = 0; broadcast < 2; broadcast++) {
        thrd_t threads[MANY];
        for (long i = 0; i < MANY; i++)
            CHECK_EQ(thrd_create(&threads[i], wait_ready, i % 2 ? &cond : NULL), thrd_success);
        thrd_sleep(&(struct timespec){0, 10000000}, NULL);
        for (int i = 0; i < (broadcast ? 1 : MANY); i++) {
            CHECK_EQ(mtx_lock(&mutex), thrd_success);
            atomic_fetch_add(&ready, broadcast ? MANY : 1);
            CHECK_EQ(broadcast ? cnd_broadcast(&cond) : cnd_signal(&cond), thrd_success);
            CHECK_EQ(mtx_unlock(&mutex), thrd_success);
        }
        for (int i = 0; i < MANY; i++)
            CHECK_EQ(thrd_join(threads[i], NULL), thrd_success);
        CHECK_EQ(atomic_load(&ready), 0);
    }
    when = in_ms(CLOCK_REALTIME, 20);
    CHECK_EQ(mtx_lock(&mutex), thrd_success);
    CHECK_EQ(cnd_timedwait(&cond, &mutex, &when), thrd_timedout);
    CHECK_EQ(mtx_unlock(&mutex), thrd_success);
    cnd_destroy(&cond);
    mtx_destroy(&mutex);

    run(run_once, NULL, 1);
    CHECK_EQ(tss_create(&key, destroy), thrd_success);
    run(specific, (void *)1, 0);
    CHECK_EQ(atomic_load(&destroyed), MANY);
    tss_delete(key);
    CHECK_EQ(tss_set(key, &key), thrd_error);
    puts("C11 threads: ok");
    return 0;
}
