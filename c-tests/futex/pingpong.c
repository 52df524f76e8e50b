// Two threads that take turns by a mutex and a condition variable, 100,000 rounds.
#include "check.h"

enum { ROUNDS = 100000 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t conds[2] = {PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER};
static int turn;
static long rounds[2];

static void *play(void *arg)
{
    int me = (int)(long)arg;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&mutex);
        while (turn != me)
            pthread_cond_wait(&conds[me], &mutex);
        CHECK_EQ(rounds[!me], i + me);
        rounds[me]++;
        turn = !me;
        pthread_cond_signal(&conds[turn]);
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}

int main(void)
{
    pthread_t threads[2];
    for (long i = 0; i < 2; i++)
        threads[i] = start(play, (void *)i);
    for (int i = 0; i < 2; i++)
        join(threads[i]);
    CHECK_EQ(rounds[0] + rounds[1], 2 * ROUNDS);
    puts("ping-pong: ok");
    return 0;
}
