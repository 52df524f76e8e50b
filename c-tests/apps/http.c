/* A small HTTP/1.1 server with a thread a connection: keep-alive, pipelined requests, bodies both ways, clients that
 * dawdle and clients that say nothing. */
#include "../posix/fds.h"
#include <strings.h>

enum { CLIENTS = 40, REQUESTS = 30 };

static int listener;

/* ---- a connection read through a buffer ---- */

struct stream {
    int fd;
    size_t from, to;
    char data[4096];
};

/* 1 when there is something, 0 at the end, -1 when the time is up. */
static int more(struct stream *in, int patience_ms)
{
    if (in->from < in->to)
        return 1;
    struct pollfd one = {in->fd, POLLIN, 0};
    int ready = poll(&one, 1, patience_ms);
    CHECK_SYS(ready);
    if (ready == 0)
        return -1;
    ssize_t n = recv(in->fd, in->data, sizeof in->data, 0);
    CHECK_SYS(n);
    in->from = 0;
    in->to = (size_t)n;
    return n > 0;
}

static int get_line(struct stream *in, char *line, size_t room, int patience_ms)
{
    size_t size = 0;
    for (;;) {
        int state = more(in, patience_ms);
        if (state <= 0)
            return state;
        char byte = in->data[in->from++];
        if (byte == '\n')
            break;
        if (byte != '\r') {
            CHECK(size + 1 < room);
            line[size++] = byte;
        }
    }
    line[size] = '\0';
    return 1;
}

static void get_body(struct stream *in, size_t size, unsigned seed)
{
    for (size_t at = 0; at < size;) {
        CHECK_EQ(more(in, -1), 1);
        size_t part = in->to - in->from < size - at ? in->to - in->from : size - at;
        check_fill(in->data + in->from, part, seed, at);
        in->from += part;
        at += part;
    }
}

/* Headers up to the empty line; the content length and whether the connection ends. */
static int get_headers(struct stream *in, size_t *length, bool *last)
{
    char line[256];
    int state;
    *length = 0;
    *last = false;
    while ((state = get_line(in, line, sizeof line, -1)) == 1 && line[0] != '\0') {
        if (strncasecmp(line, "Content-Length: ", 16) == 0)
            *length = (size_t)atol(line + 16);
        if (strcasecmp(line, "Connection: close") == 0)
            *last = true;
    }
    return state;
}

/* ---- the server ---- */

static void respond(int fd, int status, size_t size, unsigned seed)
{
    char head[128], *body = malloc(size + 1);
    int head_size = snprintf(head, sizeof head, "HTTP/1.1 %d Whatever\r\nContent-Length: %zu\r\n\r\n", status, size);
    fill(body, size, seed, 0);
    write_all(fd, head, (size_t)head_size);
    write_all(fd, body, size);
    free(body);
}

static void *serve(void *arg)
{
    struct stream in = {.fd = (int)(intptr_t)arg};
    char line[256], method[16], path[64];
    size_t size, length;
    unsigned seed;
    bool last = false;
    int patience = -1;
    while (!last && get_line(&in, line, sizeof line, patience) == 1) {
        CHECK_EQ(sscanf(line, "%15s %63s HTTP/1.1", method, path), 2);
        CHECK_EQ(get_headers(&in, &length, &last), 1);
        if (strcmp(method, "POST") == 0 && sscanf(path, "/keep/%u", &seed) == 1) {
            get_body(&in, length, seed);
            respond(in.fd, 201, 0, 0);
        } else if (sscanf(path, "/bytes/%zu/%u", &size, &seed) == 2) {
            respond(in.fd, 200, size, seed);
        } else if (strcmp(path, "/be-impatient") == 0) {
            patience = 60;
            respond(in.fd, 200, 0, 0);
        } else {
            respond(in.fd, 404, 0, 0);
        }
    }
    CHECK_SYS(close(in.fd));
    return NULL;
}

static void *accept_all(void *arg)
{
    pthread_attr_t detached;
    CHECK_OK(pthread_attr_init(&detached));
    CHECK_OK(pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED));
    for (;;) {
        pthread_t thread;
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            break;
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        CHECK_OK(pthread_create(&thread, &detached, serve, (void *)(intptr_t)fd));
    }
    CHECK_EQ(errno, EINVAL);
    CHECK_OK(pthread_attr_destroy(&detached));
    return arg;
}

/* ---- clients ---- */

static void expect(struct stream *in, int status, size_t size, unsigned seed)
{
    char line[256];
    size_t length;
    bool last;
    int got;
    CHECK_EQ(get_line(in, line, sizeof line, -1), 1);
    CHECK_EQ(sscanf(line, "HTTP/1.1 %d", &got), 1);
    CHECK_EQ(got, status);
    CHECK_EQ(get_headers(in, &length, &last), 1);
    CHECK_EQ(length, size);
    get_body(in, length, seed);
}

static void ask(int fd, const char *request, size_t body, unsigned seed)
{
    char head[256], *data = malloc(body + 1);
    int size = snprintf(head, sizeof head, "%s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", request, body);
    fill(data, body, seed, 0);
    write_all(fd, head, (size_t)size);
    write_all(fd, data, body);
    free(data);
}

static void *browse(void *arg)
{
    unsigned me = (unsigned)(intptr_t)arg;
    struct stream *in = calloc(1, sizeof *in);
    char request[64];
    in->fd = tcp_connect(port_of(listener));
    for (unsigned i = 0; i < REQUESTS; i++) {
        size_t size = (me * 977 + i * 3571) % 60000;
        switch ((me + i) % 5) {
        case 0: /* one after the other */
            snprintf(request, sizeof request, "GET /bytes/%zu/%u", size, me);
            ask(in->fd, request, 0, 0);
            expect(in, 200, size, me);
            break;
        case 1: /* several under way */
            for (unsigned k = 0; k < 5; k++) {
                snprintf(request, sizeof request, "GET /bytes/%u/%u", k * 100, k);
                ask(in->fd, request, 0, 0);
            }
            for (unsigned k = 0; k < 5; k++)
                expect(in, 200, k * 100, k);
            break;
        case 2: /* something to keep */
            snprintf(request, sizeof request, "POST /keep/%u", i);
            ask(in->fd, request, size, i);
            expect(in, 201, 0, 0);
            break;
        case 3: /* letter by letter */
            for (const char *at = "GET /nowhere HTTP/1.1\r\n\r\n"; *at != '\0'; at++) {
                write_all(in->fd, at, 1);
                if (at[1] == ' ')
                    sleep_ms(1);
            }
            expect(in, 404, 0, 0);
            break;
        default: /* a new connection */
            write_all(in->fd, "GET /bytes/9/9 HTTP/1.1\r\nConnection: close\r\n\r\n", 46);
            expect(in, 200, 9, 9);
            CHECK_EQ(more(in, -1), 0);
            CHECK_SYS(close(in->fd));
            in->fd = tcp_connect(port_of(listener));
        }
    }
    if (me % 4 == 0) { /* silence: the server hangs up */
        ask(in->fd, "GET /be-impatient", 0, 0);
        expect(in, 200, 0, 0);
        CHECK_EQ(more(in, -1), 0);
    }
    CHECK_SYS(close(in->fd));
    free(in);
    return NULL;
}

int main(void)
{
    pthread_t clients[CLIENTS];
    signal(SIGPIPE, SIG_IGN);
    listener = tcp_listener(CLIENTS);
    pthread_t server = start(accept_all, NULL);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = start(browse, (void *)(intptr_t)i);
    for (int i = 0; i < CLIENTS; i++)
        join(clients[i]);
    CHECK_SYS(shutdown(listener, SHUT_RDWR));
    join(server);
    CHECK_SYS(close(listener));
    printf("%d clients, %d exchanges each\n", CLIENTS, REQUESTS);
    return 0;
}
