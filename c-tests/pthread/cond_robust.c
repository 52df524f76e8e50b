// Condition variables with robust and process-shared mutexes: waiting frees the mutex for those who queue for it.
#include "check.h"

static pthread_mutex_t mutex;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int state;

static void *queue_for_it(void *arg)
{
    CHECK_OK(pthread_mutex_lock(&mutex));
    state++;
    CHECK_OK(pthread_cond_broadcast(&changed));
    CHECK_OK(pthread_mutex_unlock(&mutex));
    return arg;
}

static void *not_owner(void *arg)
{
    CHECK_ERR(pthread_cond_wait(&changed, &mutex), EPERM);
    return arg;
}

static void *dies_holding(void *arg)
{
    CHECK_OK(pthread_mutex_lock(&mutex));
    state = -1;
    CHECK_OK(pthread_cond_signal(&changed));
    return arg;
}

static void *wait_for_three(void *arg)
{
    pthread_t threads[3];
    CHECK_OK(pthread_mutex_lock(&mutex));
    state = 0;
    for (int i = 0; i < 3; i++)
        threads[i] = start(queue_for_it, NULL);
    sleep_ms(20);
    CHECK_EQ(state, 0);
    while (state < 3)
        CHECK_OK(pthread_cond_wait(&changed, &mutex));
    CHECK_OK(pthread_mutex_unlock(&mutex));
    for (int i = 0; i < 3; i++)
        join(threads[i]);
    return arg;
}

static void *owner_dies_meanwhile(void *arg)
{
    CHECK_OK(pthread_mutex_lock(&mutex));
    pthread_t thread = start(dies_holding, NULL);
    int got = 0;
    while (state >= 0 && got == 0)
        got = pthread_cond_wait(&changed, &mutex);
    CHECK_EQ(got, EOWNERDEAD);
    CHECK_OK(pthread_mutex_consistent(&mutex));
    CHECK_OK(pthread_mutex_unlock(&mutex));
    join(thread);
    return arg;
}

int main(void)
{
    pthread_mutexattr_t attr;
    CHECK_OK(pthread_mutexattr_init(&attr));
    CHECK_OK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
    CHECK_OK(pthread_mutex_init(&mutex, &attr));
    wait_for_three(NULL);
    join(start(wait_for_three, NULL));
    join(start(not_owner, NULL));
    join(start(wait_for_three, NULL));
    join(start(owner_dies_meanwhile, NULL));
    CHECK_OK(pthread_mutex_destroy(&mutex));

    CHECK_OK(pthread_mutexattr_init(&attr));
    CHECK_OK(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    CHECK_OK(pthread_mutex_init(&mutex, &attr));
    wait_for_three(NULL);
    join(start(wait_for_three, NULL));
    CHECK_OK(pthread_mutex_destroy(&mutex));
    puts("condition variables with other mutexes: ok");
    return 0;
}
