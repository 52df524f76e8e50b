/* A handler without SA_RESTART interrupts main's own waits, while another thread goes on waiting undisturbed. */
#include "fds.h"
#include <sys/select.h>
#include <sys/time.h>

static volatile sig_atomic_t signals;

static void on_alarm(int signal)
{
    (void)signal;
    signals++;
}

static void handle(int flags)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = flags};
    sigaction(SIGALRM, &action, NULL);
}

static void ring_in(long ms)
{
    struct itimerval when = {.it_value = {0, ms * 1000}};
    signals = 0;
    CHECK_SYS(setitimer(ITIMER_REAL, &when, NULL));
}

#define INTERRUPTED(call)                                                                          \
    do {                                                                                           \
        int64_t begun = now_ns();                                                                  \
        ring_in(30);                                                                               \
        CHECK_ERRNO(call, EINTR);                                                                  \
        CHECK_LASTED(begun, 25);                                                                   \
        CHECK_EQ(signals, 1);                                                                      \
    } while (0)

static void *wait_undisturbed(void *arg)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    get_byte(*(int *)arg);
    return NULL;
}

int main(void)
{
    int fds[2], quiet[2], listener = tcp_listener(1);
    char byte;
    fd_set reads;
    CHECK_SYS(pipe(fds));
    CHECK_SYS(pipe(quiet));
    pthread_t other = start(wait_undisturbed, &quiet[0]);
    sleep_ms(20);

    handle(0);
    INTERRUPTED(read(fds[0], &byte, 1));
    INTERRUPTED(accept(listener, NULL, NULL));
    struct pollfd watch = {fds[0], POLLIN, 0};
    INTERRUPTED(poll(&watch, 1, -1));
    INTERRUPTED(poll(NULL, 0, 5000));
    INTERRUPTED(ppoll(&watch, 1, NULL, NULL));
    FD_ZERO(&reads);
    FD_SET(fds[0], &reads);
    INTERRUPTED(select(fds[0] + 1, &reads, NULL, NULL, NULL));
    int pair[2];
    unix_pair(pair);
    INTERRUPTED(recv(pair[0], &byte, 1, 0));
    INTERRUPTED(recv(pair[0], &byte, 1, MSG_WAITALL));
    printf("interrupted without SA_RESTART\n");

    struct timespec span = {5, 0}, rest = {0, 0};
    INTERRUPTED(nanosleep(&span, &rest));
    CHECK(rest.tv_sec == 4 && rest.tv_nsec > 0);
    ring_in(30);
    CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, &span, &rest), EINTR);
    CHECK_EQ(rest.tv_sec, 4);
    ring_in(30);
    CHECK_EQ(sleep(3), 2);
    INTERRUPTED(usleep(900000));
    printf("sleeps tell what is left\n");

    handle(SA_RESTART);
    ring_in(20);
    pthread_t writer = later(60, put_byte, fds[1]);
    CHECK_EQ(read(fds[0], &byte, 1), 1);
    CHECK_EQ(signals, 1);
    join(writer);
    INTERRUPTED(poll(&watch, 1, -1));
    INTERRUPTED(nanosleep(&span, NULL));
    printf("SA_RESTART restarts read, and neither poll nor sleep\n");

    handle(0);
    static char big[1 << 20];
    int room = fcntl(fds[1], F_GETPIPE_SZ);
    ring_in(30);
    CHECK_EQ(write(fds[1], big, sizeof big), room);
    CHECK_EQ(signals, 1);
    printf("a part that was written counts\n");

    put_byte(quiet[1]);
    join(other);
    close_pair(pair);
    close_pair(fds);
    close_pair(quiet);
    CHECK_SYS(close(listener));
    return 0;
}
