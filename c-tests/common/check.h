/* What the test programs share: checks that say where they failed, and shorthands for threads and time.
 *
 * A check that fails prints its place, the expression and the values to stdout, then ends the process with
 * status 1, whichever thread it is on. Includable from C and C++, and from several files of one program. */
#ifndef CHECK_H
#define CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHECK_UNUSED __attribute__((unused))

#define CHECK_FAIL(...)                                                                            \
    do {                                                                                           \
        printf("%s:%d: ", __FILE__, __LINE__);                                                     \
        printf(__VA_ARGS__);                                                                       \
        printf("\n");                                                                              \
        fflush(stdout);                                                                            \
        _exit(1);                                                                                  \
    } while (0)

/* The condition holds. */
#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond))                                                                               \
            CHECK_FAIL("CHECK failed: %s", #cond);                                                 \
    } while (0)

/* Two integers are equal. */
#define CHECK_EQ(got, want)                                                                        \
    do {                                                                                           \
        long long got_ = (long long)(got), want_ = (long long)(want);                              \
        if (got_ != want_)                                                                         \
            CHECK_FAIL("%s is %lld, not %s = %lld", #got, got_, #want, want_);                     \
    } while (0)

/* Two strings are equal. */
#define CHECK_STR(got, want)                                                                       \
    do {                                                                                           \
        const char *got_ = (got), *want_ = (want);                                                 \
        if (strcmp(got_, want_) != 0)                                                              \
            CHECK_FAIL("%s is \"%s\", not \"%s\"", #got, got_, want_);                             \
    } while (0)

/* A call in the manner of pthreads returns 0, or the error given. */
#define CHECK_OK(call) CHECK_ERR(call, 0)
#define CHECK_ERR(call, want)                                                                      \
    do {                                                                                           \
        int got_ = (call);                                                                         \
        if (got_ != (want))                                                                        \
            CHECK_FAIL("%s returned %d (%s), not %s", #call, got_, strerror(got_), #want);         \
    } while (0)

/* A call in the manner of system calls does not fail; it fails with -1 and the errno given. */
#define CHECK_SYS(call)                                                                            \
    do {                                                                                           \
        if ((long long)(call) < 0)                                                                 \
            CHECK_FAIL("%s failed: %s", #call, strerror(errno));                                   \
    } while (0)
#define CHECK_ERRNO(call, want)                                                                    \
    do {                                                                                           \
        errno = 0;                                                                                 \
        long long got_ = (long long)(call);                                                        \
        int errno_ = errno;                                                                        \
        if (got_ != -1 || errno_ != (want))                                                        \
            CHECK_FAIL("%s returned %lld with errno %d (%s), not -1 with %s", #call, got_, errno_, \
                       strerror(errno_), #want);                                                   \
    } while (0)

/* Threads: start one, or die; join one, and have its value. */
CHECK_UNUSED static inline pthread_t start(void *(*routine)(void *), void *arg)
{
    pthread_t thread;
    CHECK_OK(pthread_create(&thread, NULL, routine, arg));
    return thread;
}

CHECK_UNUSED static inline void *join(pthread_t thread)
{
    void *value = NULL;
    CHECK_OK(pthread_join(thread, &value));
    return value;
}

/* Time: nanoseconds on the monotonic clock, a deadline some milliseconds from now, a sleep. */
CHECK_UNUSED static inline int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

CHECK_UNUSED static inline struct timespec in_ms(clockid_t clock, long ms)
{
    struct timespec when;
    clock_gettime(clock, &when);
    when.tv_sec += ms / 1000;
    when.tv_nsec += ms % 1000 * 1000000;
    if (when.tv_nsec >= 1000000000) {
        when.tv_sec++;
        when.tv_nsec -= 1000000000;
    } else if (when.tv_nsec < 0) {
        when.tv_sec--;
        when.tv_nsec += 1000000000;
    }
    return when;
}

CHECK_UNUSED static inline void sleep_ms(long ms)
{
    struct timespec span = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&span, &span) == -1 && errno == EINTR)
        ;
}

/* At least this many milliseconds have gone by since `since` (of now_ns). */
#define CHECK_LASTED(since, ms)                                                                    \
    do {                                                                                           \
        int64_t lasted_ = now_ns() - (since);                                                      \
        if (lasted_ < (int64_t)(ms)*1000000)                                                       \
            CHECK_FAIL("lasted %lld ns, which is less than %d ms", (long long)lasted_, (int)(ms)); \
    } while (0)

#endif
