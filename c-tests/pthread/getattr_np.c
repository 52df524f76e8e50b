// pthread_getattr_np: the truth about a running thread's stack, which garbage collectors and Python rely on.
#include "check.h"

#include <sys/resource.h>

struct facts {
    size_t guard;
    size_t size; /* at least */
    int detach;
    void *stack; /* where it must be, if not NULL */
};

static volatile char sink;

static void check_own(const struct facts *want)
{
    pthread_attr_t attr;
    void *low;
    size_t size, guard;
    int detach;
    CHECK_OK(pthread_getattr_np(pthread_self(), &attr));
    CHECK_OK(pthread_attr_getstack(&attr, &low, &size));
    CHECK_OK(pthread_attr_getguardsize(&attr, &guard));
    CHECK_OK(pthread_attr_getdetachstate(&attr, &detach));
    CHECK_OK(pthread_attr_destroy(&attr));

    char *here = __builtin_frame_address(0);
    CHECK(here > (char *)low && here < (char *)low + size);
    CHECK_EQ(guard, want->guard);
    CHECK_EQ(detach, want->detach);
    CHECK(size >= want->size);
    if (want->stack) {
        CHECK(low == want->stack);
        CHECK_EQ(size, want->size);
    }
    /* A collector reads all from the frame to the end. */
    for (char *at = here; at < (char *)low + size; at++)
        sink = *(volatile char *)at;
}

static void *green(void *arg)
{
    check_own(arg);
    sched_yield();
    check_own(arg);
    usleep(1000);
    check_own(arg);
    return arg;
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static char *parked_local;

static void *parked(void *arg)
{
    char local;
    parked_local = &local;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return arg;
}

static char own_stack[1 << 18] __attribute__((aligned(4096)));

int main(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    pthread_attr_t attr;
    pthread_t thread;
    size_t usual;
    CHECK_OK(pthread_attr_init(&attr));
    CHECK_OK(pthread_attr_getstacksize(&attr, &usual));

    /* By default. */
    struct facts facts = {page, usual - page, PTHREAD_CREATE_JOINABLE, NULL};
    CHECK(join(start(green, &facts)) == &facts);

    /* A size and a guard of one's own. */
    facts.guard = 4 * page;
    facts.size = (1 << 20) - 4 * page;
    CHECK_OK(pthread_attr_setstacksize(&attr, 1 << 20));
    CHECK_OK(pthread_attr_setguardsize(&attr, 4 * page));
    CHECK_OK(pthread_create(&thread, &attr, green, &facts));
    CHECK(join(thread) == &facts);
    facts.guard = 0;
    facts.size = 1 << 20;
    CHECK_OK(pthread_attr_setguardsize(&attr, 0));
    CHECK_OK(pthread_create(&thread, &attr, green, &facts));
    CHECK(join(thread) == &facts);

    /* A stack of one's own. */
    facts.stack = own_stack;
    facts.size = sizeof own_stack;
    CHECK_OK(pthread_attr_setstack(&attr, own_stack, sizeof own_stack));
    CHECK_OK(pthread_create(&thread, &attr, green, &facts));
    CHECK(join(thread) == &facts);
    CHECK_OK(pthread_attr_destroy(&attr));

    /* Another thread, that is parked. */
    void *low;
    size_t size;
    pthread_mutex_lock(&gate);
    thread = start(parked, NULL);
    sleep_ms(20);
    CHECK_OK(pthread_getattr_np(thread, &attr));
    CHECK_OK(pthread_attr_getstack(&attr, &low, &size));
    CHECK(parked_local > (char *)low && parked_local < (char *)low + size);
    CHECK_OK(pthread_attr_destroy(&attr));
    pthread_mutex_unlock(&gate);
    join(thread);

    /* The main thread. */
    CHECK_OK(pthread_getattr_np(pthread_self(), &attr));
    CHECK_OK(pthread_attr_getstack(&attr, &low, &size));
    CHECK((char *)&attr > (char *)low && (char *)&attr < (char *)low + size);
    CHECK_OK(pthread_attr_destroy(&attr));

    puts("getattr_np: ok");
    return 0;
}
