// C++ thread_local: constructed on first use in each thread, destroyed at its end in reverse order, before keys are.
#include "check.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;
static bool loud;
static std::atomic<int> alive, made;

static void say(const char *text, const std::string &name)
{
    if (!loud)
        return;
    pthread_mutex_lock(&printing);
    printf("  %s %s\n", text, name.c_str());
    pthread_mutex_unlock(&printing);
}

struct Traced {
    std::string name;
    int uses = 0;
    explicit Traced(const char *name) : name(name)
    {
        ++alive;
        ++made;
        std::this_thread::yield();
        say("construct", this->name);
    }
    ~Traced()
    {
        std::this_thread::yield();
        say("destroy", name);
        --alive;
    }
};

static thread_local Traced first("first"), second("second");

static Traced &in_function()
{
    static thread_local Traced local("local of a function");
    return local;
}

/* Its destructor still reads a trivial one. */
static thread_local int plain = 7;
struct Last {
    ~Last() { say("destroy", "last, plain is " + std::to_string(plain)); }
};
static thread_local Last last;

static pthread_key_t key;

static void key_destructor(void *)
{
    say("destructor of", "a key");
}

static void body()
{
    pthread_setspecific(key, &key);
    (void)&last;
    first.uses++;
    std::this_thread::yield();
    in_function().uses++;
    second.uses++;
    plain++;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    CHECK_EQ(first.uses, 1);
    CHECK_EQ(second.uses, 1);
    CHECK_EQ(in_function().uses, 1);
    CHECK_EQ(plain, 8);
}

static void *with_exit(void *arg)
{
    struct Local {
        ~Local() { say("unwind", "the frame"); }
    } local;
    first.uses++;
    pthread_exit(arg);
}

int main()
{
    CHECK_OK(pthread_key_create(&key, key_destructor));
    loud = true;
    puts("a thread that uses all:");
    std::thread(body).join();
    puts("one that exits:");
    join(start(with_exit, NULL));
    puts("one that uses none:");
    std::thread([] { std::this_thread::yield(); }).join();
    loud = false;

    CHECK_EQ(alive, 0);
    for (int round = 0; round < 3; round++) {
        made = 0;
        std::vector<std::thread> threads;
        for (int i = 0; i < 300; i++)
            threads.emplace_back(body);
        for (auto &thread : threads)
            thread.join();
        CHECK_EQ(made, 3 * 300);
        CHECK_EQ(alive, 0);
    }
    puts("thread_local: ok");
}
