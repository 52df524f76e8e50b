/* A server with a pool of workers: main accepts and queues, the workers take connections from the queue; short
 * connections come and go. Main is the acceptor, as in most such programs. */
#include "../posix/fds.h"

enum { WORKERS = 8, CLIENTS = 50, VISITS = 20, ROOM = 16 };

static int listener;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t filled, emptied;
    int fds[ROOM], first, count;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER, .emptied = PTHREAD_COND_INITIALIZER};

static void put(int fd)
{
    pthread_mutex_lock(&queue.lock);
    while (queue.count == ROOM)
        pthread_cond_wait(&queue.emptied, &queue.lock);
    queue.fds[(queue.first + queue.count++) % ROOM] = fd;
    pthread_cond_signal(&queue.filled);
    pthread_mutex_unlock(&queue.lock);
}

static int take(void)
{
    pthread_mutex_lock(&queue.lock);
    while (queue.count == 0) {
        struct timespec soon = in_ms(CLOCK_REALTIME, 5);
        pthread_cond_timedwait(&queue.filled, &queue.lock, &soon);
    }
    int fd = queue.fds[queue.first];
    queue.first = (queue.first + 1) % ROOM;
    queue.count--;
    pthread_cond_signal(&queue.emptied);
    pthread_mutex_unlock(&queue.lock);
    return fd;
}

static void *work(void *arg)
{
    intptr_t served = 0;
    (void)arg;
    for (;;) {
        int fd = take(), number;
        if (fd < 0)
            return (void *)served;
        CHECK_EQ(read_all(fd, &number, sizeof number), (int)sizeof number);
        if (number % 16 == 0)
            sleep_ms(1);
        number = -number;
        write_all(fd, &number, sizeof number);
        CHECK_SYS(close(fd));
        served++;
    }
}

static void *visit(void *arg)
{
    for (int i = 0; i < VISITS; i++) {
        int number = (int)(intptr_t)arg * VISITS + i, got;
        int fd = tcp_connect(port_of(listener));
        write_all(fd, &number, sizeof number);
        CHECK_EQ(read_all(fd, &got, sizeof got), (int)sizeof got);
        CHECK_EQ(got, -number);
        CHECK_EQ(read(fd, &got, 1), 0);
        CHECK_SYS(close(fd));
    }
    return NULL;
}

int main(void)
{
    pthread_t workers[WORKERS], clients[CLIENTS];
    intptr_t served = 0;
    listener = tcp_listener(CLIENTS);
    for (int i = 0; i < WORKERS; i++)
        workers[i] = start(work, NULL);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = start(visit, (void *)(intptr_t)i);
    for (int i = 0; i < CLIENTS * VISITS; i++) {
        int fd = accept(listener, NULL, NULL);
        CHECK_SYS(fd);
        put(fd);
    }
    for (int i = 0; i < CLIENTS; i++)
        join(clients[i]);
    for (int i = 0; i < WORKERS; i++)
        put(-1);
    for (int i = 0; i < WORKERS; i++)
        served += (intptr_t)join(workers[i]);
    CHECK_SYS(close(listener));
    printf("%d connections served by %d workers\n", (int)served, WORKERS);
    return 0;
}
