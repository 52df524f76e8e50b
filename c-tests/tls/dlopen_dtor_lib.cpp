// The library of dlopen_dtor.c: a thread_local object with a destructor.
// not-a-test
#include <atomic>
#include <sched.h>

static std::atomic<int> *destroyed;

struct Object {
    int uses = 0;
    ~Object()
    {
        sched_yield();
        ++*destroyed;
    }
};

static thread_local Object object;

extern "C" int lib_use(std::atomic<int> *counter)
{
    destroyed = counter;
    return ++object.uses;
}
