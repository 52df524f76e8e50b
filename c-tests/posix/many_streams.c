/* Two dozen streams at once, pipes, unix and TCP, in odd bites, every byte checked. */
#include "fds.h"
#include <sys/uio.h>

struct stream {
    int fd;
    size_t total;
    unsigned seed;
};

static size_t next_size(unsigned *state, size_t most)
{
    *state = *state * 1103515245u + 12345u;
    return (*state >> 8) % most + 1;
}

static void *writer(void *arg)
{
    struct stream *stream = arg;
    unsigned state = stream->seed;
    enum { MOST = 300000 };
    char *data = malloc(MOST);
    for (size_t at = 0; at < stream->total;) {
        size_t size = next_size(&state, state % 5 ? 5000 : MOST);
        if (size > stream->total - at)
            size = stream->total - at;
        fill(data, size, stream->seed, at);
        if (state % 3 == 0) {
            struct iovec parts[2] = {{data, size / 3}, {data + size / 3, size - size / 3}};
            CHECK_EQ(writev(stream->fd, parts, 2), size);
        } else {
            CHECK_EQ(write(stream->fd, data, size), size);
        }
        at += size;
    }
    free(data);
    CHECK_SYS(close(stream->fd));
    return NULL;
}

static void *reader(void *arg)
{
    struct stream *stream = arg;
    unsigned state = stream->seed + 1;
    enum { MOST = 200000 };
    char *data = malloc(MOST);
    size_t at = 0;
    for (;;) {
        ssize_t n = read(stream->fd, data, next_size(&state, state % 7 ? 7001 : MOST));
        CHECK_SYS(n);
        if (n == 0)
            break;
        check_fill(data, (size_t)n, stream->seed, at);
        at += (size_t)n;
    }
    free(data);
    CHECK_EQ(at, stream->total);
    CHECK_SYS(close(stream->fd));
    return NULL;
}

enum { STREAMS = 24 };

static void many_at_once(void)
{
    struct stream ends[STREAMS][2];
    pthread_t threads[STREAMS][2];
    for (int i = 0; i < STREAMS; i++) {
        int fds[2];
        size_t total = 500000 + (size_t)i * 1001;
        if (i % 3 == 0)
            CHECK_SYS(pipe(fds));
        else if (i % 3 == 1)
            unix_pair(fds);
        else
            tcp_pair(fds);
        ends[i][0] = (struct stream){fds[1], total, (unsigned)i + 10};
        ends[i][1] = (struct stream){fds[0], total, (unsigned)i + 10};
    }
    for (int i = 0; i < STREAMS; i++) {
        threads[i][0] = start(writer, &ends[i][0]);
        threads[i][1] = start(reader, &ends[i][1]);
    }
    for (int i = 0; i < STREAMS; i++) {
        join(threads[i][0]);
        join(threads[i][1]);
    }
}

int main(void)
{
    RUN(many_at_once);
    return 0;
}
