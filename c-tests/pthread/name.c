// pthread_setname_np, pthread_getname_np: of oneself and others, inherited, at most 15 characters.
#include "check.h"

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void check_name(pthread_t thread, const char *want)
{
    char name[16];
    memset(name, '?', sizeof name);
    CHECK_OK(pthread_getname_np(thread, name, sizeof name));
    CHECK_STR(name, want);
}

static void *inherits(void *arg)
{
    check_name(pthread_self(), arg);
    return NULL;
}

static void *names_itself(void *arg)
{
    char name[16];
    snprintf(name, sizeof name, "thread %ld", (long)arg);
    CHECK_OK(pthread_setname_np(pthread_self(), name));
    for (int i = 0; i < 20; i++) {
        sched_yield();
        check_name(pthread_self(), name);
    }
    return NULL;
}

static void *parked(void *arg)
{
    pthread_mutex_lock(&gate);
    check_name(pthread_self(), "given");
    pthread_mutex_unlock(&gate);
    return arg;
}

int main(void)
{
    char name[32];
    CHECK_OK(pthread_setname_np(pthread_self(), "creator"));
    check_name(pthread_self(), "creator");
    join(start(inherits, "creator"));

    /* Limits. */
    CHECK_OK(pthread_setname_np(pthread_self(), "fifteen letters"));
    check_name(pthread_self(), "fifteen letters");
    CHECK_ERR(pthread_setname_np(pthread_self(), "sixteen  letters"), ERANGE);
    check_name(pthread_self(), "fifteen letters");
    CHECK_ERR(pthread_getname_np(pthread_self(), name, 15), ERANGE);
    CHECK_OK(pthread_setname_np(pthread_self(), ""));
    check_name(pthread_self(), "");
    CHECK_OK(pthread_setname_np(pthread_self(), "creator"));

    /* Each its own. */
    enum { MANY = 100 };
    pthread_t threads[MANY];
    for (long i = 0; i < MANY; i++)
        threads[i] = start(names_itself, (void *)i);
    for (int i = 0; i < MANY; i++)
        join(threads[i]);
    check_name(pthread_self(), "creator");

    /* Another's. */
    pthread_mutex_lock(&gate);
    pthread_t thread = start(parked, NULL);
    sleep_ms(10);
    check_name(thread, "creator");
    CHECK_OK(pthread_setname_np(thread, "given"));
    CHECK_ERR(pthread_setname_np(thread, "sixteen  letters"), ERANGE);
    check_name(thread, "given");
    CHECK_ERR(pthread_getname_np(thread, name, 15), ERANGE);
    check_name(pthread_self(), "creator");
    pthread_mutex_unlock(&gate);
    join(thread);

    puts("names: ok");
    return 0;
}
