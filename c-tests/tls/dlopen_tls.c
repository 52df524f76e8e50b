// A library with __thread variables, opened while threads exist and before others do, closed and opened again.
// shlib: dlopen_tls_lib.c
// shlib: dlopen_tls_static_lib.c
// link: -ldl
#include "check.h"

#include <dlfcn.h>

enum { THREADS = 50 };
static pthread_barrier_t step;
static int (*lib_count)(void), (*lib_fresh)(void), (*lib_spoilt)(int);
static void (*lib_spoil)(int);

static void *load(const char *variable)
{
    void *library = dlopen(getenv(variable), RTLD_NOW | RTLD_LOCAL);
    if (!library)
        CHECK_FAIL("dlopen: %s", dlerror());
    lib_count = (int (*)(void))dlsym(library, "lib_count");
    lib_fresh = (int (*)(void))dlsym(library, "lib_fresh");
    lib_spoilt = (int (*)(int))dlsym(library, "lib_spoilt");
    lib_spoil = (void (*)(int))dlsym(library, "lib_spoil");
    CHECK(lib_count && lib_fresh && lib_spoilt && lib_spoil);
    return library;
}

static void use(int me)
{
    CHECK(lib_fresh());
    sched_yield();
    CHECK_EQ(lib_count(), 101);
    for (int i = 0; i < 10; i++) {
        lib_spoil(me + i);
        sched_yield();
        if (i == 5)
            usleep(100);
        CHECK(lib_spoilt(me + i));
    }
}

static void *born_before(void *arg)
{
    pthread_barrier_wait(&step); /* all exist */
    pthread_barrier_wait(&step); /* loaded */
    use((int)(long)arg);
    pthread_barrier_wait(&step); /* used */
    return arg;
}

static void *born_after(void *arg)
{
    use((int)(long)arg);
    return arg;
}

static void *loader(void *arg)
{
    return load(arg);
}

static void born_after_in(pthread_t *threads)
{
    for (long i = 0; i < THREADS; i++)
        threads[i] = start(born_after, (void *)i);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
}

static void rounds(char *variable)
{
    pthread_t before[THREADS], after[THREADS];
    void *library = NULL;
    for (int round = 0; round < 3; round++) {
        for (long i = 0; i < THREADS; i++)
            before[i] = start(born_before, (void *)(i * 10));
        pthread_barrier_wait(&step);
        library = round % 2 ? join(start(loader, variable)) : load(variable); /* by main, or by a thread */
        pthread_barrier_wait(&step);
        born_after_in(after);
        pthread_barrier_wait(&step);
        for (int i = 0; i < THREADS; i++)
            join(before[i]);
        born_after_in(after);
        CHECK(lib_fresh());
        CHECK_EQ(dlclose(library), 0);
    }
}

int main(void)
{
    CHECK_OK(pthread_barrier_init(&step, NULL, THREADS + 1));
    rounds("SHLIB");
    rounds("SHLIB2");
    puts("dlopen and thread-local variables: ok");
    return 0;
}
