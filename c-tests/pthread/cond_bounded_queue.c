// A bounded queue between producers and consumers, mutex and two condition variables: nothing lost or doubled.
#include "check.h"

#ifndef ITEMS
#define ITEMS 1000000
#endif
enum { PRODUCERS = 8, CONSUMERS = 5, ROOM = 64 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static uint64_t queue[ROOM];
static unsigned head, filled;

static void put(uint64_t item)
{
    pthread_mutex_lock(&mutex);
    while (filled == ROOM)
        pthread_cond_wait(&not_full, &mutex);
    queue[(head + filled++) % ROOM] = item;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&mutex);
}

static uint64_t take(void)
{
    pthread_mutex_lock(&mutex);
    while (filled == 0)
        pthread_cond_wait(&not_empty, &mutex);
    uint64_t item = queue[head];
    head = (head + 1) % ROOM;
    filled--;
    pthread_cond_signal(&not_full);
    pthread_mutex_unlock(&mutex);
    return item;
}

/* Spreads the items' bits, so that xor tells something. */
static uint64_t mix(uint64_t item)
{
    item *= 0x9e3779b97f4a7c15;
    return item ^ item >> 29;
}

static void *produce(void *arg)
{
    for (uint64_t item = (uint64_t)arg; item <= ITEMS; item += PRODUCERS)
        put(item);
    return NULL;
}

struct tally {
    uint64_t count, sum, xor;
};

static void *consume(void *arg)
{
    struct tally *tally = arg;
    for (uint64_t item; (item = take()) != 0;) {
        tally->count++;
        tally->sum += item;
        tally->xor ^= mix(item);
    }
    return NULL;
}

int main(void)
{
    pthread_t producers[PRODUCERS], consumers[CONSUMERS];
    static struct tally tallies[CONSUMERS];
    for (long i = 0; i < CONSUMERS; i++)
        consumers[i] = start(consume, &tallies[i]);
    for (long i = 0; i < PRODUCERS; i++)
        producers[i] = start(produce, (void *)(i + 1));
    for (int i = 0; i < PRODUCERS; i++)
        join(producers[i]);
    for (int i = 0; i < CONSUMERS; i++)
        put(0);
    struct tally all = {0, 0, 0};
    for (int i = 0; i < CONSUMERS; i++) {
        join(consumers[i]);
        all.count += tallies[i].count;
        all.sum += tallies[i].sum;
        all.xor ^= tallies[i].xor;
    }
    uint64_t want = 0;
    for (uint64_t item = 1; item <= ITEMS; item++)
        want ^= mix(item);
    CHECK_EQ(all.count, ITEMS);
    CHECK_EQ(all.sum, (uint64_t)ITEMS * (ITEMS + 1) / 2);
    CHECK_EQ(all.xor, want);
    printf("bounded queue: %d items: ok\n", ITEMS);
    return 0;
}
