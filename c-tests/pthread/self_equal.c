// pthread_self, pthread_equal: the handle that pthread_create gave, unique among the living, the same after yields.
#include "check.h"

enum { MANY = 300 };
static pthread_t handles[MANY];
static pthread_barrier_t all_created;

static void *compare(void *arg)
{
    long me = (long)arg;
    pthread_t self = pthread_self();
    pthread_barrier_wait(&all_created);
    for (int round = 0; round < 20; round++) {
        CHECK(pthread_equal(self, pthread_self()));
        CHECK(pthread_self() == handles[me]);
        for (long i = 0; i < MANY; i++)
            CHECK_EQ(!!pthread_equal(self, handles[i]), i == me);
        sched_yield();
    }
    return (void *)self;
}

int main(void)
{
    pthread_t self = pthread_self();
    CHECK_OK(pthread_barrier_init(&all_created, NULL, MANY + 1));
    for (long i = 0; i < MANY; i++)
        handles[i] = start(compare, (void *)i);
    pthread_barrier_wait(&all_created);
    for (long i = 0; i < MANY; i++) {
        CHECK(!pthread_equal(self, handles[i]));
        CHECK((pthread_t)join(handles[i]) == handles[i]);
    }
    CHECK(pthread_equal(self, pthread_self()));
    puts("self and equal: ok");
    return 0;
}
