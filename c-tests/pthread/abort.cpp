// No terminate handler: an uncaught exception in a thread ends the process by SIGABRT.
// no-stats
#include "check.h"

#include <thread>

int main()
{
    puts("before");
    fflush(stdout);
    std::thread([] {
        std::this_thread::yield();
        throw 1;
    }).join();
}
