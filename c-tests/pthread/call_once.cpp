// std::call_once with an initialiser that throws: the exception reaches its caller, somebody else tries again.
// Function-local statics, which two threads may reach at once.
#include "check.h"

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

static void in_many(void (*body)(int))
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 100; i++)
        threads.emplace_back(body, i);
    for (auto &thread : threads)
        thread.join();
}

static std::once_flag flag;
static std::atomic<int> attempts, caught, returned;

static void throwing(int)
{
    try {
        std::call_once(flag, [] {
            int attempt = ++attempts;
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
            if (attempt <= 5)
                throw std::runtime_error("attempt " + std::to_string(attempt));
        });
        ++returned;
    } catch (const std::runtime_error &) {
        std::this_thread::yield();
        ++caught;
    }
}

static std::atomic<int> constructed, refused;

struct Slow {
    int value;
    Slow() : value(41)
    {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        if (++constructed <= 3)
            throw 1;
        value++;
    }
};

static void local_static(int)
{
    try {
        static Slow slow;
        CHECK_EQ(slow.value, 42);
    } catch (int) {
        ++refused;
    }
}

int main()
{
    in_many(throwing);
    printf("attempts %d, exceptions %d, returns %d\n", attempts.load(), caught.load(), returned.load());
    in_many(local_static);
    printf("constructions %d, exceptions %d\n", constructed.load(), refused.load());
}
