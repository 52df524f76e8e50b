// A pointer to another thread's __thread variable or local works, for as long as that thread lives.
#include "check.h"

#include <stdatomic.h>

static __thread atomic_int mailbox;
static pthread_barrier_t all_here;
enum { THREADS = 40 };
static atomic_int *mailboxes[THREADS];
static atomic_int *locals[THREADS];

static void *post(void *arg)
{
    long me = (long)arg;
    atomic_int local = 0;
    mailboxes[me] = &mailbox;
    locals[me] = &local;
    pthread_barrier_wait(&all_here);
    for (int i = 0; i < THREADS; i++) {
        atomic_fetch_add(mailboxes[(me + i) % THREADS], 1);
        atomic_fetch_add(locals[(me + i) % THREADS], 1);
        sched_yield();
    }
    pthread_barrier_wait(&all_here);
    CHECK_EQ(atomic_load(&mailbox), THREADS);
    CHECK_EQ(atomic_load(&local), THREADS);
    CHECK(mailboxes[me] == &mailbox);
    for (int i = 0; i < THREADS; i++)
        CHECK((mailboxes[i] == &mailbox) == (i == me));
    pthread_barrier_wait(&all_here);
    return arg;
}

int main(void)
{
    pthread_t threads[THREADS];
    CHECK_OK(pthread_barrier_init(&all_here, NULL, THREADS));
    for (long i = 0; i < THREADS; i++)
        threads[i] = start(post, (void *)i);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    CHECK_EQ(atomic_load(&mailbox), 0);
    puts("addresses: ok");
    return 0;
}
