// Exceptions and yields: what a thread has caught, is throwing or unwinds is its own, wherever it goes on running.
#include "check.h"

#include <atomic>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static void pause(int how)
{
    if (how % 7 == 0)
        usleep(100);
    else
        sched_yield();
}

/* Unwinding runs this destructor, which yields in the middle and catches something of its own. */
struct Pauses {
    int how;
    explicit Pauses(int how) : how(how) {}
    ~Pauses()
    {
        int before = std::uncaught_exceptions();
        pause(how);
        try {
            throw how;
        } catch (int caught) {
            pause(how + 1);
            CHECK_EQ(caught, how);
        }
        CHECK_EQ(std::uncaught_exceptions(), before);
    }
};

__attribute__((noinline)) static void thrower(int depth, const std::string &what)
{
    Pauses pauses(depth);
    if (depth == 0)
        throw std::runtime_error(what);
    thrower(depth - 1, what);
}

static void rethrow(int number)
{
    std::string what = "thread " + std::to_string(number);
    CHECK_EQ(std::uncaught_exceptions(), 0);
    try {
        try {
            thrower(5, what);
        } catch (...) {
            CHECK_EQ(std::uncaught_exceptions(), 0);
            pause(number);
            std::exception_ptr current = std::current_exception();
            pause(number + 1);
            CHECK(current == std::current_exception());
            try { /* another inside of the catch block */
                throw number;
            } catch (int inner) {
                pause(number + 2);
                CHECK_EQ(inner, number);
                CHECK(current != std::current_exception());
            }
            CHECK(current == std::current_exception());
            pause(number + 3);
            throw;
        }
    } catch (const std::exception &error) {
        pause(number + 4);
        CHECK_STR(error.what(), what.c_str());
    }
    CHECK(std::current_exception() == nullptr);
}

static void many_times(int number)
{
    for (int i = 0; i < 20; i++)
        rethrow(number * 100 + i);
}

/* An exception caught in one thread is thrown in another. */
static void carry()
{
    std::exception_ptr carried;
    std::thread([&] {
        try {
            thrower(3, "carried");
        } catch (...) {
            carried = std::current_exception();
        }
    }).join();
    std::thread([&] {
        try {
            std::rethrow_exception(carried);
        } catch (const std::runtime_error &error) {
            sched_yield();
            puts(error.what());
        }
    }).join();
}

/* pthread_exit unwinds through catch (...), which must throw on. */
static void *exits(void *arg)
{
    Pauses pauses(14);
    try {
        Pauses inner(3);
        pthread_exit(arg);
    } catch (...) {
        sched_yield();
        throw;
    }
}

int main()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 200; i++)
        threads.emplace_back(many_times, i);
    many_times(1000);
    for (auto &thread : threads)
        thread.join();
    carry();
    int here;
    for (int i = 0; i < 20; i++)
        CHECK(join(start(exits, &here)) == &here);
    puts("exceptions: ok");
}
