// std: gnu++20
/* A word count in C++: threads, futures, a channel made of a mutex and condition variables, streams, exceptions that
 * travel through a promise. */
#include "check.h"
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

template <class T> class Channel {
public:
    explicit Channel(size_t room) : room(room) {}

    void put(T item)
    {
        std::unique_lock lock(mutex);
        emptied.wait(lock, [&] { return items.size() < room; });
        items.push_back(std::move(item));
        filled.notify_one();
    }

    std::optional<T> take()
    {
        using namespace std::chrono_literals;
        std::unique_lock lock(mutex);
        while (!filled.wait_for(lock, 50ms, [&] { return closed || !items.empty(); }))
            ;
        if (items.empty())
            return std::nullopt;
        T item = std::move(items.front());
        items.pop_front();
        emptied.notify_one();
        return item;
    }

    void close()
    {
        std::lock_guard lock(mutex);
        closed = true;
        filled.notify_all();
    }

private:
    std::mutex mutex;
    std::condition_variable filled, emptied;
    std::deque<T> items;
    size_t room;
    bool closed = false;
};

using Counts = std::map<std::string, int>;

static std::string page(int number)
{
    static const char *const words[] = {"thread", "stack", "lock", "wait", "wake", "run", "queue", "park"};
    std::ostringstream text;
    uint32_t state = static_cast<uint32_t>(number) * 7919 + 1;
    for (int i = 0; i < 200; i++) {
        state = state * 1664525 + 1013904223;
        text << words[state >> 29] << (i % 9 == 8 ? '\n' : ' ');
    }
    return text.str();
}

static thread_local int pages_here;

static Counts count(const std::string &text)
{
    Counts counts;
    std::istringstream in(text);
    std::string word;
    while (in >> word)
        counts[word]++;
    if (++pages_here % 10 == 0)
        std::this_thread::yield();
    return counts;
}

static Counts reduce(std::vector<std::future<Counts>> parts)
{
    Counts total;
    for (auto &part : parts)
        for (const auto &[word, number] : part.get())
            total[word] += number;
    return total;
}

static Counts with_a_pool(int pages)
{
    Channel<std::packaged_task<Counts()>> jobs(10);
    std::vector<std::future<Counts>> parts;
    std::vector<std::thread> workers;
    for (int i = 0; i < 6; i++)
        workers.emplace_back([&] {
            while (auto job = jobs.take())
                (*job)();
        });
    for (int i = 0; i < pages; i++) {
        std::packaged_task<Counts()> job([i] { return count(page(i)); });
        parts.push_back(job.get_future());
        jobs.put(std::move(job));
    }
    jobs.close();
    for (auto &worker : workers)
        worker.join();
    return reduce(std::move(parts));
}

static Counts with_async(int pages)
{
    std::vector<std::future<Counts>> parts;
    for (int i = 0; i < pages; i++)
        parts.push_back(std::async(std::launch::async, [i] { return count(page(i)); }));
    return reduce(std::move(parts));
}

/* Every third of them fails; what it threw arrives where its result is asked for. */
static int failures(int pages)
{
    std::vector<std::future<int>> parts;
    int caught = 0;
    for (int i = 0; i < pages; i++)
        parts.push_back(std::async(std::launch::async, [i] {
            std::this_thread::sleep_for(std::chrono::microseconds(100 * (i % 5)));
            if (i % 3 == 0)
                throw std::runtime_error("page " + std::to_string(i));
            return i;
        }));
    for (int i = 0; i < pages; i++) {
        try {
            CHECK_EQ(parts[static_cast<size_t>(i)].get(), i);
            CHECK(i % 3 != 0);
        } catch (const std::runtime_error &error) {
            CHECK_STR(error.what(), ("page " + std::to_string(i)).c_str());
            caught++;
        }
    }
    return caught;
}

int main()
{
    Counts pooled = with_a_pool(300), asynchronous = with_async(300);
    CHECK(pooled == asynchronous);
    int total = 0;
    for (const auto &[word, number] : pooled) {
        std::cout << word << ' ' << number << '\n';
        total += number;
    }
    std::cout << "total " << total << "\nfailures " << failures(60) << std::endl;
    return 0;
}
