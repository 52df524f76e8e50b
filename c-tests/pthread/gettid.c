// gettid gives one number for a thread's whole life, unique in the process, good for pthread_kill and tgkill.
#include "check.h"

#include <signal.h>

enum { MANY = 200 };
static pid_t ids[MANY];
static pthread_barrier_t all_here;

static void *identify(void *arg)
{
    long me = (long)arg;
    pid_t id = ids[me] = gettid();
    CHECK(id != getpid());
    pthread_barrier_wait(&all_here);
    for (int round = 0; round < 20; round++) {
        CHECK_EQ(gettid(), id);
        sched_yield();
        if (round % 5 == me % 5)
            usleep(500);
    }
    CHECK_SYS(tgkill(getpid(), ids[(me + 1) % MANY], 0));
    pthread_barrier_wait(&all_here);
    return NULL;
}

static int ascending(const void *a, const void *b)
{
    return (*(const pid_t *)a > *(const pid_t *)b) - (*(const pid_t *)a < *(const pid_t *)b);
}

int main(void)
{
    pthread_t threads[MANY];
    CHECK_EQ(gettid(), getpid());
    CHECK_OK(pthread_barrier_init(&all_here, NULL, MANY));
    for (long i = 0; i < MANY; i++)
        threads[i] = start(identify, (void *)i);
    for (long i = 0; i < MANY; i++)
        CHECK_OK(pthread_kill(threads[i], 0));
    for (long i = 0; i < MANY; i++)
        join(threads[i]);
    qsort(ids, MANY, sizeof *ids, ascending);
    for (int i = 0; i < MANY; i++)
        CHECK(ids[i] > 0 && (i == 0 || ids[i] != ids[i - 1]));
    CHECK_EQ(gettid(), getpid());
    puts("gettid: ok");
    return 0;
}
