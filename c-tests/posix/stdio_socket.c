/* stdio on descriptors that wait: fgets, fprintf, fread, fwrite, getline on sockets and pipes between threads. */
#include "fds.h"

struct streams {
    FILE *in, *out;
};

static struct streams streams_of(int fd)
{
    struct streams streams = {fdopen(fd, "r"), NULL};
    int copy = dup(fd);
    CHECK_SYS(copy);
    streams.out = fdopen(copy, "w");
    CHECK(streams.in != NULL && streams.out != NULL);
    return streams;
}

static void close_streams(struct streams *streams)
{
    CHECK_EQ(fclose(streams->out), 0);
    CHECK_EQ(fclose(streams->in), 0);
}

/* Answers each line "add A B" by "A+B=SUM", until "bye". */
static void *calculator(void *arg)
{
    struct streams streams = streams_of(*(int *)arg);
    char line[128];
    long a, b;
    while (fgets(line, sizeof line, streams.in) != NULL && strcmp(line, "bye\n") != 0) {
        CHECK_EQ(sscanf(line, "add %ld %ld", &a, &b), 2);
        CHECK(fprintf(streams.out, "%ld+%ld=%ld %.3f\n", a, b, a + b, (double)a / 8) > 0);
        CHECK_EQ(fflush(streams.out), 0);
    }
    CHECK(!feof(streams.in));
    close_streams(&streams);
    return NULL;
}

static void converse(int fd, int turns)
{
    struct streams streams = streams_of(fd);
    char line[128], expected[128];
    for (long i = 0; i < turns; i++) {
        CHECK(fprintf(streams.out, "add %ld %ld\n", i, i * i) > 0);
        CHECK_EQ(fflush(streams.out), 0);
        CHECK(fgets(line, sizeof line, streams.in) != NULL);
        snprintf(expected, sizeof expected, "%ld+%ld=%ld %.3f\n", i, i * i, i + i * i, (double)i / 8);
        CHECK_STR(line, expected);
    }
    fputs("bye\n", streams.out);
    CHECK_EQ(fflush(streams.out), 0);
    CHECK(fgets(line, sizeof line, streams.in) == NULL);
    CHECK(feof(streams.in) && !ferror(streams.in));
    close_streams(&streams);
}

static void a_conversation(void)
{
    int fds[2];
    unix_pair(fds);
    pthread_t other = start(calculator, &fds[1]);
    converse(fds[0], 300);
    join(other);
}

enum { PAIRS = 16 };

static void *short_conversation(void *arg)
{
    converse(*(int *)arg, 40);
    return NULL;
}

static void many_conversations(void)
{
    int fds[PAIRS][2];
    pthread_t threads[PAIRS][2];
    for (int i = 0; i < PAIRS; i++) {
        if (i % 2)
            unix_pair(fds[i]);
        else
            tcp_pair(fds[i]);
        threads[i][0] = start(calculator, &fds[i][0]);
        threads[i][1] = start(short_conversation, &fds[i][1]);
    }
    for (int i = 0; i < PAIRS; i++) {
        join(threads[i][0]);
        join(threads[i][1]);
    }
}

enum { BULK = 1000000 };

static void *fwrite_bulk(void *arg)
{
    FILE *out = fdopen(*(int *)arg, "w");
    char *data = malloc(BULK);
    fill(data, BULK, 21, 0);
    CHECK_EQ(fwrite(data, 1000, BULK / 1000, out), BULK / 1000);
    CHECK_EQ(fclose(out), 0);
    free(data);
    return NULL;
}

static void bulk_by_fwrite_and_fread(void)
{
    int fds[2];
    CHECK_SYS(pipe(fds));
    pthread_t other = start(fwrite_bulk, &fds[1]);
    FILE *in = fdopen(fds[0], "r");
    char *data = malloc(BULK);
    sleep_ms(20);
    CHECK_EQ(fread(data, 1, BULK, in), BULK);
    check_fill(data, BULK, 21, 0);
    CHECK_EQ(fgetc(in), EOF);
    CHECK_EQ(fclose(in), 0);
    join(other);
    free(data);
}

static void *fwrite_to_a_slow_reader(void *arg)
{
    FILE *out = fdopen(*(int *)arg, "w");
    setvbuf(out, NULL, _IONBF, 0);
    for (int i = 0; i < 200; i++)
        CHECK(fprintf(out, "%05d %0*d\n", i, 1000, i) > 0);
    CHECK_EQ(fclose(out), 0);
    return NULL;
}

static void getline_slowly(void)
{
    int fds[2], expected = 0;
    char *line = NULL;
    size_t room = 0;
    CHECK_SYS(pipe(fds));
    pthread_t other = start(fwrite_to_a_slow_reader, &fds[1]);
    FILE *in = fdopen(fds[0], "r");
    while (getline(&line, &room, in) != -1) {
        CHECK_EQ(atoi(line), expected);
        CHECK_EQ(strlen(line), 1007);
        if (expected++ % 20 == 0)
            sleep_ms(1);
    }
    CHECK_EQ(expected, 200);
    CHECK_EQ(fclose(in), 0);
    join(other);
    free(line);
}

/* One stream, several writers: stdio's lock keeps lines whole. */
enum { WRITERS = 6, LINES = 100 };
static FILE *shared;

static void *write_lines(void *arg)
{
    int me = (int)(intptr_t)arg;
    for (int i = 0; i < LINES; i++) {
        CHECK(fprintf(shared, "%d %d\n", me, i) > 0);
        if (i % 10 == 0)
            CHECK_EQ(fflush(shared), 0);
        if (i % 25 == 0)
            sched_yield();
    }
    return NULL;
}

static void *read_lines(void *arg)
{
    FILE *in = fdopen(*(int *)arg, "r");
    int next[WRITERS] = {0}, who, which, lines = 0;
    while (fscanf(in, "%d %d", &who, &which) == 2) {
        CHECK(who >= 0 && who < WRITERS);
        CHECK_EQ(which, next[who]);
        next[who]++;
        lines++;
    }
    CHECK_EQ(lines, WRITERS * LINES);
    CHECK_EQ(fclose(in), 0);
    return NULL;
}

static void a_shared_stream(void)
{
    int fds[2];
    pthread_t threads[WRITERS];
    unix_pair(fds);
    shared = fdopen(fds[1], "w");
    pthread_t reader = start(read_lines, &fds[0]);
    for (int i = 0; i < WRITERS; i++)
        threads[i] = start(write_lines, (void *)(intptr_t)i);
    for (int i = 0; i < WRITERS; i++)
        join(threads[i]);
    CHECK_EQ(fclose(shared), 0);
    join(reader);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    RUN(a_conversation);
    RUN(many_conversations);
    RUN(bulk_by_fwrite_and_fread);
    RUN(getline_slowly);
    RUN(a_shared_stream);
    return 0;
}
