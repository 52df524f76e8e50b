// Handlers that do what POSIX allows them (sem_post, write to a pipe) interrupt threads at any place, also
// inside the calls that use the same semaphore and pipe; nothing is lost and nobody hangs.
// timeout: 120
#include "check.h"

#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <unistd.h>

enum { TICKS = 3000, WORKERS_HERE = 8 };
static sem_t ticks, turn;
static int pipe_fds[2];
static atomic_int handled, seen, stop;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

static void tick(int signal_number)
{
    int saved = errno;
    (void)signal_number;
    if (atomic_fetch_add(&handled, 1) < TICKS) {
        CHECK_SYS(sem_post(&ticks));
        CHECK_EQ(write(pipe_fds[1], "t", 1), 1);
    }
    errno = saved;
}

static void *counts(void *arg)
{
    for (int i = 0; i < TICKS; i++) {
        while (sem_wait(&ticks) != 0)
            CHECK_EQ(errno, EINTR);
        atomic_fetch_add(&seen, 1);
    }
    return arg;
}

static void *reads(void *arg)
{
    char byte;
    for (int i = 0; i < TICKS; i++) {
        ssize_t got;
        while ((got = read(pipe_fds[0], &byte, 1)) < 0)
            CHECK_EQ(errno, EINTR);
        CHECK_EQ(got, 1);
    }
    return arg;
}

static void *works(void *arg)
{
    while (!atomic_load(&stop)) {
        CHECK_SYS(sem_post(&turn));
        while (sem_wait(&turn) != 0)
            CHECK_EQ(errno, EINTR);
        CHECK_OK(pthread_mutex_lock(&mutex));
        CHECK_OK(pthread_cond_broadcast(&cond));
        CHECK_OK(pthread_mutex_unlock(&mutex));
        sched_yield();
    }
    return arg;
}

int main(void)
{
    pthread_t counter, reader, workers[WORKERS_HERE];
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART}, old;
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    CHECK_SYS(sem_init(&ticks, 0, 0));
    CHECK_SYS(sem_init(&turn, 0, 0));
    CHECK_SYS(pipe(pipe_fds));
    CHECK_SYS(sigaction(SIGALRM, &action, NULL)); /* before the first thread */
    counter = start(counts, NULL);
    reader = start(reads, NULL);
    for (int i = 0; i < WORKERS_HERE; i++)
        workers[i] = start(works, NULL);
    CHECK_SYS(sigaction(SIGALRM, NULL, &old));
    CHECK(old.sa_handler == tick && old.sa_flags == (SA_RESTART | (old.sa_flags & 0x04000000)));
    CHECK_SYS(setitimer(ITIMER_REAL, &often, NULL));
    join(counter);
    join(reader);
    CHECK_SYS(setitimer(ITIMER_REAL, &never, NULL));
    atomic_store(&stop, 1);
    for (int i = 0; i < WORKERS_HERE; i++)
        join(workers[i]);
    CHECK_EQ(atomic_load(&seen), TICKS);

    /* SA_RESETHAND, SA_SIGINFO and SIG_IGN are shown and obeyed. */
    action.sa_flags = (int)SA_RESETHAND;
    CHECK_SYS(sigaction(SIGUSR1, &action, NULL));
    raise(SIGUSR1);
    CHECK_SYS(sigaction(SIGUSR1, NULL, &old));
    CHECK(old.sa_handler == SIG_DFL);
    CHECK(signal(SIGUSR1, SIG_IGN) == SIG_DFL);
    raise(SIGUSR1);
    CHECK(signal(SIGUSR1, tick) == SIG_IGN);
    raise(SIGUSR1);
    CHECK(signal(SIGUSR1, SIG_DFL) == tick);
    CHECK(signal(SIGKILL, tick) == SIG_ERR && errno == EINVAL);
    puts("signal handlers: ok");
    return 0;
}
