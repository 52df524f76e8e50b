// Thread-specific data: a value per thread, destructors in at most four rounds, deletion, keys until none is left.
#include "check.h"

#include <limits.h>
#include <stdatomic.h>

static pthread_key_t key, again, plain;
static atomic_int destroyed, rounds;

static void destroy(void *value)
{
    CHECK(pthread_getspecific(key) == NULL); /* cleared before its destructor runs */
    atomic_fetch_add(&destroyed, (int)(long)value);
    sched_yield();
}

/* Sets its value again each time: the system gives up after four rounds. */
static void destroy_again(void *value)
{
    atomic_fetch_add(&rounds, 1);
    usleep(100);
    CHECK_OK(pthread_setspecific(again, (char *)value + 1));
}

static void *per_thread(void *arg)
{
    CHECK(pthread_getspecific(key) == NULL);
    CHECK(pthread_getspecific(plain) == NULL);
    CHECK_OK(pthread_setspecific(plain, arg));
    for (long i = 1; i < 50; i++) {
        CHECK_OK(pthread_setspecific(key, (void *)i));
        if (i % 10 == 0)
            usleep(50);
        else
            sched_yield();
        CHECK(pthread_getspecific(key) == (void *)i);
        CHECK(pthread_getspecific(plain) == arg);
    }
    CHECK_OK(pthread_setspecific(key, (void *)1));
    return NULL;
}

static void *set_again(void *arg)
{
    CHECK_OK(pthread_setspecific(again, arg));
    return NULL;
}

static void *set_to_null(void *arg)
{
    CHECK_OK(pthread_setspecific(key, (void *)1000));
    CHECK_OK(pthread_setspecific(key, NULL));
    return arg;
}

static void *set_and_exit(void *arg)
{
    CHECK_OK(pthread_setspecific(key, (void *)1));
    pthread_exit(arg);
}

/* A key that is deleted while a thread has a value: no destructor; made anew it reads NULL. */
static pthread_key_t doomed;
static pthread_barrier_t step;

static void *holds_doomed(void *arg)
{
    CHECK_OK(pthread_setspecific(doomed, (void *)100));
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    CHECK(pthread_getspecific(key) == NULL);
    return arg;
}

int main(void)
{
    enum { MANY = 200 };
    pthread_t threads[MANY];
    CHECK_OK(pthread_key_create(&key, destroy));
    CHECK_OK(pthread_key_create(&again, destroy_again));
    CHECK_OK(pthread_key_create(&plain, NULL));
    CHECK_OK(pthread_setspecific(key, (void *)1000)); /* main's is not destroyed by others' ends */

    for (int again = 0; again < 2; again++) {
        atomic_store(&destroyed, 0);
        for (long i = 0; i < MANY; i++)
            threads[i] = start(per_thread, (void *)i);
        for (int i = 0; i < MANY; i++)
            join(threads[i]);
        CHECK_EQ(atomic_load(&destroyed), MANY);
    }
    join(start(set_again, &rounds));
    CHECK_EQ(atomic_load(&rounds), PTHREAD_DESTRUCTOR_ITERATIONS);
    join(start(set_to_null, NULL));
    CHECK_EQ(atomic_load(&destroyed), MANY);
    join(start(set_and_exit, NULL));
    CHECK_EQ(atomic_load(&destroyed), MANY + 1);
    CHECK(pthread_getspecific(key) == (void *)1000);

    CHECK_OK(pthread_key_create(&doomed, destroy));
    CHECK_OK(pthread_barrier_init(&step, NULL, 2));
    pthread_t thread = start(holds_doomed, NULL);
    pthread_barrier_wait(&step);
    CHECK_OK(pthread_key_delete(doomed));
    pthread_barrier_wait(&step);
    join(thread);
    CHECK_EQ(atomic_load(&destroyed), MANY + 1);
    CHECK_ERR(pthread_key_delete(doomed), EINVAL);
    CHECK_ERR(pthread_setspecific(doomed, &key), EINVAL);
    CHECK(pthread_getspecific(doomed) == NULL);
    CHECK_ERR(pthread_setspecific(PTHREAD_KEYS_MAX, &key), EINVAL);

    /* Deleted and made anew: what the old one held is gone. */
    CHECK_OK(pthread_key_create(&doomed, NULL));
    CHECK_OK(pthread_setspecific(doomed, &key));
    CHECK_OK(pthread_key_delete(doomed));
    pthread_key_t fresh;
    CHECK_OK(pthread_key_create(&fresh, NULL));
    CHECK(pthread_getspecific(fresh) == NULL);

    /* Until none is left. The library below may use a few itself. */
    static pthread_key_t keys[PTHREAD_KEYS_MAX];
    int count = 0, failed;
    while ((failed = pthread_key_create(&keys[count], NULL)) == 0) {
        CHECK_OK(pthread_setspecific(keys[count], &keys[count]));
        count++;
        CHECK(count < PTHREAD_KEYS_MAX);
    }
    CHECK_EQ(failed, EAGAIN);
    CHECK(count > 900);
    for (int i = 0; i < count; i++) {
        CHECK(pthread_getspecific(keys[i]) == &keys[i]);
        CHECK_OK(pthread_key_delete(keys[i]));
    }
    CHECK_OK(pthread_key_create(&fresh, NULL));
    puts("keys: ok");
    return 0;
}
