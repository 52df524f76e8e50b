/* A unix stream sender waits, and its peer shuts down reading: the sender is told EPIPE. Note that poll tells it nothing,
 * because there is neither room nor a hang-up. */
#include "fds.h"

static char big[8 << 20];

static void unix_peer_of_shut_read(void)
{
    int fds[2];
    unix_pair(fds);
    pthread_t closer = later(20, shut_read, fds[1]);
    ssize_t sent = send(fds[0], big, sizeof big, MSG_NOSIGNAL);
    CHECK(sent > 0 && sent < (ssize_t)sizeof big);
    CHECK_ERRNO(send(fds[0], "x", 1, MSG_NOSIGNAL), EPIPE);
    join(closer);
    close_pair(fds);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    RUN(unix_peer_of_shut_read);
    return 0;
}
