/* poll: time limits, every event, invalid, duplicate and many descriptors, several threads on one. */
#include "many.h"

#ifndef POLL
#define POLL(set, count, ms) poll(set, count, ms)
#endif

static struct pollfd set[DESCRIPTORS + 2];

static int one(int fd, short events, int ms, short *revents)
{
    struct pollfd watch = {fd, events, 0x7777};
    int n = POLL(&watch, 1, ms);
    CHECK_EQ(watch.fd, fd);
    CHECK_EQ(watch.events, events);
    *revents = watch.revents;
    return n;
}

#define EXPECT(fd, wanted, ms, got)                                                                \
    do {                                                                                           \
        short revents_;                                                                            \
        CHECK_EQ(one(fd, wanted, ms, &revents_), (got) != 0);                                      \
        CHECK_EQ(revents_, got);                                                                   \
    } while (0)

static void as_a_sleep(void)
{
    int64_t begun = now_ns();
    CHECK_EQ(POLL(NULL, 0, 30), 0);
    CHECK_LASTED(begun, 30);
    CHECK_EQ(POLL(NULL, 0, 0), 0);
    struct pollfd ignored[2] = {{-1, POLLIN, 7}, {-5, POLLOUT, 7}};
    begun = now_ns();
    CHECK_EQ(POLL(ignored, 2, 30), 0);
    CHECK_LASTED(begun, 30);
    CHECK_EQ(ignored[0].revents, 0);
    CHECK_EQ(ignored[1].revents, 0);
}

static void pipes(void)
{
    int fds[2];
    CHECK_SYS(pipe(fds));
    EXPECT(fds[0], POLLIN, 0, 0);
    int64_t begun = now_ns();
    EXPECT(fds[0], POLLIN, 30, 0);
    CHECK_LASTED(begun, 30);
    EXPECT(fds[1], POLLOUT, -1, POLLOUT);
    EXPECT(fds[1], POLLIN | POLLOUT, -1, POLLOUT);
    EXPECT(fds[1], POLLIN, 10, 0);
    pthread_t writer = later(20, put_byte, fds[1]);
    EXPECT(fds[0], POLLIN, -1, POLLIN);
    EXPECT(fds[0], POLLIN | POLLOUT, 5000, POLLIN);
    EXPECT(fds[0], POLLIN | POLLRDNORM, 0, POLLIN | POLLRDNORM);
    EXPECT(fds[0], 0, 10, 0);
    join(writer);
    get_byte(fds[0]);
    EXPECT(fds[0], POLLIN, 0, 0);
    pthread_t closer = later(20, close_it, fds[1]);
    EXPECT(fds[0], 0, -1, POLLHUP);
    join(closer);
    EXPECT(fds[0], POLLIN, -1, POLLHUP);
    CHECK_SYS(close(fds[0]));

    CHECK_SYS(pipe(fds));
    closer = later(20, close_it, fds[0]);
    EXPECT(fds[1], 0, -1, POLLERR);
    join(closer);
    EXPECT(fds[1], POLLOUT, -1, POLLOUT | POLLERR);
    CHECK_SYS(close(fds[1]));
}

static void a_full_pipe(void)
{
    int fds[2];
    static char page[4096];
    CHECK_SYS(pipe(fds));
    int room = fcntl(fds[1], F_GETPIPE_SZ);
    while (room > 0)
        room -= (int)write(fds[1], page, sizeof page);
    EXPECT(fds[1], POLLOUT, 20, 0);
    pthread_t reader = later(20, get_byte, fds[0]);
    EXPECT(fds[1], POLLOUT, 60, 0); /* a page is the least that counts as room */
    join(reader);
    CHECK_EQ(read_all(fds[0], page, 4095), 4095);
    EXPECT(fds[1], POLLOUT, -1, POLLOUT);
    close_pair(fds);
}

static void streams(void)
{
    for (int tcp = 0; tcp < 2; tcp++) {
        int fds[2];
        (tcp ? tcp_pair : unix_pair)(fds);
        EXPECT(fds[0], POLLIN | POLLOUT, -1, POLLOUT);
        EXPECT(fds[0], POLLIN | POLLRDHUP | POLLPRI, 20, 0);
        pthread_t writer = later(20, put_byte, fds[1]);
        EXPECT(fds[0], POLLIN | POLLRDHUP, -1, POLLIN);
        join(writer);
        get_byte(fds[0]);
        pthread_t closer = later(20, shut_write, fds[1]);
        EXPECT(fds[0], POLLRDHUP, -1, POLLRDHUP);
        join(closer);
        EXPECT(fds[0], POLLIN | POLLOUT | POLLRDHUP, -1, POLLIN | POLLOUT | POLLRDHUP);
        EXPECT(fds[0], 0, 10, 0);
        CHECK_SYS(close(fds[1]));
        CHECK_SYS(shutdown(fds[0], SHUT_WR));
        EXPECT(fds[0], 0, -1, POLLHUP);
        CHECK_SYS(close(fds[0]));
    }
}

static void a_reset(void)
{
    int fds[2];
    tcp_pair(fds);
    pthread_t closer = later(20, reset_it, fds[1]);
    EXPECT(fds[0], POLLIN | POLLRDHUP, -1, POLLIN | POLLRDHUP | POLLERR | POLLHUP);
    join(closer);
    CHECK_SYS(close(fds[0]));
}

static void listeners(void)
{
    int listener = tcp_listener(4);
    EXPECT(listener, POLLIN | POLLOUT, 20, 0);
    int client = tcp_connect(port_of(listener));
    EXPECT(listener, POLLIN | POLLOUT, -1, POLLIN);
    int fd = accept(listener, NULL, NULL);
    EXPECT(listener, POLLIN, 0, 0);
    CHECK_SYS(close(fd));
    CHECK_SYS(close(client));
    CHECK_SYS(close(listener));
}

static void unconnected(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT(fd, POLLIN | POLLOUT, -1, POLLOUT | POLLHUP);
    CHECK_SYS(close(fd));
    fd = bound(SOCK_DGRAM);
    EXPECT(fd, POLLIN | POLLOUT, -1, POLLOUT);
    EXPECT(fd, POLLIN, 10, 0);
    CHECK_SYS(close(fd));
}

static void files_are_always_ready(void)
{
    int fd = temp_file(), dir = open("/", O_RDONLY | O_DIRECTORY), null = open("/dev/null", O_RDWR);
    EXPECT(fd, POLLIN | POLLOUT, -1, POLLIN | POLLOUT);
    EXPECT(fd, POLLPRI, 10, 0);
    EXPECT(dir, POLLIN, -1, POLLIN);
    EXPECT(null, POLLIN | POLLOUT, -1, POLLIN | POLLOUT);
    CHECK_SYS(close(fd));
    CHECK_SYS(close(dir));
    CHECK_SYS(close(null));
}

static void invalid_ones(void)
{
    int fds[2];
    CHECK_SYS(pipe(fds));
    int gone = dup(fds[0]);
    CHECK_SYS(close(gone));
    EXPECT(gone, POLLIN, -1, POLLNVAL);
    EXPECT(1000000, 0, -1, POLLNVAL);
    struct pollfd some[3] = {{fds[0], POLLIN, 7}, {gone, POLLIN, 7}, {fds[1], POLLOUT, 7}};
    CHECK_EQ(POLL(some, 3, -1), 2);
    CHECK_EQ(some[0].revents, 0);
    CHECK_EQ(some[1].revents, POLLNVAL);
    CHECK_EQ(some[2].revents, POLLOUT);
    volatile nfds_t too_many = 1u << 30;
    CHECK_ERRNO(POLL(some, too_many, 0), EINVAL);
    close_pair(fds);
}

static void the_same_twice(void)
{
    int fds[2];
    CHECK_SYS(pipe(fds));
    struct pollfd twice[4] = {{fds[0], POLLIN, 0}, {fds[0], POLLIN, 0}, {fds[0], 0, 0}, {fds[0], POLLRDNORM, 0}};
    pthread_t writer = later(20, put_byte, fds[1]);
    CHECK_EQ(POLL(twice, 4, -1), 3);
    CHECK_EQ(twice[0].revents, POLLIN);
    CHECK_EQ(twice[1].revents, POLLIN);
    CHECK_EQ(twice[2].revents, 0);
    CHECK_EQ(twice[3].revents, POLLRDNORM);
    join(writer);
    close_pair(fds);
}

static void many(void)
{
    for (int i = 0; i < DESCRIPTORS; i++)
        set[i] = (struct pollfd){watch_reads[i], POLLIN, 0};
    CHECK_EQ(POLL(set, DESCRIPTORS, 20), 0);
    for (int round = 0; round < 20; round++) {
        int which = (round * 379 + 11) % DESCRIPTORS;
        pthread_t writer = later(round % 4, put_byte, watch_writes[which]);
        CHECK_EQ(POLL(set, DESCRIPTORS, -1), 1);
        for (int i = 0; i < DESCRIPTORS; i++)
            CHECK_EQ(set[i].revents, i == which ? POLLIN : 0);
        join(writer);
        get_byte(watch_reads[which]);
    }
}

/* Several threads poll one descriptor; all are told. */
static int shared;

static void *poll_shared(void *arg)
{
    (void)arg;
    EXPECT(shared, POLLIN, -1, POLLIN);
    return NULL;
}

static void several_threads_on_one(void)
{
    int fds[2];
    pthread_t threads[16];
    unix_pair(fds);
    shared = fds[0];
    for (int i = 0; i < 16; i++)
        threads[i] = start(poll_shared, NULL);
    sleep_ms(20);
    put_byte(fds[1]);
    for (int i = 0; i < 16; i++)
        join(threads[i]);
    close_pair(fds);
}

static void *read_shared(void *arg)
{
    (void)arg;
    get_byte(shared);
    return NULL;
}

/* A reader and pollers of one descriptor: a poll for writing or for the other end does not take the reader's event. */
static void readers_beside_pollers(void)
{
    int fds[2];
    char byte;
    tcp_pair(fds);
    shared = fds[0];
    pthread_t reader = start(read_shared, NULL);
    EXPECT(fds[0], POLLOUT, -1, POLLOUT);
    EXPECT(fds[0], POLLRDHUP, 20, 0);
    put_byte(fds[1]);
    join(reader);
    EXPECT(fds[0], POLLIN, 0, 0);
    EXPECT(fds[0], POLLIN, 10, 0);
    pthread_t writer = later(20, put_byte, fds[1]);
    CHECK_EQ(recv(fds[0], &byte, 1, 0), 1);
    join(writer);
    close_pair(fds);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    open_many(DESCRIPTORS);
    RUN(as_a_sleep);
    RUN(pipes);
    RUN(a_full_pipe);
    RUN(streams);
    RUN(a_reset);
    RUN(listeners);
    RUN(unconnected);
    RUN(files_are_always_ready);
    RUN(invalid_ones);
    RUN(the_same_twice);
    RUN(many);
    RUN(several_threads_on_one);
    RUN(readers_beside_pollers);
    close_many(DESCRIPTORS);
    return 0;
}
