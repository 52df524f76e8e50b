// An exception that leaves a start routine calls std::terminate in that thread, with the exception current.
// no-stats
#include "check.h"

#include <exception>
#include <stdexcept>
#include <thread>

int main()
{
    std::set_terminate([] {
        try {
            std::rethrow_exception(std::current_exception());
        } catch (const std::exception &error) {
            printf("terminate: %s\n", error.what());
        }
        fflush(stdout);
        _exit(3);
    });
    std::thread([] {
        std::this_thread::yield();
        throw std::runtime_error("nobody catches me");
    }).join();
}
