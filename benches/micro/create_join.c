/* One thread creates another and joins it, again and again. The creator is itself a created thread, so that under
 * preload both are coroutines; the first thousand rounds fill the pools and are not counted. */
#include "micro.h"

static double limit_ns;
static long rounds;
static double elapsed_ns, used_ns;

static void *child(void *argument)
{
    return argument;
}

static void round_trip(long value)
{
    pthread_t thread;
    void *result;
    check(pthread_create(&thread, NULL, child, (void *)value), "pthread_create");
    check(pthread_join(thread, &result), "pthread_join");
    if (result != (void *)value) {
        fprintf(stderr, "join returned another thread's result\n");
        exit(1);
    }
}

static void *parent(void *argument)
{
    for (long i = 0; i < 1000; i++)
        round_trip(i);
    double begin = now_ns(), begin_cpu = cpu_ns();
    do {
        for (int i = 0; i < 64; i++)
            round_trip(rounds++);
        elapsed_ns = now_ns() - begin;
    } while (elapsed_ns < limit_ns);
    used_ns = cpu_ns() - begin_cpu;
    return argument;
}

int main(int argc, char **argv)
{
    limit_ns = duration_ns(argc, argv);
    pthread_t thread;
    check(pthread_create(&thread, NULL, parent, NULL), "pthread_create");
    check(pthread_join(thread, NULL), "pthread_join");
    printf("{\"name\":\"create_join\",\"create_join_ns\":%.1f,\"create_join_cpu_ns\":%.1f,\"rounds\":%ld}\n",
           elapsed_ns / (double)rounds, used_ns / (double)rounds, rounds);
    return 0;
}
