/* Two threads call sched_yield in turns; on one CPU (or one worker) each call is one switch. Whether the calls did
 * alternate is counted, for a yield that returns to its caller is no switch. */
#include "micro.h"
#include <sched.h>
#include <stdatomic.h>

static double limit_ns, elapsed_ns, used_ns;
static atomic_long yields, switches;
static atomic_int stop, last, arrived;

static void *spin(void *argument)
{
    int me = (int)(long)argument;
    /* Relaxed atomics throughout: on x86-64 they are plain loads and stores, the switch is what is measured. */
    atomic_fetch_add(&arrived, 1);
    while (atomic_load(&arrived) < 2)
        sched_yield();
    double begin = now_ns(), begin_cpu = cpu_ns();
    long mine = 0, changed = 0;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        changed += atomic_load_explicit(&last, memory_order_relaxed) != me;
        atomic_store_explicit(&last, me, memory_order_relaxed);
        sched_yield();
        if (++mine % 256 == 0 && me == 0 && now_ns() - begin >= limit_ns) {
            elapsed_ns = now_ns() - begin;
            used_ns = cpu_ns() - begin_cpu;
            atomic_store(&stop, 1);
        }
    }
    atomic_fetch_add(&yields, mine);
    atomic_fetch_add(&switches, changed);
    return NULL;
}

int main(int argc, char **argv)
{
    limit_ns = duration_ns(argc, argv);
    pthread_t threads[2];
    for (long i = 0; i < 2; i++)
        check(pthread_create(&threads[i], NULL, spin, (void *)i), "pthread_create");
    for (int i = 0; i < 2; i++)
        check(pthread_join(threads[i], NULL), "pthread_join");
    long total = atomic_load(&yields), changed = atomic_load(&switches);
    double count = (double)(changed > 0 ? changed : 1);
    printf("{\"name\":\"yield_switch\",\"switch_ns\":%.1f,\"switch_cpu_ns\":%.1f,\"yields\":%ld,"
           "\"alternating\":%.3f}\n",
           elapsed_ns / count, used_ns / count, total, (double)changed / (double)total);
    return 0;
}
