/* Echo server, one thread, level-triggered epoll: the classic event loop. usage: epoll_lt PORT */
#include "common.h"

static int poller;

/* Asks epoll for `events`, if that is news. */
static void want(struct conn *conn, uint32_t events)
{
    if (conn->events == events)
        return;
    struct epoll_event event = {.events = events, .data.ptr = conn};
    if (epoll_ctl(poller, conn->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, conn->fd, &event) != 0)
        die("epoll_ctl");
    conn->events = events;
}

/* One receive and one send an event; what is left raises the next event. Returns -1 when the connection is over. */
static int serve(struct conn *conn)
{
    char buffer[BUFFER];
    if (conn->pending > 0) {
        if (reply(conn, conn->rest, conn->pending) != 0)
            return -1;
    } else {
        ssize_t count = recv(conn->fd, buffer, sizeof buffer, 0);
        if (count < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -1;
        if (count == 0 || reply(conn, buffer, (size_t)count) != 0)
            return -1;
    }
    /* While the peer does not read, do not read either: otherwise the rest grows without bound. */
    want(conn, conn->pending > 0 ? EPOLLOUT : EPOLLIN);
    return 0;
}

int main(int argc, char **argv)
{
    int listener = start(argc, argv);
    poller = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (poller < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event) != 0)
        die("epoll");

    struct epoll_event events[EVENTS];
    for (;;) {
        int count = epoll_wait(poller, events, EVENTS, -1);
        if (count < 0 && errno != EINTR)
            die("epoll_wait");
        for (int i = 0; i < count; i++) {
            struct conn *conn = events[i].data.ptr;
            if (conn == NULL) {
                while ((conn = take(listener)) != NULL)
                    want(conn, EPOLLIN);
            } else if (serve(conn) != 0) {
                drop(conn);
            }
        }
    }
}
