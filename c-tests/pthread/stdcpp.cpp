// The C++ library's threads: thread, the mutexes, condition variables, async, promise, packaged_task, semaphores.
// std: gnu++20
#include "check.h"

#include <atomic>
#include <barrier>
#include <condition_variable>
#include <deque>
#include <future>
#include <latch>
#include <mutex>
#include <numeric>
#include <semaphore>
#include <set>
#include <shared_mutex>
#include <stop_token>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
enum { MANY = 60 };

template <typename Body> static void in_many(Body body)
{
    std::vector<std::thread> threads;
    for (int i = 0; i < MANY; i++)
        threads.emplace_back(body, i);
    for (auto &thread : threads)
        thread.join();
}

template <typename Mutex> static void count_with()
{
    Mutex mutex;
    int counter = 0;
    in_many([&](int) {
        for (int i = 0; i < 200; i++) {
            std::lock_guard lock(mutex);
            int now = counter;
            if (i % 50 == 0)
                std::this_thread::yield();
            counter = now + 1;
        }
    });
    CHECK_EQ(counter, MANY * 200);
    std::unique_lock held(mutex);
    std::thread([&] { CHECK(!mutex.try_lock()); }).join();
}

template <typename Mutex> static void time_out()
{
    Mutex mutex;
    std::unique_lock held(mutex);
    std::thread([&] {
        auto began = std::chrono::steady_clock::now();
        CHECK(!mutex.try_lock_for(20ms));
        CHECK(!mutex.try_lock_until(std::chrono::steady_clock::now() + 20ms));
        CHECK(!mutex.try_lock_until(std::chrono::system_clock::now() + 20ms));
        CHECK(std::chrono::steady_clock::now() - began >= 58ms);
    }).join();
}

static void identity()
{
    std::set<std::thread::id> ids;
    std::mutex mutex;
    std::latch all(MANY);
    in_many([&](int) {
        auto id = std::this_thread::get_id();
        all.arrive_and_wait(); /* all alive, so all different */
        std::this_thread::yield();
        CHECK(id == std::this_thread::get_id());
        std::lock_guard lock(mutex);
        ids.insert(id);
    });
    CHECK_EQ(ids.size(), MANY);
    std::thread nobody;
    CHECK(!nobody.joinable());
    std::thread somebody([] { std::this_thread::sleep_for(1ms); });
    nobody = std::move(somebody);
    CHECK(nobody.joinable() && !somebody.joinable());
    nobody.join();
}

template <typename Condition> static void conditions()
{
    std::mutex mutex;
    Condition condition;
    std::deque<int> queue;
    std::atomic<long> sum = 0;
    std::vector<std::thread> consumers;
    for (int i = 0; i < 10; i++)
        consumers.emplace_back([&] {
            for (;;) {
                std::unique_lock lock(mutex);
                condition.wait(lock, [&] { return !queue.empty(); });
                int item = queue.front();
                queue.pop_front();
                if (item == 0)
                    return;
                sum += item;
            }
        });
    in_many([&](int number) {
        for (int i = 0; i < 50; i++) {
            std::lock_guard lock(mutex);
            queue.push_back(number + 1);
            condition.notify_one();
        }
    });
    {
        std::lock_guard lock(mutex);
        queue.insert(queue.end(), 10, 0);
        condition.notify_all();
    }
    for (auto &consumer : consumers)
        consumer.join();
    CHECK_EQ(sum, 50 * MANY * (MANY + 1) / 2);

    std::unique_lock lock(mutex);
    CHECK(condition.wait_for(lock, 10ms) == std::cv_status::timeout);
    CHECK(!condition.wait_until(lock, std::chrono::system_clock::now() + 10ms, [] { return false; }));
    CHECK(!condition.wait_until(lock, std::chrono::steady_clock::now() + 10ms, [] { return false; }));
}

static void futures()
{
    std::vector<std::future<long>> results;
    for (long i = 0; i < MANY; i++)
        results.push_back(std::async(std::launch::async, [i] {
            std::this_thread::sleep_for(std::chrono::milliseconds(i % 5));
            if (i == 13)
                throw std::runtime_error("thirteen");
            return i * i;
        }));
    for (long i = 0; i < MANY; i++) {
        try {
            CHECK_EQ(results[(size_t)i].get(), i * i);
            CHECK(i != 13);
        } catch (const std::runtime_error &error) {
            CHECK_EQ(i, 13);
            CHECK_STR(error.what(), "thirteen");
        }
    }
    CHECK_EQ(std::async(std::launch::deferred, [] { return 5; }).get(), 5);

    std::promise<int> promise;
    std::shared_future<int> shared = promise.get_future().share();
    CHECK(shared.wait_for(10ms) == std::future_status::timeout);
    std::thread giver([&] {
        std::this_thread::sleep_for(10ms);
        promise.set_value(99);
    });
    in_many([shared](int) { CHECK_EQ(shared.get(), 99); });
    giver.join();

    std::future<int> broken;
    {
        std::promise<int> abandoned;
        broken = abandoned.get_future();
    }
    try {
        broken.get();
        CHECK(false);
    } catch (const std::future_error &error) {
        CHECK(error.code() == std::future_errc::broken_promise);
    }

    std::packaged_task<int(int)> task([](int x) { return x + 1; });
    std::future<int> result = task.get_future();
    std::thread(std::move(task), 41).join();
    CHECK_EQ(result.get(), 42);

    std::promise<int> late;
    std::future<int> at_exit = late.get_future();
    std::thread([&] {
        late.set_value_at_thread_exit(3);
        std::this_thread::yield();
    }).detach();
    CHECK_EQ(at_exit.get(), 3);
}

static void readers_and_writers()
{
    std::shared_mutex mutex;
    long left = 0, right = 0;
    in_many([&](int number) {
        for (int i = 0; i < 50; i++) {
            if (number % 5) {
                std::shared_lock lock(mutex);
                long now = left;
                std::this_thread::yield();
                CHECK_EQ(right, now);
            } else {
                std::unique_lock lock(mutex);
                left++;
                std::this_thread::yield();
                right++;
            }
        }
    });
    CHECK_EQ(left, MANY / 5 * 50);
}

static void cpp20()
{
    std::counting_semaphore<10> semaphore(3);
    std::atomic<int> inside = 0;
    in_many([&](int) {
        semaphore.acquire();
        CHECK(++inside <= 3);
        std::this_thread::yield();
        --inside;
        semaphore.release();
    });
    CHECK(semaphore.try_acquire());
    semaphore.release();
    std::binary_semaphore none(0);
    CHECK(!none.try_acquire_for(10ms));

    int completions = 0;
    std::barrier barrier(MANY, [&]() noexcept { completions++; });
    in_many([&](int) {
        for (int i = 0; i < 20; i++) {
            barrier.arrive_and_wait();
            CHECK_EQ(completions, 2 * i + 1);
            barrier.arrive_and_wait();
        }
    });

    std::atomic<int> flag = 0;
    std::thread setter([&] {
        std::this_thread::sleep_for(10ms);
        flag = 1;
        flag.notify_all();
    });
    in_many([&](int) { flag.wait(0); });
    setter.join();

    std::condition_variable_any condition;
    std::mutex mutex;
    bool stopped = false;
    {
        std::jthread thread([&](std::stop_token token) {
            std::unique_lock lock(mutex);
            stopped = !condition.wait(lock, token, [] { return false; });
        });
        std::this_thread::sleep_for(5ms);
    }
    CHECK(stopped);
}

int main()
{
    CHECK(std::thread::hardware_concurrency() > 0);
    identity();
    count_with<std::mutex>();
    count_with<std::recursive_mutex>();
    count_with<std::timed_mutex>();
    count_with<std::recursive_timed_mutex>();
    count_with<std::shared_mutex>();
    time_out<std::timed_mutex>();
    time_out<std::recursive_timed_mutex>();
    time_out<std::shared_timed_mutex>();
    conditions<std::condition_variable>();
    conditions<std::condition_variable_any>();
    futures();
    readers_and_writers();
    cpp20();
    puts("C++ threads: ok");
}
