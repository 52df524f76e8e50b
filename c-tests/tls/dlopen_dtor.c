// thread_local destructors of a library opened by dlopen run at thread end, also if it was closed meanwhile.
// shlib: dlopen_dtor_lib.cpp
// link: -ldl
#include "check.h"

#include <dlfcn.h>
#include <stdatomic.h>

enum { THREADS = 30 };
static atomic_int destroyed;
static pthread_barrier_t step;
static int (*lib_use)(atomic_int *);

static void *use(void *arg)
{
    CHECK_EQ(lib_use(&destroyed), 1);
    sched_yield();
    CHECK_EQ(lib_use(&destroyed), 2);
    pthread_barrier_wait(&step); /* used */
    pthread_barrier_wait(&step); /* closed */
    return arg;
}

int main(void)
{
    pthread_t threads[THREADS];
    CHECK_OK(pthread_barrier_init(&step, NULL, THREADS + 1));
    for (int round = 0; round < 3; round++) {
        atomic_store(&destroyed, 0);
        void *library = dlopen(getenv("SHLIB"), RTLD_NOW);
        if (!library)
            CHECK_FAIL("dlopen: %s", dlerror());
        lib_use = (int (*)(atomic_int *))dlsym(library, "lib_use");
        for (int i = 0; i < THREADS; i++)
            threads[i] = start(use, NULL);
        pthread_barrier_wait(&step);
        CHECK_EQ(dlclose(library), 0);
        pthread_barrier_wait(&step);
        for (int i = 0; i < THREADS; i++)
            join(threads[i]);
        CHECK_EQ(atomic_load(&destroyed), THREADS);
    }
    puts("dlopen and thread_local destructors: ok");
    return 0;
}
