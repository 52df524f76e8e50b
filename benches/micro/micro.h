/* What the micro-benchmarks share: a clock, a check on results, and the one line of JSON that each prints. */
#ifndef BENCH_MICRO_H
#define BENCH_MICRO_H

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* CPU time of the whole process. These programs never idle on their one CPU, so it is what now_ns() would say on a
 * machine that nothing else uses. */
static inline double cpu_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Ends the program if a pthread call failed: a broken benchmark must not print a figure. */
static inline void check(int result, const char *what)
{
    if (result != 0) {
        fprintf(stderr, "%s: %s\n", what, strerror(result));
        exit(1);
    }
}

/* How long to measure, in nanoseconds: SECONDS on the command line, one by default. */
static inline double duration_ns(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 1.0;
    if (seconds <= 0) {
        fprintf(stderr, "usage: %s [SECONDS]\n", argv[0]);
        exit(2);
    }
    return seconds * 1e9;
}

#endif
