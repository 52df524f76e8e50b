/* A number that is closed and at once opened again as something else, thousands of times, while other threads do the
 * same: nothing that was known of the old descriptor may be believed of the new one. */
#include "fds.h"
#include <dirent.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

enum { WORKERS = 4, ROUNDS = 800, KINDS = 9, ENDS = 6 };

/* A worker and its partner; the worker names a descriptor, the partner makes the worker's one readable. */
struct worker {
    int me;
    int orders[2];
    pthread_t partner;
};

struct order {
    int fd;
    int size; /* bytes to write */
};

static void *partner_body(void *arg)
{
    struct worker *worker = arg;
    struct order order;
    static const uint64_t ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    while (read_all(worker->orders[0], &order, sizeof order) == sizeof order) {
        if (order.size % 3 == 0)
            sched_yield();
        CHECK_EQ(write(order.fd, ones, (size_t)order.size), order.size);
    }
    return NULL;
}

static void ask(struct worker *worker, int fd, int size)
{
    struct order order = {fd, size};
    write_all(worker->orders[1], &order, sizeof order);
}

/* Closes in one of the ways in which programs close. */
static void end(int fd, int how)
{
    switch (how % ENDS) {
    case 0:
        CHECK_SYS(close(fd));
        break;
    case 1: {
        FILE *file = fdopen(fd, (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY ? "w" : "r");
        CHECK(file != NULL);
        CHECK_EQ(fclose(file), 0);
        break;
    }
    case 2: {
        int null = open("/dev/null", O_RDONLY);
        CHECK_EQ(dup2(null, fd), fd);
        CHECK_SYS(close(null));
        CHECK_SYS(close(fd));
        break;
    }
    case 3:
        CHECK_SYS(close_range((unsigned)fd, (unsigned)fd, 0));
        break;
    case 4:
        CHECK_SYS(syscall(SYS_close, fd));
        break;
    case 5: {
        int null = open("/dev/null", O_RDONLY);
        CHECK_EQ(dup3(null, fd, O_CLOEXEC), fd);
        CHECK_SYS(close(null));
        CHECK_SYS(close(fd));
        break;
    }
    }
}

static void use(struct worker *worker, int kind, int round)
{
    char bytes[64];
    int fds[2], size = round % 7 + 1;
    uint64_t number;
    switch (kind % KINDS) {
    case 0:
        CHECK_SYS(pipe(fds));
        ask(worker, fds[1], size);
        CHECK_EQ(read_all(fds[0], bytes, (size_t)size), size);
        break;
    case 1:
        unix_pair(fds);
        ask(worker, fds[1], size);
        CHECK_EQ(recv(fds[0], bytes, (size_t)size, MSG_WAITALL), size);
        break;
    case 2:
        tcp_pair(fds);
        ask(worker, fds[1], size);
        CHECK_EQ(recv(fds[0], bytes, (size_t)size, MSG_WAITALL), size);
        break;
    case 3:
        CHECK_SYS(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds));
        ask(worker, fds[1], size);
        CHECK_EQ(recv(fds[0], bytes, sizeof bytes, 0), size);
        break;
    case 4: /* non-blocking: the wait is poll's */
        CHECK_SYS(pipe2(fds, O_NONBLOCK));
        CHECK_ERRNO(read(fds[0], bytes, 1), EAGAIN);
        ask(worker, fds[1], size);
        for (int have = 0; have < size;) {
            struct pollfd watch = {fds[0], POLLIN, 0};
            CHECK_EQ(poll(&watch, 1, -1), 1);
            CHECK_EQ(watch.revents, POLLIN);
            ssize_t n = read(fds[0], bytes, sizeof bytes);
            CHECK(n > 0);
            have += (int)n;
        }
        break;
    case 5:
        fds[0] = eventfd(0, 0);
        CHECK_SYS(fds[0]);
        fds[1] = dup(fds[0]);
        ask(worker, fds[1], 8);
        CHECK_EQ(read(fds[0], &number, 8), 8);
        CHECK_EQ(number, 1);
        break;
    case 6: {
        struct itimerspec soon = {.it_value = {0, 20000}};
        fds[0] = timerfd_create(CLOCK_MONOTONIC, 0);
        fds[1] = open("/", O_RDONLY | O_DIRECTORY);
        CHECK_SYS(timerfd_settime(fds[0], 0, &soon, NULL));
        CHECK_EQ(read(fds[0], &number, 8), 8);
        CHECK_EQ(number, 1);
        break;
    }
    case 7: /* a file, whose reads never wait */
        fds[0] = temp_file();
        fds[1] = open("/dev/zero", O_RDONLY);
        CHECK_EQ(read(fds[0], bytes, 1), 0);
        CHECK_EQ(read(fds[1], bytes, 64), 64);
        break;
    case 8: { /* a socket with a time limit that runs out */
        unix_pair(fds);
        struct timeval span = {0, 1000};
        CHECK_SYS(setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &span, sizeof span));
        CHECK_ERRNO(recv(fds[0], bytes, 1, 0), EAGAIN);
        break;
    }
    }
    end(fds[0], round + worker->me);
    end(fds[1], round / ENDS);
}

static void *worker_body(void *arg)
{
    struct worker *worker = arg;
    unsigned state = (unsigned)worker->me + 1;
    CHECK_SYS(pipe(worker->orders));
    worker->partner = start(partner_body, worker);
    for (int round = 0; round < ROUNDS; round++) {
        state = state * 1664525u + 1013904223u;
        use(worker, (int)(state >> 20), round);
    }
    CHECK_SYS(close(worker->orders[1]));
    join(worker->partner);
    CHECK_SYS(close(worker->orders[0]));
    return NULL;
}

static void any_kind_after_any_kind(void)
{
    struct worker workers[WORKERS];
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        workers[i].me = i;
        threads[i] = start(worker_body, &workers[i]);
    }
    for (int i = 0; i < WORKERS; i++)
        join(threads[i]);
}

/* The very same number, known to be so: what was non-blocking waits now, what had a limit has none, and so on. */
static void the_same_number(void)
{
    for (int round = 0; round < 300; round++) {
        int fds[2], number;
        char byte;
        CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds));
        number = fds[0];
        CHECK_ERRNO(read(number, &byte, 1), EAGAIN);
        close_pair(fds);
        CHECK_SYS(pipe(fds));
        CHECK_EQ(fds[0], number);
        pthread_t writer = later(0, put_byte, fds[1]);
        CHECK_EQ(read(number, &byte, 1), 1);
        join(writer);
        close_pair(fds);
        unix_pair(fds);
        CHECK_EQ(fds[0], number);
        set_timeout(number, SO_RCVTIMEO, 1);
        CHECK_ERRNO(recv(number, &byte, 1, 0), EAGAIN);
        close_pair(fds);
        unix_pair(fds);
        CHECK_EQ(fds[0], number);
        writer = later(2, put_byte, fds[1]);
        CHECK_EQ(recv(number, &byte, 1, 0), 1);
        join(writer);
        /* Readiness that nobody consumed must not be inherited either. */
        CHECK_EQ(write(fds[1], "unread", 6), 6);
        CHECK_EQ(read(number, &byte, 1), 1);
        close_pair(fds);
        CHECK_SYS(pipe(fds));
        CHECK_EQ(fds[0], number);
        writer = later(1, put_byte, fds[1]);
        CHECK_EQ(read(number, &byte, 1), 1);
        join(writer);
        close_pair(fds);
    }
}

/* Closed and opened by libc on its own, which goes through no symbol of ours. */
static void behind_the_back(void)
{
    for (int round = 0; round < 300; round++) {
        int fds[2], number;
        char byte;
        CHECK_SYS(pipe(fds));
        number = fds[0];
        pthread_t writer = later(0, put_byte, fds[1]);
        CHECK_EQ(read(number, &byte, 1), 1);
        join(writer);
        FILE *file = fdopen(number, "r");
        CHECK_EQ(fclose(file), 0);
        DIR *dir = opendir("/");
        CHECK_EQ(dirfd(dir), number);
        struct pollfd watch = {number, POLLIN, 0};
        CHECK_EQ(poll(&watch, 1, -1), 1);
        CHECK_ERRNO(read(number, &byte, 1), EISDIR);
        CHECK(readdir(dir) != NULL);
        CHECK_EQ(closedir(dir), 0);
        file = fopen("/dev/zero", "r");
        CHECK_EQ(fileno(file), number);
        CHECK_EQ(read(number, &byte, 1), 1);
        CHECK_EQ(fclose(file), 0);
        number = open("/dev/null", O_RDONLY);
        CHECK_EQ(read(number, &byte, 1), 0);
        CHECK_SYS(syscall(SYS_close, number));
        int again[2];
        CHECK_SYS(syscall(SYS_pipe2, again, 0));
        CHECK_EQ(again[0], number);
        writer = later(0, put_byte, again[1]);
        CHECK_EQ(read(number, &byte, 1), 1);
        join(writer);
        close_pair(again);
        CHECK_SYS(close(fds[1]));
    }
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    RUN(the_same_number);
    RUN(behind_the_back);
    RUN(any_kind_after_any_kind);
    return 0;
}
