// Spin locks: a counter, trylock, and holders that yield or sleep while the others spin.
#include "check.h"

static pthread_spinlock_t spin;
static long counter;

static void *count_up(void *arg)
{
    for (int i = 0; i < 5000; i++) {
        CHECK_OK(pthread_spin_lock(&spin));
        counter++;
        CHECK_OK(pthread_spin_unlock(&spin));
    }
    return arg;
}

static void *yield_inside(void *arg)
{
    for (int i = 0; i < 20; i++) {
        CHECK_OK(pthread_spin_lock(&spin));
        long now = counter;
        if (i % 10 == 5)
            usleep(100);
        else
            sched_yield();
        counter = now + 1;
        CHECK_OK(pthread_spin_unlock(&spin));
    }
    return arg;
}

static void *try_it(void *arg)
{
    CHECK_ERR(pthread_spin_trylock(&spin), EBUSY);
    return arg;
}

static void *try_until(void *arg)
{
    while (pthread_spin_trylock(&spin) == EBUSY)
        sched_yield();
    counter++;
    CHECK_OK(pthread_spin_unlock(&spin));
    return arg;
}

static void run(int count, void *(*routine)(void *), long want)
{
    enum { MOST = 50 };
    pthread_t threads[MOST];
    counter = 0;
    for (int i = 0; i < count; i++)
        threads[i] = start(routine, NULL);
    for (int i = 0; i < count; i++)
        join(threads[i]);
    CHECK_EQ(counter, want);
}

int main(void)
{
    CHECK_OK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
    CHECK_OK(pthread_spin_lock(&spin));
    CHECK_ERR(pthread_spin_trylock(&spin), EBUSY);
    run(1, try_it, 0);
    CHECK_OK(pthread_spin_unlock(&spin));
    CHECK_OK(pthread_spin_trylock(&spin));
    CHECK_OK(pthread_spin_unlock(&spin));
    run(8, count_up, 8 * 5000);
    run(8, yield_inside, 8 * 20);
    run(50, try_until, 50);

    /* Held by main, wanted by a thread. */
    CHECK_OK(pthread_spin_lock(&spin));
    pthread_t thread = start(count_up, NULL);
    counter = 0;
    sleep_ms(10);
    CHECK_EQ(counter, 0);
    CHECK_OK(pthread_spin_unlock(&spin));
    join(thread);
    CHECK_EQ(counter, 5000);
    CHECK_OK(pthread_spin_destroy(&spin));
    puts("spin locks: ok");
    return 0;
}
