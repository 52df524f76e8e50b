/* Echo server, one thread, edge-triggered epoll: each socket is registered once, for both directions, and a short
 * read means that it is drained. usage: epoll_et PORT */
#include "common.h"

/* Echoes until nothing is left to receive or the peer does not read. Returns -1 when the connection is over. */
static int serve(struct conn *conn, uint32_t events)
{
    char buffer[BUFFER];
    if (conn->pending > 0 && reply(conn, conn->rest, conn->pending) != 0)
        return -1;
    while (conn->pending == 0) {
        ssize_t count = recv(conn->fd, buffer, sizeof buffer, 0);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return errno == EAGAIN ? 0 : -1;
        if (count == 0 || reply(conn, buffer, (size_t)count) != 0)
            return -1;
        /* The end of the stream raises no further edge: once it was announced, read up to it. */
        if ((size_t)count < sizeof buffer && conn->pending == 0 && (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) == 0)
            return 0;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int listener = start(argc, argv);
    int poller = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
    if (poller < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event) != 0)
        die("epoll");

    struct epoll_event events[EVENTS];
    for (;;) {
        int count = epoll_wait(poller, events, EVENTS, -1);
        if (count < 0 && errno != EINTR)
            die("epoll_wait");
        for (int i = 0; i < count; i++) {
            struct conn *conn = events[i].data.ptr;
            if (conn != NULL) {
                if (serve(conn, events[i].events) != 0)
                    drop(conn);
                continue;
            }
            while ((conn = take(listener)) != NULL) {
                event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
                event.data.ptr = conn;
                if (epoll_ctl(poller, EPOLL_CTL_ADD, conn->fd, &event) != 0)
                    die("epoll_ctl");
            }
        }
    }
}
