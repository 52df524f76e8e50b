/* Reads that ask for exactly what is there, a byte less, a byte more: the next one waits or not as it should. */
#include "fds.h"

static const size_t sizes[] = {1, 2, 100, 4095, 4096, 4097, 16384, 65535, 65536, 65537, 200000};
enum { SIZES = sizeof sizes / sizeof *sizes, ROUNDS = 3 };

/* How a reader asks for `size` bytes that come in one message. */
static size_t ask(int manner, size_t size, size_t have)
{
    size_t rest = size - have;
    switch (manner) {
    case 0: return rest;                             /* exactly */
    case 1: return rest > 1 ? rest - 1 : 1;          /* a byte less, then the byte */
    case 2: return rest + 1;                         /* a byte more */
    case 3: return rest > 4096 ? 4096 : rest;        /* in pages */
    default: return rest > 2 ? rest / 2 : rest;      /* in halves */
    }
}

struct end {
    int fd, manner;
};

static void *answer(void *arg)
{
    struct end *end = arg;
    char *data = malloc(200001);
    for (int i = 0; i < SIZES * ROUNDS; i++) {
        size_t size = sizes[i % SIZES], have = 0;
        while (have < size) {
            ssize_t n = read(end->fd, data + have, ask(end->manner, size, have));
            CHECK(n > 0);
            have += (size_t)n;
        }
        CHECK_EQ(have, size);
        check_fill(data, size, (unsigned)i, 0);
        write_all(end->fd, "k", 1);
    }
    free(data);
    return NULL;
}

static void converse(void (*pair)(int fds[2]))
{
    for (int manner = 0; manner < 5; manner++) {
        int fds[2];
        char *data = malloc(200000), byte;
        pair(fds);
        struct end end = {fds[1], manner};
        pthread_t other = start(answer, &end);
        for (int i = 0; i < SIZES * ROUNDS; i++) {
            size_t size = sizes[i % SIZES];
            fill(data, size, (unsigned)i, 0);
            if (i % 2)
                sched_yield();
            write_all(fds[0], data, size);
            CHECK_EQ(read(fds[0], &byte, 1), 1);
        }
        join(other);
        close_pair(fds);
        free(data);
    }
}

static void on_tcp(void) { converse(tcp_pair); }
static void on_unix(void) { converse(unix_pair); }

/* Many at once, so that events and reads interleave. */
static void *on_some(void *arg)
{
    converse((intptr_t)arg % 2 ? tcp_pair : unix_pair);
    return NULL;
}

static void many_at_once(void)
{
    pthread_t threads[16];
    for (int i = 0; i < 16; i++)
        threads[i] = start(on_some, (void *)(intptr_t)i);
    for (int i = 0; i < 16; i++)
        join(threads[i]);
}

int main(void)
{
    RUN(on_tcp);
    RUN(on_unix);
    RUN(many_at_once);
    return 0;
}
