/* Structures that a call would have to read are where no memory is: EFAULT, not a crash. One call to a case. */
#include "fds.h"
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/uio.h>

static int stream[2];

static void in_nanosleep(void) { CHECK_ERRNO(nanosleep(bad_pointer(), NULL), EFAULT); }
static void in_poll(void) { CHECK_ERRNO(poll(bad_pointer(), 1, 0), EFAULT); }
static void in_ppoll(void) { CHECK_ERRNO(ppoll(bad_pointer(), 1, NULL, NULL), EFAULT); }
static void in_select(void) { CHECK_ERRNO(select(10, bad_pointer(), NULL, NULL, NULL), EFAULT); }
static void in_pselect(void) { CHECK_ERRNO(pselect(10, NULL, bad_pointer(), NULL, NULL, NULL), EFAULT); }
static void in_readv(void) { CHECK_ERRNO(readv(stream[0], bad_pointer(), 1), EFAULT); }
static void in_writev(void) { CHECK_ERRNO(writev(stream[0], bad_pointer(), 1), EFAULT); }
static void in_recvmsg(void) { CHECK_ERRNO(recvmsg(stream[0], bad_pointer(), 0), EFAULT); }
static void in_sendmsg(void) { CHECK_ERRNO(sendmsg(stream[0], bad_pointer(), 0), EFAULT); }
static void in_sendmmsg(void) { CHECK_ERRNO(sendmmsg(stream[0], bad_pointer(), 1, 0), EFAULT); }
static void in_ioctl(void) { CHECK_ERRNO(ioctl(stream[0], FIONBIO, bad_pointer()), EFAULT); }
static void in_pipe(void) { CHECK_ERRNO(pipe(bad_pointer()), EFAULT); }
static void in_socketpair(void) { CHECK_ERRNO(socketpair(AF_UNIX, SOCK_STREAM, 0, bad_pointer()), EFAULT); }
static void in_open(void) { CHECK_ERRNO(open(bad_pointer(), O_RDONLY), EFAULT); }

static void in_clock_nanosleep(void)
{
    CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, bad_pointer(), NULL), EFAULT);
}

static void in_setsockopt(void)
{
    CHECK_ERRNO(setsockopt(stream[0], SOL_SOCKET, SO_RCVTIMEO, bad_pointer(), sizeof(struct timeval)), EFAULT);
}

static void in_connect(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_ERRNO(connect(fd, bad_pointer(), sizeof(struct sockaddr_in)), EFAULT);
    CHECK_SYS(close(fd));
}

static void in_accept(void)
{
    int listener = tcp_listener(1), client = tcp_connect(port_of(listener));
    struct sockaddr_in addr;
    CHECK_ERRNO(accept(listener, (struct sockaddr *)&addr, bad_pointer()), EFAULT);
    CHECK_SYS(close(client));
    CHECK_SYS(close(listener));
}

static void in_recvfrom(void)
{
    struct sockaddr_un addr;
    put_byte(stream[1]);
    CHECK_ERRNO(recvfrom(stream[0], bad_pointer(), 1, 0, (struct sockaddr *)&addr, NULL), EFAULT);
}

int main(void)
{
    unix_pair(stream);
    RUN(in_nanosleep);
    RUN(in_clock_nanosleep);
    RUN(in_poll);
    RUN(in_ppoll);
    RUN(in_select);
    RUN(in_pselect);
    RUN(in_readv);
    RUN(in_writev);
    RUN(in_recvmsg);
    RUN(in_sendmsg);
    RUN(in_sendmmsg);
    RUN(in_ioctl);
    RUN(in_pipe);
    RUN(in_socketpair);
    RUN(in_open);
    RUN(in_setsockopt);
    RUN(in_connect);
    RUN(in_accept);
    RUN(in_recvfrom);
    close_pair(stream);
    return 0;
}
