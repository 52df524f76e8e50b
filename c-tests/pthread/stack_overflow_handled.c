// A program with a SIGSEGV handler of its own on an alternate stack notices its threads' stack overflow itself.
// no-stats
// expects-stderr
#include "check.h"

#include <signal.h>

static volatile int forever = 1;
static char *stack_low;
static size_t guard_size;

static void say(const char *text)
{
    if (write(STDOUT_FILENO, text, strlen(text)) < 0)
        _exit(4);
}

static void on_segv(int signal, siginfo_t *info, void *context)
{
    (void)context;
    /* Below the stack's low end, or in the guard which counts as a part of it: no farther than one frame. */
    char *at = info->si_addr;
    say(signal == SIGSEGV ? "SIGSEGV\n" : "another signal\n");
    say(at >= stack_low - 65536 && at < stack_low + guard_size + 65536 ? "at the end of my stack\n" : "elsewhere\n");
    _exit(3);
}

__attribute__((noinline)) static int recurse(int depth)
{
    volatile char room[1000];
    room[0] = (char)depth;
    if (forever)
        return recurse(depth + 1) + room[0];
    return 0;
}

static void *overflow(void *arg)
{
    static char alternate[65536];
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    CHECK_SYS(sigaltstack(&stack, NULL));
    pthread_attr_t attr;
    size_t size;
    CHECK_OK(pthread_getattr_np(pthread_self(), &attr));
    CHECK_OK(pthread_attr_getstack(&attr, (void **)&stack_low, &size));
    CHECK_OK(pthread_attr_getguardsize(&attr, &guard_size));
    CHECK_OK(pthread_attr_destroy(&attr));
    return (void *)(long)(recurse(0) + (int)(long)arg);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    CHECK_SYS(sigaction(SIGSEGV, &action, NULL));
    join(start(overflow, NULL));
    puts("not reached");
    return 0;
}
