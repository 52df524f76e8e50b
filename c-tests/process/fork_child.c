// What a child of fork may do, whichever thread forked: return from the start routine, pthread_exit, make threads,
// take a fault in a handler; also while the parent's other threads come and go.
// timeout: 120
#include "check.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static void *nothing(void *arg)
{
    return arg;
}

static void ended_with(pid_t child, int status)
{
    int how;
    CHECK_EQ(waitpid(child, &how, 0), child);
    CHECK(WIFEXITED(how));
    CHECK_EQ(WEXITSTATUS(how), status);
}

static void *child_returns(void *arg)
{
    pid_t child = fork();
    CHECK_SYS(child);
    if (child == 0)
        return arg;
    ended_with(child, 0);
    return arg;
}

static void *child_exits_its_thread(void *arg)
{
    pid_t child = fork();
    CHECK_SYS(child);
    if (child == 0)
        pthread_exit(arg);
    ended_with(child, 0);
    return arg;
}

static void *child_makes_threads(void *arg)
{
    pid_t child = fork();
    CHECK_SYS(child);
    if (child == 0) {
        for (int i = 0; i < 3; i++)
            join(start(nothing, arg));
        _exit(5);
    }
    ended_with(child, 5);
    return arg;
}

extern pid_t _Fork(void);

static void *child_without_handlers(void *arg)
{
    pid_t child = _Fork();
    CHECK_SYS(child);
    if (child == 0) {
        join(start(nothing, arg));
        _exit(6);
    }
    ended_with(child, 6);
    return arg;
}

static void leaves(int signal_number)
{
    (void)signal_number;
    _exit(7);
}

static void *faults(void *arg)
{
    *(volatile int *)arg = 1;
    return arg;
}

static void *child_faults(void *arg)
{
    pid_t child = fork();
    CHECK_SYS(child);
    if (child == 0) {
        join(start(faults, NULL));
        _exit(3);
    }
    ended_with(child, 7);
    return arg;
}

static atomic_int stop;

static void *makes_threads(void *arg)
{
    while (!atomic_load(&stop))
        join(start(nothing, NULL));
    return arg;
}

int main(void)
{
    static void *(*const cases[])(void *) = {
        child_returns, child_exits_its_thread, child_makes_threads, child_without_handlers, child_faults,
    };
    struct sigaction action = {.sa_handler = leaves};
    CHECK_SYS(sigaction(SIGSEGV, &action, NULL));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        join(start(cases[i], &stop));

    pthread_t maker = start(makes_threads, NULL);
    for (int i = 0; i < 300; i++) {
        pid_t child = fork();
        CHECK_SYS(child);
        if (child == 0) {
            alarm(30);
            join(start(nothing, NULL));
            join(start(nothing, NULL));
            _exit(0);
        }
        ended_with(child, 0);
    }
    atomic_store(&stop, 1);
    join(maker);
    puts("children: ok");
    return 0;
}
