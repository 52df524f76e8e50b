/* Several threads wait on one descriptor: a reader beside a writer, and many of a kind. */
#include "fds.h"

enum { SIZE = 3000017 };

struct end {
    int fd;
    unsigned seed;
};

static void *write_it(void *arg)
{
    struct end *end = arg;
    char *data = malloc(SIZE);
    fill(data, SIZE, end->seed, 0);
    CHECK_EQ(write(end->fd, data, SIZE), SIZE);
    free(data);
    return NULL;
}

static void *read_it(void *arg)
{
    struct end *end = arg;
    char *data = malloc(SIZE);
    CHECK_EQ(read_all(end->fd, data, SIZE), SIZE);
    check_fill(data, SIZE, end->seed, 0);
    free(data);
    return NULL;
}

/* Both directions of one connection are full at the same time, four threads on two descriptors. */
static void both_ways(int fds[2])
{
    struct end ends[4] = {{fds[0], 1}, {fds[1], 1}, {fds[1], 2}, {fds[0], 2}};
    pthread_t threads[4];
    threads[0] = start(write_it, &ends[0]);
    threads[2] = start(write_it, &ends[2]);
    sleep_ms(20);
    threads[1] = start(read_it, &ends[1]);
    threads[3] = start(read_it, &ends[3]);
    for (int i = 0; i < 4; i++)
        join(threads[i]);
    close_pair(fds);
}

static void both_ways_on_tcp(void)
{
    int fds[2];
    tcp_pair(fds);
    both_ways(fds);
}

static void both_ways_on_unix(void)
{
    int fds[2];
    unix_pair(fds);
    both_ways(fds);
}

/* A reader waits for long while writes on the same descriptor come and go. */
static void *read_the_end(void *arg)
{
    char byte;
    CHECK_EQ(read(*(int *)arg, &byte, 1), 0);
    return NULL;
}

static void a_patient_reader(void)
{
    int fds[2];
    char data[100];
    tcp_pair(fds);
    pthread_t reader = start(read_the_end, &fds[0]);
    for (int i = 0; i < 200; i++) {
        CHECK_EQ(write(fds[0], data, sizeof data), (int)sizeof data);
        CHECK_EQ(read_all(fds[1], data, sizeof data), (int)sizeof data);
    }
    CHECK_SYS(shutdown(fds[1], SHUT_WR));
    join(reader);
    close_pair(fds);
}

/* Each message goes to exactly one of many readers. */
enum { READERS = 20, MESSAGES = 4000 };
static int seen[MESSAGES];
static int source;

static void *take_messages(void *arg)
{
    int message;
    intptr_t count = 0;
    (void)arg;
    for (;;) {
        ssize_t n = read(source, &message, sizeof message);
        CHECK_SYS(n);
        if (n == 0 || message == -1)
            break;
        CHECK_EQ(n, (int)sizeof message);
        CHECK_EQ(__atomic_fetch_add(&seen[message], 1, __ATOMIC_RELAXED), 0);
        count++;
    }
    return (void *)count;
}

static void distribute(int from, int to, bool end_by_message)
{
    pthread_t readers[READERS];
    memset(seen, 0, sizeof seen);
    source = from;
    for (int i = 0; i < READERS; i++)
        readers[i] = start(take_messages, NULL);
    sleep_ms(20);
    for (int i = 0; i < MESSAGES; i++) {
        CHECK_EQ(write(to, &i, sizeof i), (int)sizeof i);
        if (i % 500 == 0)
            sleep_ms(1);
    }
    int over = -1;
    for (int i = 0; end_by_message && i < READERS; i++)
        CHECK_EQ(write(to, &over, sizeof over), (int)sizeof over);
    if (!end_by_message)
        CHECK_SYS(close(to));
    intptr_t total = 0;
    for (int i = 0; i < READERS; i++)
        total += (intptr_t)join(readers[i]);
    CHECK_EQ(total, MESSAGES);
    CHECK_SYS(close(from));
    if (end_by_message)
        CHECK_SYS(close(to));
}

static void readers_of_a_pipe(void)
{
    int fds[2];
    CHECK_SYS(pipe(fds));
    distribute(fds[0], fds[1], false);
}

static void readers_of_datagrams(void)
{
    int fds[2];
    CHECK_SYS(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds));
    distribute(fds[0], fds[1], true);
}

static void readers_of_packets(void)
{
    int fds[2];
    CHECK_SYS(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds));
    distribute(fds[0], fds[1], false);
}

/* The end wakes all. */
static void the_end_wakes_all(void)
{
    int fds[2];
    pthread_t readers[READERS];
    CHECK_SYS(pipe(fds));
    for (int i = 0; i < READERS; i++)
        readers[i] = start(read_the_end, &fds[0]);
    sleep_ms(20);
    CHECK_SYS(close(fds[1]));
    for (int i = 0; i < READERS; i++)
        join(readers[i]);
    CHECK_SYS(close(fds[0]));
}

/* One wake-up with room for several readers: a second must not be forgotten. */
static void *take_two(void *arg)
{
    char bytes[2];
    CHECK_EQ(read(*(int *)arg, bytes, 2), 2);
    return NULL;
}

static void one_write_feeds_several(void)
{
    int fds[2];
    pthread_t readers[READERS];
    char data[2 * READERS] = "";
    unix_pair(fds);
    for (int i = 0; i < READERS; i++)
        readers[i] = start(take_two, &fds[0]);
    sleep_ms(20);
    CHECK_EQ(write(fds[1], data, sizeof data), (int)sizeof data);
    for (int i = 0; i < READERS; i++)
        join(readers[i]);
    close_pair(fds);
}

/* Readers with a time limit give up, the others stay. */
static void *give_up(void *arg)
{
    struct pollfd one = {*(int *)arg, POLLIN, 0};
    CHECK_EQ(poll(&one, 1, 20), 0);
    return NULL;
}

static void some_give_up(void)
{
    int fds[2];
    pthread_t readers[READERS];
    char data[READERS] = "";
    unix_pair(fds);
    for (int i = 0; i < READERS; i++)
        readers[i] = start(i % 2 ? give_up : take_two, &fds[0]);
    for (int i = 1; i < READERS; i += 2)
        join(readers[i]);
    CHECK_EQ(write(fds[1], data, sizeof data), (int)sizeof data);
    for (int i = 0; i < READERS; i += 2)
        join(readers[i]);
    close_pair(fds);
}

/* Several writers wait for room; all get it. */
static void *write_for_long(void *arg)
{
    char data[4096];
    memset(data, 'w', sizeof data);
    for (int i = 0; i < 50; i++)
        CHECK_EQ(write(*(int *)arg, data, sizeof data), (int)sizeof data);
    return NULL;
}

static void several_writers(void)
{
    int fds[2];
    pthread_t writers[READERS];
    char data[10000];
    size_t total = 0;
    CHECK_SYS(pipe(fds));
    for (int i = 0; i < READERS; i++)
        writers[i] = start(write_for_long, &fds[1]);
    sleep_ms(20);
    while (total < (size_t)READERS * 50 * 4096) {
        ssize_t n = read(fds[0], data, sizeof data);
        CHECK(n > 0);
        total += (size_t)n;
    }
    CHECK_EQ(total, (size_t)READERS * 50 * 4096);
    for (int i = 0; i < READERS; i++)
        join(writers[i]);
    close_pair(fds);
}

/* main, which is no ordinary thread, waits beside others. */
static void *take_one(void *arg)
{
    char byte;
    CHECK_EQ(read(*(int *)arg, &byte, 1), 1);
    return NULL;
}

static void main_beside_others(void)
{
    int fds[2];
    pthread_t readers[4];
    CHECK_SYS(pipe(fds));
    for (int i = 0; i < 4; i++)
        readers[i] = start(take_one, &fds[0]);
    pthread_t writers[5];
    for (int i = 0; i < 5; i++)
        writers[i] = later(10 + 5 * i, put_byte, fds[1]);
    take_one(&fds[0]);
    for (int i = 0; i < 4; i++)
        join(readers[i]);
    for (int i = 0; i < 5; i++)
        join(writers[i]);
    close_pair(fds);
    printf("main_beside_others: ok\n");
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    RUN(both_ways_on_tcp);
    RUN(both_ways_on_unix);
    RUN(a_patient_reader);
    RUN(readers_of_a_pipe);
    RUN(readers_of_datagrams);
    RUN(readers_of_packets);
    RUN(the_end_wakes_all);
    RUN(one_write_feeds_several);
    RUN(some_give_up);
    RUN(several_writers);
    main_beside_others();
    return 0;
}
