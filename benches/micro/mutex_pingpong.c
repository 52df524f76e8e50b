/* Two threads hand a turn to each other through one mutex and two condition variables. */
#include "micro.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned[2] = {PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER};
static int turn;
static int stop;
static long handovers;
static double limit_ns, elapsed_ns, used_ns;

static void *play(void *argument)
{
    int me = (int)(long)argument;
    double begin = now_ns(), begin_cpu = cpu_ns();
    check(pthread_mutex_lock(&mutex), "pthread_mutex_lock");
    while (!stop) {
        while (turn != me && !stop)
            check(pthread_cond_wait(&turned[me], &mutex), "pthread_cond_wait");
        if (stop)
            break;
        handovers++;
        /* The clock is read rarely: it must not be part of what is measured. Player 0 has the odd turns. */
        if (me == 0 && handovers % 256 == 1 && now_ns() - begin >= limit_ns) {
            elapsed_ns = now_ns() - begin;
            used_ns = cpu_ns() - begin_cpu;
            stop = 1;
        }
        turn = 1 - me;
        check(pthread_cond_signal(&turned[1 - me]), "pthread_cond_signal");
    }
    check(pthread_mutex_unlock(&mutex), "pthread_mutex_unlock");
    return NULL;
}

int main(int argc, char **argv)
{
    limit_ns = duration_ns(argc, argv);
    pthread_t players[2];
    for (long i = 0; i < 2; i++)
        check(pthread_create(&players[i], NULL, play, (void *)i), "pthread_create");
    for (int i = 0; i < 2; i++)
        check(pthread_join(players[i], NULL), "pthread_join");
    printf("{\"name\":\"mutex_pingpong\",\"handover_ns\":%.1f,\"handover_cpu_ns\":%.1f,\"handovers\":%ld}\n",
           elapsed_ns / (double)handovers, used_ns / (double)handovers, handovers);
    return 0;
}
