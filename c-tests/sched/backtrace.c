// A backtrace from a thread, also one that was taken in the middle of a wait, ends at the thread's start.
#include "check.h"

#include <execinfo.h>

enum { MOST = 64 };

static int depth_here(void)
{
    void *frames[MOST];
    return backtrace(frames, MOST);
}

static __attribute__((noinline)) int deeper(int levels)
{
    int depth = levels ? deeper(levels - 1) : depth_here();
    __asm__ volatile("" : "+r"(depth)); /* no tail call */
    return depth;
}

static void *walks(void *arg)
{
    int before = deeper(5);
    sched_yield();
    usleep(1000);
    CHECK_EQ(deeper(5), before);
    CHECK_EQ(deeper(15), before + 10);
    CHECK(before < MOST);
    return arg;
}

int main(void)
{
    pthread_t threads[50];
    depth_here(); /* loads the unwinder */
    for (int i = 0; i < 50; i++)
        threads[i] = start(walks, NULL);
    for (int i = 0; i < 50; i++)
        join(threads[i]);
    puts("backtrace: ok");
    return 0;
}
