// pthread_detach and threads created detached: nobody joins them, they run to their end all the same.
#include "check.h"

#include <stdatomic.h>

enum { MANY = 2000 };
static atomic_int ended;
static atomic_int go;

static void *work(void *arg)
{
    if (arg)
        sched_yield();
    atomic_fetch_add(&ended, 1);
    return NULL;
}

static void *wait_for_go(void *arg)
{
    while (!atomic_load(&go))
        usleep(1000);
    atomic_fetch_add(&ended, 1);
    return arg;
}

static void *detach_self(void *arg)
{
    CHECK_OK(pthread_detach(pthread_self()));
    CHECK_ERR(pthread_detach(pthread_self()), EINVAL);
    sched_yield();
    atomic_fetch_add(&ended, 1);
    return arg;
}

static void await(int count)
{
    while (atomic_load(&ended) < count)
        usleep(1000);
    CHECK_EQ(atomic_load(&ended), count);
    atomic_store(&ended, 0);
}

int main(void)
{
    pthread_attr_t attr;
    pthread_t thread;
    CHECK_OK(pthread_attr_init(&attr));
    CHECK_OK(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED));

    /* One that is running: it can neither be joined nor detached again. */
    CHECK_OK(pthread_create(&thread, &attr, wait_for_go, NULL));
    CHECK_ERR(pthread_join(thread, NULL), EINVAL);
    CHECK_ERR(pthread_tryjoin_np(thread, NULL), EBUSY);
    CHECK_ERR(pthread_detach(thread), EINVAL);
    atomic_store(&go, 1);
    await(1);

    /* Many that are created detached. */
    for (long i = 0; i < MANY; i++) {
        int failed;
        while ((failed = pthread_create(&thread, &attr, work, (void *)(i & 1))) == EAGAIN)
            usleep(1000);
        CHECK_OK(failed);
    }
    await(MANY);

    /* Many that are detached by their creator, while they run or when they have ended. */
    for (long i = 0; i < MANY; i++) {
        thread = start(work, (void *)(i & 1));
        if (i % 4 == 0)
            sched_yield();
        CHECK_OK(pthread_detach(thread));
    }
    await(MANY);

    /* Detached after its end. */
    thread = start(work, NULL);
    sleep_ms(20);
    CHECK_OK(pthread_detach(thread));
    await(1);

    /* Many that detach themselves. */
    for (int i = 0; i < MANY; i++)
        start(detach_self, NULL);
    await(MANY);

    puts("detach: ok");
    return 0;
}
