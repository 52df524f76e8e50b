/* Waiters on one descriptor of which some give up, some are fed by one write, and one is main. */
#include "fds.h"

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

static void readers_of_packets(void)
{
    int fds[2];
    CHECK_SYS(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds));
    distribute(fds[0], fds[1], false);
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
    RUN(a_patient_reader);
    RUN(readers_of_packets);
    RUN(one_write_feeds_several);
    RUN(some_give_up);
    main_beside_others();
    return 0;
}
