// A handler without SA_RESTART ends the initial thread's sem_wait and sem_timedwait with EINTR; one with it does not.
#include "check.h"

#include <semaphore.h>
#include <signal.h>
#include <sys/time.h>

static sem_t sem;
static volatile sig_atomic_t handled;

static void tick(int signal_number)
{
    (void)signal_number;
    handled++;
}

static void alarm_in(int ms)
{
    struct itimerval when = {{0, 0}, {0, ms * 1000}};
    CHECK_SYS(setitimer(ITIMER_REAL, &when, NULL));
}

static void *posts(void *arg)
{
    sleep_ms(100);
    CHECK_SYS(sem_post(&sem));
    return arg;
}

int main(void)
{
    struct sigaction action = {.sa_handler = tick};
    struct timespec late;
    CHECK_SYS(sem_init(&sem, 0, 0));
    join(start(posts, NULL));
    CHECK_SYS(sem_wait(&sem));

    CHECK_SYS(sigaction(SIGALRM, &action, NULL));
    alarm_in(20);
    CHECK_ERRNO(sem_wait(&sem), EINTR);
    alarm_in(20);
    late = in_ms(CLOCK_REALTIME, 60000);
    CHECK_ERRNO(sem_timedwait(&sem, &late), EINTR);
    CHECK_EQ(handled, 2);
    CHECK_ERRNO(sem_trywait(&sem), EAGAIN);

    action.sa_flags = SA_RESTART;
    CHECK_SYS(sigaction(SIGALRM, &action, NULL));
    pthread_t poster = start(posts, NULL);
    alarm_in(20);
    CHECK_SYS(sem_wait(&sem));
    join(poster);
    CHECK_EQ(handled, 3);
    puts("interrupted semaphores: ok");
    return 0;
}
