// pthread_attr_*: defaults, every getter and setter, the values they refuse.
#include "check.h"

#include <signal.h>
#include <sys/resource.h>

static void *nothing(void *arg)
{
    return arg;
}

int main(void)
{
    pthread_attr_t attr;
    int number;
    size_t size;
    void *address;
    struct sched_param param;
    CHECK_OK(pthread_attr_init(&attr));

    /* Detach state. */
    CHECK_OK(pthread_attr_getdetachstate(&attr, &number));
    CHECK_EQ(number, PTHREAD_CREATE_JOINABLE);
    CHECK_OK(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED));
    CHECK_OK(pthread_attr_getdetachstate(&attr, &number));
    CHECK_EQ(number, PTHREAD_CREATE_DETACHED);
    CHECK_ERR(pthread_attr_setdetachstate(&attr, 99), EINVAL);
    CHECK_OK(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_JOINABLE));

    /* Guard size: a page by default; kept as given. */
    CHECK_OK(pthread_attr_getguardsize(&attr, &size));
    CHECK_EQ(size, sysconf(_SC_PAGESIZE));
    CHECK_OK(pthread_attr_setguardsize(&attr, 10000));
    CHECK_OK(pthread_attr_getguardsize(&attr, &size));
    CHECK_EQ(size, 10000);
    CHECK(pthread_equal(pthread_self(), pthread_self()));
    pthread_t thread;
    CHECK_OK(pthread_create(&thread, &attr, nothing, &size));
    CHECK(join(thread) == &size);
    CHECK_OK(pthread_attr_setguardsize(&attr, 0));
    CHECK_OK(pthread_attr_getguardsize(&attr, &size));
    CHECK_EQ(size, 0);
    CHECK_OK(pthread_create(&thread, &attr, nothing, &size));
    CHECK(join(thread) == &size);

    /* Stack size: that of new threads by default; at least the minimum. */
    pthread_attr_t usual;
    size_t usual_size;
    CHECK_OK(pthread_getattr_default_np(&usual));
    CHECK_OK(pthread_attr_getstacksize(&usual, &usual_size));
    CHECK_OK(pthread_attr_getstacksize(&attr, &size));
    CHECK_EQ(size, usual_size);
    struct rlimit limit;
    CHECK_SYS(getrlimit(RLIMIT_STACK, &limit));
    if (limit.rlim_cur != RLIM_INFINITY)
        CHECK_EQ(size, (limit.rlim_cur + 4095) & -4096ull);
    CHECK_OK(pthread_attr_setstacksize(&attr, 1 << 20));
    CHECK_OK(pthread_attr_getstacksize(&attr, &size));
    CHECK_EQ(size, 1 << 20);
    CHECK_ERR(pthread_attr_setstacksize(&attr, 1000), EINVAL);
    CHECK_ERR(pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN - 1), EINVAL);
    CHECK_OK(pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN));

    /* Stack. */
    static char stack[1 << 18] __attribute__((aligned(4096)));
    CHECK_ERR(pthread_attr_setstack(&attr, stack, 1000), EINVAL);
    CHECK_OK(pthread_attr_setstack(&attr, stack, sizeof stack));
    CHECK_OK(pthread_attr_getstack(&attr, &address, &size));
    CHECK(address == stack);
    CHECK_EQ(size, sizeof stack);

    /* Scheduling. */
    CHECK_OK(pthread_attr_getinheritsched(&attr, &number));
    CHECK_EQ(number, PTHREAD_INHERIT_SCHED);
    CHECK_OK(pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED));
    CHECK_OK(pthread_attr_getinheritsched(&attr, &number));
    CHECK_EQ(number, PTHREAD_EXPLICIT_SCHED);
    CHECK_ERR(pthread_attr_setinheritsched(&attr, 99), EINVAL);
    CHECK_OK(pthread_attr_getschedpolicy(&attr, &number));
    CHECK_EQ(number, SCHED_OTHER);
    CHECK_OK(pthread_attr_getschedparam(&attr, &param));
    CHECK_EQ(param.sched_priority, 0);
    param.sched_priority = 1;
    CHECK_ERR(pthread_attr_setschedparam(&attr, &param), EINVAL);
    CHECK_OK(pthread_attr_setschedpolicy(&attr, SCHED_RR));
    CHECK_OK(pthread_attr_getschedpolicy(&attr, &number));
    CHECK_EQ(number, SCHED_RR);
    CHECK_OK(pthread_attr_setschedparam(&attr, &param));
    CHECK_OK(pthread_attr_getschedparam(&attr, &param));
    CHECK_EQ(param.sched_priority, 1);
    param.sched_priority = 1000;
    CHECK_ERR(pthread_attr_setschedparam(&attr, &param), EINVAL);
    CHECK_ERR(pthread_attr_setschedpolicy(&attr, 99), EINVAL);
    CHECK_OK(pthread_attr_getscope(&attr, &number));
    CHECK_EQ(number, PTHREAD_SCOPE_SYSTEM);
    CHECK_ERR(pthread_attr_setscope(&attr, PTHREAD_SCOPE_PROCESS), ENOTSUP);
    CHECK_ERR(pthread_attr_setscope(&attr, 99), EINVAL);
    CHECK_OK(pthread_attr_setscope(&attr, PTHREAD_SCOPE_SYSTEM));

    /* An explicit policy that everybody may have. */
    CHECK_OK(pthread_attr_destroy(&attr));
    CHECK_OK(pthread_attr_init(&attr));
    CHECK_OK(pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED));
    CHECK_OK(pthread_create(&thread, &attr, nothing, &number));
    CHECK(join(thread) == &number);

    /* Affinity. */
    cpu_set_t cpus, got;
    CHECK_SYS(sched_getaffinity(0, sizeof cpus, &cpus));
    CHECK_OK(pthread_attr_setaffinity_np(&attr, sizeof cpus, &cpus));
    CHECK_OK(pthread_attr_getaffinity_np(&attr, sizeof got, &got));
    CHECK(CPU_EQUAL(&cpus, &got));
    CHECK_OK(pthread_create(&thread, &attr, nothing, &cpus));
    CHECK(join(thread) == &cpus);

    /* Signal mask. */
    sigset_t mask;
    CHECK_EQ(pthread_attr_getsigmask_np(&attr, &mask), PTHREAD_ATTR_NO_SIGMASK_NP);
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    CHECK_OK(pthread_attr_setsigmask_np(&attr, &mask));
    sigset_t other;
    sigfillset(&other);
    CHECK_OK(pthread_attr_getsigmask_np(&attr, &other));
    CHECK_EQ(sigismember(&other, SIGUSR1), 1);
    CHECK_EQ(sigismember(&other, SIGUSR2), 0);

    /* The default can be changed; setstack is no default. */
    CHECK_OK(pthread_attr_setstacksize(&usual, 2 << 20));
    CHECK_OK(pthread_setattr_default_np(&usual));
    CHECK_OK(pthread_attr_destroy(&usual));
    CHECK_OK(pthread_getattr_default_np(&usual));
    CHECK_OK(pthread_attr_getstacksize(&usual, &size));
    CHECK_EQ(size, 2 << 20);
    thread = start(nothing, &size);
    CHECK(join(thread) == &size);
    CHECK_OK(pthread_attr_setstack(&usual, stack, sizeof stack));
    CHECK_ERR(pthread_setattr_default_np(&usual), EINVAL);

    CHECK_OK(pthread_attr_destroy(&attr));
    puts("attributes: ok");
    return 0;
}
