// Stacks of a hundred different sizes, and a program with a megabyte of thread-local variables.
#include "check.h"

#include <string.h>
#include <unistd.h>

static __thread char large[1 << 20];

static void *uses(void *arg)
{
    char local[8192];
    memset(local, 1, sizeof local);
    usleep(100);
    CHECK_EQ(large[sizeof large - 1], 0);
    memset(large, 1, sizeof large);
    return local[100] == 1 ? arg : NULL;
}

int main(void)
{
    pthread_attr_t attr;
    CHECK_OK(pthread_attr_init(&attr));
    for (size_t size = 2 << 20; size < (2 << 20) + 100 * (64 << 10); size += 64 << 10) {
        pthread_t thread;
        CHECK_OK(pthread_attr_setstacksize(&attr, size));
        void *token = (void *)size;
        CHECK_OK(pthread_create(&thread, &attr, uses, token));
        CHECK(join(thread) == token);
    }
    CHECK_OK(pthread_attr_destroy(&attr));
    puts("many sizes: ok");
    return 0;
}
