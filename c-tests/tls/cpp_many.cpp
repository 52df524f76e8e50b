// 1,000 C++ threads that mix everything a thread has of its own, and move between kernel threads while they do.
#include "check.h"

#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

enum { THREADS = 1000, ROUNDS = 20 };
static std::atomic<int> alive;
static pthread_key_t key;
static std::atomic<int> keys_destroyed;

struct Owned {
    std::vector<int> numbers;
    std::string name = "fresh";
    Owned() { ++alive; }
    ~Owned()
    {
        sched_yield();
        --alive;
    }
};

static thread_local Owned owned;
static thread_local std::unique_ptr<std::string> held;
static thread_local long trivial = 11;
static __thread char zeroes[500];

static void pause(unsigned how)
{
    if (how % 11 == 0)
        usleep(200);
    else
        sched_yield();
}

struct Scope {
    std::string &log;
    explicit Scope(std::string &log) : log(log) { log += '('; }
    ~Scope()
    {
        sched_yield();
        log += ')';
    }
};

static int fail(int depth, int value, std::string &log)
{
    Scope scope(log);
    if (depth == 0)
        throw std::out_of_range("value " + std::to_string(value));
    return fail(depth - 1, value, log) + 1;
}

static void body(int me)
{
    CHECK_EQ(owned.numbers.size(), 0);
    CHECK_STR(owned.name.c_str(), "fresh");
    CHECK(!held);
    CHECK_EQ(trivial, 11);
    CHECK_EQ(zeroes[me % 500], 0);
    CHECK(pthread_getspecific(key) == NULL);
    CHECK_EQ(errno, 0);

    std::mt19937 random((unsigned)me);
    std::map<std::string, int> counts;
    owned.name = "thread " + std::to_string(me);
    held = std::make_unique<std::string>(owned.name);
    memset(zeroes, 'z', sizeof zeroes);
    CHECK_OK(pthread_setspecific(key, new int(me)));
    int *thread_errno = &errno;

    for (int i = 0; i < ROUNDS; i++) {
        errno = me + i;
        trivial = me * ROUNDS + i;
        owned.numbers.push_back(me + i);
        pause(random());
        CHECK_EQ(errno, me + i);
        CHECK(&errno == thread_errno);
        CHECK_EQ(trivial, me * ROUNDS + i);

        std::string log;
        try {
            fail(3, me + i, log);
        } catch (const std::out_of_range &error) {
            pause(random());
            std::ostringstream text;
            text << "value " << me + i;
            CHECK_STR(error.what(), text.str().c_str());
            CHECK_STR(log.c_str(), "(((())))");
        }

        char printed[64], again[64];
        double number = (me + 1) / 3.0 * (i + 1);
        snprintf(printed, sizeof printed, "%.17g", number);
        pause(random());
        CHECK(strtod(printed, NULL) == number);
        snprintf(again, sizeof again, "%s", std::to_string(number).c_str());
        CHECK(strtod(again, NULL) - number < 1e-6);

        counts["key " + std::to_string(i % 5)]++;
        pause(random());
        CHECK_STR(held->c_str(), owned.name.c_str());
        CHECK_EQ(*static_cast<int *>(pthread_getspecific(key)), me);
    }
    CHECK_EQ(counts.size(), 5);
    CHECK_EQ(owned.numbers.size(), ROUNDS);
    for (int i = 0; i < ROUNDS; i++)
        CHECK_EQ(owned.numbers[(size_t)i], me + i);
    for (char c : zeroes)
        CHECK_EQ(c, 'z');
}

int main()
{
    CHECK_OK(pthread_key_create(&key, [](void *value) {
        delete static_cast<int *>(value);
        ++keys_destroyed;
    }));
    for (int round = 0; round < 2; round++) {
        std::vector<std::thread> threads;
        for (int i = 0; i < THREADS; i++)
            threads.emplace_back(body, i);
        for (auto &thread : threads)
            thread.join();
        CHECK_EQ(alive, 0);
        CHECK_EQ(keys_destroyed, THREADS * (round + 1));
    }
    puts("C++ in many threads: ok");
}
