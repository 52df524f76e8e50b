// pthread_once: exactly one runs it, the others wait for its end, also when it blocks, nests or exits.
#include "check.h"

#include <stdatomic.h>

static atomic_int runs, begun;
static int initialised;

static void init_quick(void)
{
    atomic_fetch_add(&runs, 1);
    initialised = 1;
}

static void init_that_blocks(void)
{
    atomic_fetch_add(&runs, 1);
    sched_yield();
    sleep_ms(30);
    initialised = 1;
}

static pthread_once_t inner = PTHREAD_ONCE_INIT;

static void init_that_nests(void)
{
    sched_yield();
    CHECK_OK(pthread_once(&inner, init_that_blocks));
    CHECK_EQ(initialised, 1);
}

/* The first one who tries exits half-way: then the work is not done, and the next one does it. */
static void init_that_exits_first(void)
{
    if (atomic_fetch_add(&begun, 1) == 0) {
        sleep_ms(20);
        pthread_exit(NULL);
    }
    init_that_blocks();
}

struct once {
    pthread_once_t *control;
    void (*init)(void);
};

static void *run_once(void *arg)
{
    struct once *once = arg;
    for (int i = 0; i < 3; i++) {
        CHECK_OK(pthread_once(once->control, once->init));
        CHECK_EQ(initialised, 1);
    }
    return arg;
}

/* Many threads at once; how many came back. */
static int contend(struct once once)
{
    enum { MANY = 200 };
    pthread_t threads[MANY];
    int back = 0;
    initialised = 0;
    atomic_store(&runs, 0);
    for (int i = 0; i < MANY; i++)
        threads[i] = start(run_once, &once);
    for (int i = 0; i < MANY; i++)
        back += join(threads[i]) == &once;
    CHECK_EQ(atomic_load(&runs), 1);
    return MANY - back;
}

int main(void)
{
    for (int round = 0; round < 20; round++) {
        pthread_once_t control = PTHREAD_ONCE_INIT;
        CHECK_EQ(contend((struct once){&control, init_quick}), 0);
    }
    pthread_once_t slow = PTHREAD_ONCE_INIT, outer = PTHREAD_ONCE_INIT, exiting = PTHREAD_ONCE_INIT;
    CHECK_EQ(contend((struct once){&slow, init_that_blocks}), 0);
    CHECK_EQ(contend((struct once){&outer, init_that_nests}), 0);
    CHECK_EQ(contend((struct once){&exiting, init_that_exits_first}), 1);

    /* Done is done, for main too. */
    atomic_store(&runs, 0);
    CHECK_OK(pthread_once(&slow, init_that_blocks));
    CHECK_EQ(atomic_load(&runs), 0);
    puts("once: ok");
    return 0;
}
