/*
 * preloom.h: what POSIX has no word for.
 *
 * Every coroutine is a POSIX thread: make it with pthread_create, wait with pthread_join, lock with
 * pthread_mutex_lock, talk with read and write. Linking with -lpreloom does the same as starting the
 * program by `preloom` or with LD_PRELOAD. This header only adds what a program may want to know.
 *
 * All functions may be called from any thread, at any time, also before the first pthread_create. Usable
 * from C99 and C++.
 */
#ifndef PRELOOM_H
#define PRELOOM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header, as preloom_version() gives it for the library. */
#define PRELOOM_VERSION "0.1.0"

/* Counters since the start of the process. They are read one after the other while others count on. */
struct preloom_stats {
    uint64_t workers;  /* schedulers, each run by one kernel thread; 0 before the first pthread_create */
    uint64_t created;  /* coroutines ever made */
    uint64_t live;     /* coroutines that have not ended */
    uint64_t switches; /* switches to a coroutine */
    uint64_t polls;    /* calls of epoll_wait */
    uint64_t events;   /* events that they gave */
    uint64_t steals;   /* coroutines that moved to an idle scheduler */
    uint64_t handoffs; /* schedulers that moved to another kernel thread because theirs was stuck */
    uint64_t carriers; /* kernel threads that run schedulers, or could */
};

/*
 * The version of the library: "MAJOR.MINOR.PATCH". The string is static.
 */
const char *preloom_version(void);

/*
 * Whether the calling thread is a coroutine: 1, or 0 for a kernel thread (the initial thread is one, and
 * all are when the program runs with PRELOOM_THREADS=native).
 */
int preloom_is_green(void);

/*
 * Gives way to every coroutine that is ready. In a kernel thread it is sched_yield(). Never fails.
 */
void preloom_yield(void);

/*
 * The calling coroutine's number: unique since the start of the process, counted from 1 in the order of
 * creation. 0 in a kernel thread.
 */
uint64_t preloom_id(void);

/*
 * Fills the first `size` bytes of *stats, where `size` is sizeof(struct preloom_stats) as the caller was
 * compiled with; fields that this library does not know are set to 0.
 *
 * Returns 0, or an error number: EINVAL if stats is NULL or size is 0.
 */
int preloom_stats(struct preloom_stats *stats, size_t size);

#ifdef __cplusplus
}
#endif

#endif
