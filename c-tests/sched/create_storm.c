// 100,000 creations: one after the other, in bursts, detached, by several creators at a time.
// timeout: 180
#include "check.h"

#include <stdatomic.h>

static atomic_int ran;

static void *count(void *arg)
{
    atomic_fetch_add(&ran, 1);
    return arg;
}

static void *count_and_yield(void *arg)
{
    sched_yield();
    return count(arg);
}

static void create(pthread_t *thread, void *(*routine)(void *), void *arg)
{
    int failed;
    while ((failed = pthread_create(thread, NULL, routine, arg)) == EAGAIN)
        usleep(1000);
    CHECK_OK(failed);
}

static void *creator(void *arg)
{
    long me = (long)arg;
    pthread_t burst[50];
    for (int i = 0; i < 5000; i++) { /* one after the other */
        create(&burst[0], count, arg);
        CHECK(join(burst[0]) == arg);
    }
    for (int i = 0; i < 100; i++) { /* in bursts */
        for (int j = 0; j < 50; j++)
            create(&burst[j], j % 2 ? count : count_and_yield, (void *)(me + j));
        for (int j = 0; j < 50; j++)
            CHECK(join(burst[j]) == (void *)(me + j));
    }
    for (int i = 0; i < 15000; i++) { /* and gone */
        create(&burst[0], i % 2 ? count : count_and_yield, NULL);
        CHECK_OK(pthread_detach(burst[0]));
        if (i % 100 == 0)
            usleep(500);
    }
    return arg;
}

int main(void)
{
    pthread_t creators[4];
    for (long i = 0; i < 4; i++)
        creators[i] = start(creator, (void *)(i * 1000));
    for (long i = 0; i < 4; i++)
        CHECK(join(creators[i]) == (void *)(i * 1000));
    while (atomic_load(&ran) < 100000)
        usleep(1000);
    CHECK_EQ(atomic_load(&ran), 100000);
    puts("100,000 threads: ok");
    return 0;
}
