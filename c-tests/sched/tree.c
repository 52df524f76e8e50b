// Threads that create threads that create threads, and join them; the sum of the leaves comes up through the values.
#include "check.h"

struct node {
    int depth, width;
};

static void *grow(void *arg)
{
    struct node *node = arg;
    if (node->depth == 0) {
        sched_yield();
        return (void *)1;
    }
    pthread_t children[10];
    struct node child = {node->depth - 1, node->width};
    long leaves = 0;
    for (int i = 0; i < node->width; i++)
        children[i] = start(grow, &child); /* child lives on this stack until all are joined */
    for (int i = 0; i < node->width; i++)
        leaves += (long)join(children[i]);
    return (void *)leaves;
}

/* A chain: each creates the next, joins it and adds one. */
static void *chain(void *arg)
{
    long left = (long)arg;
    return left == 0 ? NULL : (char *)join(start(chain, (void *)(left - 1))) + 1;
}

/* A relay: each creates the next, detaches it and ends; the last one tells main. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int arrived;

static void *relay(void *arg)
{
    long left = (long)arg;
    if (left > 0) {
        CHECK_OK(pthread_detach(start(relay, (void *)(left - 1))));
        return NULL;
    }
    pthread_mutex_lock(&mutex);
    arrived = 1;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

int main(void)
{
    struct node binary = {9, 2}, wide = {3, 10};
    printf("binary: %ld leaves\n", (long)join(start(grow, &binary)));
    printf("wide: %ld leaves\n", (long)join(start(grow, &wide)));
    printf("chain: %ld links\n", (long)join(start(chain, (void *)500)));
    CHECK_OK(pthread_detach(start(relay, (void *)5000)));
    pthread_mutex_lock(&mutex);
    while (!arrived)
        pthread_cond_wait(&cond, &mutex);
    pthread_mutex_unlock(&mutex);
    puts("relay: arrived");
    return 0;
}
