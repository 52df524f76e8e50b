/* Two and more threads that wait on one descriptor at once: for reading and writing, or all for the same. */
#include "fds.h"

/* One thread reads, one writes, both wait, on each end of one socket; full in both directions at times. */
enum { BYTES = 8 << 20 };

struct stream {
    int fd;
    unsigned seed;
};

static void *write_stream(void *arg)
{
    struct stream *stream = arg;
    static const size_t sizes[] = {1, 7, 4096, 65537, 300001};
    char *data = malloc(300001);
    size_t at = 0;
    for (int i = 0; at < BYTES; i++) {
        size_t size = sizes[i % 5] < BYTES - at ? sizes[i % 5] : BYTES - at;
        fill(data, size, stream->seed, at);
        CHECK_EQ(write(stream->fd, data, size), (long long)size);
        at += size;
    }
    free(data);
    return NULL;
}

static void *read_stream(void *arg)
{
    struct stream *stream = arg;
    char *data = malloc(100003);
    for (size_t at = 0; at < BYTES;) {
        ssize_t n = read(stream->fd, data, 100003);
        CHECK(n > 0);
        check_fill(data, (size_t)n, stream->seed, at);
        at += (size_t)n;
    }
    free(data);
    return NULL;
}

static void both_directions_on(void (*pair)(int fds[2]))
{
    int fds[2];
    pair(fds);
    struct stream streams[4] = {{fds[0], 1}, {fds[1], 1}, {fds[1], 2}, {fds[0], 2}};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        threads[i] = start(i % 2 ? read_stream : write_stream, &streams[i]);
    for (int i = 0; i < 4; i++)
        join(threads[i]);
    close_pair(fds);
}

static void both_directions_of_tcp(void) { both_directions_on(tcp_pair); }
static void both_directions_of_unix(void) { both_directions_on(unix_pair); }

/* A reader waits while a writer comes, waits and goes, and is still there. */
static void *wait_for_byte(void *arg)
{
    get_byte(*(int *)arg);
    return NULL;
}

static void the_reader_outlives_the_writer(void)
{
    int fds[2];
    static char big[1 << 20], sink[1 << 20];
    unix_pair(fds);
    pthread_t reader = start(wait_for_byte, &fds[0]);
    sleep_ms(10);
    for (int i = 0; i < 3; i++) {
        set_nonblock(fds[0], true);
        ssize_t n = write(fds[0], big, sizeof big);
        CHECK(n > 0);
        set_nonblock(fds[0], false);
        pthread_t writer = later(0, put_byte, fds[0]);
        sleep_ms(10);
        CHECK_EQ(read_all(fds[1], sink, (size_t)n + 1), n + 1);
        join(writer);
    }
    put_byte(fds[1]);
    join(reader);
    close_pair(fds);
}

/* Each message goes to exactly one of the readers, and none is lost. */
enum { READERS = 8, MESSAGES = 4000 };
static unsigned char seen[MESSAGES];
static int common;

static void *read_messages(void *arg)
{
    (void)arg;
    intptr_t count = 0;
    for (;;) {
        int number;
        ssize_t n = read(common, &number, sizeof number);
        if (n == 0)
            return (void *)count;
        CHECK_EQ(n, (int)sizeof number);
        if (number < 0)
            return (void *)count;
        __atomic_add_fetch(&seen[number], 1, __ATOMIC_RELAXED);
        count++;
    }
}

static void one_reader_each(int from, int to, bool packets)
{
    pthread_t readers[READERS];
    intptr_t total = 0;
    int none = -1;
    memset(seen, 0, sizeof seen);
    common = from;
    for (int i = 0; i < READERS; i++)
        readers[i] = start(read_messages, NULL);
    for (int i = 0; i < MESSAGES; i++) {
        CHECK_EQ(write(to, &i, sizeof i), (int)sizeof i);
        if (i % 97 == 0)
            sleep_ms(1);
    }
    for (int i = 0; i < READERS && packets; i++)
        CHECK_EQ(write(to, &none, sizeof none), (int)sizeof none);
    if (!packets)
        CHECK_SYS(close(to));
    for (int i = 0; i < READERS; i++)
        total += (intptr_t)join(readers[i]);
    CHECK_EQ(total, MESSAGES);
    for (int i = 0; i < MESSAGES; i++)
        CHECK_EQ(seen[i], 1);
}

static void readers_of_a_pipe(void)
{
    int fds[2];
    CHECK_SYS(pipe(fds));
    one_reader_each(fds[0], fds[1], false);
    CHECK_SYS(close(fds[0]));
}

static void readers_of_a_socket(void)
{
    int fds[2];
    CHECK_SYS(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds));
    one_reader_each(fds[0], fds[1], true);
    close_pair(fds);
}

/* A burst that came in one readiness event has to reach every reader that waits. */
static void a_burst_wakes_them_all(void)
{
    int fds[2];
    pthread_t readers[READERS];
    for (int round = 0; round < 20; round++) {
        CHECK_SYS(pipe(fds));
        for (int i = 0; i < READERS; i++)
            readers[i] = start(wait_for_byte, &fds[0]);
        sleep_ms(round % 4);
        CHECK_EQ(write(fds[1], "12345678", READERS), READERS);
        for (int i = 0; i < READERS; i++)
            join(readers[i]);
        close_pair(fds);
    }
}

static void the_end_wakes_them_all(void)
{
    int fds[2];
    pthread_t readers[READERS];
    CHECK_SYS(pipe(fds));
    common = fds[0];
    for (int i = 0; i < READERS; i++)
        readers[i] = start(read_messages, NULL);
    sleep_ms(20);
    CHECK_SYS(close(fds[1]));
    for (int i = 0; i < READERS; i++)
        CHECK_EQ((intptr_t)join(readers[i]), 0);
    CHECK_SYS(close(fds[0]));
}

/* Writers that wait on one full pipe. */
static char letters[READERS][40000];

struct letter {
    int fd, which;
};

static void *write_letters(void *arg)
{
    struct letter *letter = arg;
    CHECK_EQ(write(letter->fd, letters[letter->which], sizeof *letters), (int)sizeof *letters);
    return NULL;
}

static void many_writers(void)
{
    int fds[2];
    struct letter jobs[READERS];
    pthread_t writers[READERS];
    size_t counts[READERS] = {0};
    char bite[5000];
    CHECK_SYS(pipe(fds));
    for (int i = 0; i < READERS; i++) {
        memset(letters[i], 'a' + i, sizeof *letters);
        jobs[i] = (struct letter){fds[1], i};
        writers[i] = start(write_letters, &jobs[i]);
    }
    for (size_t total = 0; total < sizeof letters;) {
        ssize_t n = read(fds[0], bite, sizeof bite);
        CHECK(n > 0);
        for (ssize_t i = 0; i < n; i++)
            counts[bite[i] - 'a']++;
        total += (size_t)n;
    }
    for (int i = 0; i < READERS; i++) {
        join(writers[i]);
        CHECK_EQ(counts[i], sizeof *letters);
    }
    close_pair(fds);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    RUN(both_directions_of_tcp);
    RUN(both_directions_of_unix);
    RUN(the_reader_outlives_the_writer);
    RUN(readers_of_a_pipe);
    RUN(readers_of_a_socket);
    RUN(a_burst_wakes_them_all);
    RUN(the_end_wakes_them_all);
    RUN(many_writers);
    return 0;
}
