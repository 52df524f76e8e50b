// pthread_create, pthread_join: arguments and values travel, what a thread wrote is seen by its joiner.
#include "check.h"

static void *echo(void *arg)
{
    return arg;
}

static void *fill(void *arg)
{
    memset(arg, 'x', 1000);
    sched_yield();
    return NULL;
}

static void *join_other(void *arg)
{
    return join(*(pthread_t *)arg);
}

static void *create_inside(void *arg)
{
    pthread_t child = start(echo, arg);
    return join(child);
}

static void *slow(void *arg)
{
    sleep_ms(30);
    return arg;
}

int main(void)
{
    int here;
    CHECK(join(start(echo, &here)) == &here);
    CHECK(join(start(echo, NULL)) == NULL);
    CHECK(join(start(echo, (void *)-1)) == (void *)-1); /* the number of PTHREAD_CANCELED is a value like others */

    /* The value may be ignored. */
    CHECK_OK(pthread_join(start(echo, &here), NULL));

    char text[1000];
    join(start(fill, text));
    for (size_t i = 0; i < sizeof text; i++)
        CHECK_EQ(text[i], 'x');

    /* A thread that ended before the join, one that ends during it. */
    pthread_t early = start(echo, (void *)1);
    sleep_ms(20);
    CHECK(join(early) == (void *)1);
    int64_t began = now_ns();
    CHECK(join(start(slow, (void *)2)) == (void *)2);
    CHECK_LASTED(began, 30);

    /* Who joins need not be who created. */
    pthread_t worker = start(slow, (void *)3);
    CHECK(join(start(join_other, &worker)) == (void *)3);

    /* A thread may create and join threads. */
    CHECK(join(start(create_inside, (void *)4)) == (void *)4);

    /* Many, joined in the order of creation and in reverse. */
    enum { MANY = 200 };
    pthread_t many[MANY];
    for (long i = 0; i < MANY; i++)
        many[i] = start(i % 3 ? echo : slow, (void *)i);
    for (long i = 0; i < MANY; i++)
        CHECK(join(many[i]) == (void *)i);
    for (long i = 0; i < MANY; i++)
        many[i] = start(i % 3 ? echo : slow, (void *)i);
    for (long i = MANY; i-- > 0;)
        CHECK(join(many[i]) == (void *)i);

    /* Attributes that were destroyed after the creation do not matter. */
    pthread_attr_t attr;
    pthread_t thread;
    CHECK_OK(pthread_attr_init(&attr));
    CHECK_OK(pthread_create(&thread, &attr, slow, &here));
    CHECK_OK(pthread_attr_destroy(&attr));
    CHECK(join(thread) == &here);

    puts("create and join: ok");
    return 0;
}
