/* O_NONBLOCK, however it is set: calls return at once, and the flag is exactly what the program made it. */
#include "fds.h"
#include <sys/ioctl.h>
#include <sys/eventfd.h>

static char big[1 << 20];

static void set_by_fcntl(void)
{
    int fds[2];
    char byte;
    CHECK_SYS(pipe(fds));
    CHECK_EQ(fcntl(fds[0], F_GETFL), O_RDONLY);
    CHECK_EQ(fcntl(fds[1], F_GETFL), O_WRONLY);
    set_nonblock(fds[0], true);
    CHECK_EQ(fcntl(fds[0], F_GETFL), O_RDONLY | O_NONBLOCK);
    CHECK_EQ(fcntl(fds[1], F_GETFL), O_WRONLY);
    CHECK_ERRNO(read(fds[0], &byte, 1), EAGAIN);
    CHECK_EQ(write(fds[1], "x", 1), 1);
    CHECK_EQ(read(fds[0], &byte, 1), 1);
    set_nonblock(fds[0], false);
    CHECK_EQ(fcntl(fds[0], F_GETFL), O_RDONLY);
    int64_t begun = now_ns();
    pthread_t writer = later(30, put_byte, fds[1]);
    CHECK_EQ(read(fds[0], &byte, 1), 1);
    CHECK_LASTED(begun, 25);
    join(writer);
    close_pair(fds);
}

static void set_by_ioctl(void)
{
    int fds[2], on = 1, off = 0, count;
    char byte;
    tcp_pair(fds);
    CHECK_SYS(ioctl(fds[0], FIONBIO, &on));
    CHECK_EQ(fcntl(fds[0], F_GETFL), O_RDWR | O_NONBLOCK);
    CHECK_ERRNO(recv(fds[0], &byte, 1, 0), EAGAIN);
    CHECK_ERRNO(read(fds[0], &byte, 1), EAGAIN);
    CHECK_SYS(ioctl(fds[0], FIONBIO, &off));
    CHECK_EQ(fcntl(fds[0], F_GETFL), O_RDWR);
    pthread_t writer = later(20, put_byte, fds[1]);
    CHECK_EQ(recv(fds[0], &byte, 1, 0), 1);
    join(writer);
    CHECK_EQ(write(fds[1], "abc", 3), 3);
    struct pollfd watch = {fds[0], POLLIN, 0};
    CHECK_EQ(poll(&watch, 1, -1), 1);
    CHECK_SYS(ioctl(fds[0], FIONREAD, &count));
    CHECK_EQ(count, 3);
    CHECK_ERRNO(ioctl(-1, FIONBIO, &on), EBADF);
    close_pair(fds);
}

static void set_at_birth(void)
{
    int fds[2];
    char byte;
    CHECK_SYS(pipe2(fds, O_NONBLOCK | O_CLOEXEC));
    CHECK_EQ(fcntl(fds[0], F_GETFL), O_RDONLY | O_NONBLOCK);
    CHECK_EQ(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
    CHECK_ERRNO(read(fds[0], &byte, 1), EAGAIN);
    close_pair(fds);
    CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds));
    CHECK_EQ(fcntl(fds[1], F_GETFL), O_RDWR | O_NONBLOCK);
    CHECK_ERRNO(recv(fds[0], &byte, 1, 0), EAGAIN);
    CHECK_ERRNO(recv(fds[1], &byte, 1, MSG_WAITALL), EAGAIN);
    close_pair(fds);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in addr = loopback(0);
    CHECK_SYS(bind(fd, (struct sockaddr *)&addr, sizeof addr));
    CHECK_ERRNO(recvfrom(fd, &byte, 1, 0, NULL, NULL), EAGAIN);
    CHECK_SYS(close(fd));
    fd = eventfd(0, EFD_NONBLOCK);
    uint64_t number;
    CHECK_ERRNO(read(fd, &number, 8), EAGAIN);
    CHECK_SYS(close(fd));
}

static void writing(void)
{
    int fds[2];
    CHECK_SYS(pipe(fds));
    int room = fcntl(fds[1], F_GETPIPE_SZ);
    set_nonblock(fds[1], true);
    CHECK_EQ(write(fds[1], big, sizeof big), room);
    CHECK_ERRNO(write(fds[1], big, 1), EAGAIN);
    CHECK_EQ(read(fds[0], big, 4096), 4096);
    CHECK_EQ(write(fds[1], big, sizeof big), 4096);
    close_pair(fds);
    tcp_pair(fds);
    set_nonblock(fds[0], true);
    ssize_t total = 0, n;
    while ((n = send(fds[0], big, sizeof big, 0)) > 0)
        total += n;
    CHECK_EQ(errno, EAGAIN);
    CHECK(total > 0);
    CHECK_ERRNO(write(fds[0], big, 1), EAGAIN);
    close_pair(fds);
}

static void set_through_a_copy(void)
{
    int fds[2];
    char byte;
    CHECK_SYS(pipe(fds));
    int copy = dup(fds[0]);
    set_nonblock(copy, true);
    CHECK_ERRNO(read(fds[0], &byte, 1), EAGAIN);
    set_nonblock(fds[0], false);
    pthread_t writer = later(20, put_byte, fds[1]);
    CHECK_EQ(read(copy, &byte, 1), 1);
    join(writer);
    CHECK_SYS(close(copy));
    close_pair(fds);
}

/* While one thread waits, others see the flag as the program set it, and a wait that has begun goes on. */
struct waiter {
    int fd;
    bool socket;
};

static void *wait_for_a_byte(void *arg)
{
    struct waiter *waiter = arg;
    char byte;
    CHECK_EQ(waiter->socket ? recv(waiter->fd, &byte, 1, 0) : read(waiter->fd, &byte, 1), 1);
    return NULL;
}

static void *fill_it(void *arg)
{
    int fd = *(int *)arg;
    CHECK_EQ(write(fd, big, sizeof big), (int)sizeof big);
    return NULL;
}

static void the_flag_stays_what_it_is(void)
{
    for (int kind = 0; kind < 3; kind++) {
        int fds[2];
        char byte;
        if (kind == 0)
            CHECK_SYS(pipe(fds));
        else
            (kind == 1 ? tcp_pair : unix_pair)(fds);
        int reading = kind ? O_RDWR : O_RDONLY, writing = kind ? O_RDWR : O_WRONLY;
        struct waiter waiter = {fds[0], kind != 0};
        CHECK_EQ(fcntl(fds[0], F_GETFL), reading);
        pthread_t thread = start(wait_for_a_byte, &waiter);
        sleep_ms(20);
        CHECK_EQ(fcntl(fds[0], F_GETFL), reading);
        CHECK_EQ(fcntl(fds[1], F_GETFL), writing);
        put_byte(fds[1]);
        join(thread);
        CHECK_EQ(fcntl(fds[0], F_GETFL), reading);

        thread = start(wait_for_a_byte, &waiter);
        sleep_ms(20);
        set_nonblock(fds[0], true);
        CHECK_ERRNO(read(fds[0], &byte, 1), EAGAIN);
        CHECK_EQ(fcntl(fds[0], F_GETFL), reading | O_NONBLOCK);
        put_byte(fds[1]);
        join(thread);
        CHECK_EQ(fcntl(fds[0], F_GETFL), reading | O_NONBLOCK);
        set_nonblock(fds[0], false);

        thread = start(fill_it, &fds[1]);
        sleep_ms(20);
        CHECK_EQ(fcntl(fds[1], F_GETFL), writing);
        char *bytes = malloc(sizeof big);
        CHECK_EQ(read_all(fds[0], bytes, sizeof big), sizeof big);
        free(bytes);
        join(thread);
        CHECK_EQ(fcntl(fds[1], F_GETFL), writing);
        close_pair(fds);
    }
}

static void during_connect_and_accept(void)
{
    int listener = tcp_listener(4);
    pthread_t closer = later(40, shut_read, listener);
    set_nonblock(listener, false);
    CHECK_EQ(fcntl(listener, F_GETFL), O_RDWR);
    CHECK_ERRNO(accept(listener, NULL, NULL), EINVAL);
    CHECK_EQ(fcntl(listener, F_GETFL), O_RDWR);
    join(closer);
    CHECK_SYS(close(listener));
}

static void other_flags_survive(void)
{
    int fds[2];
    CHECK_SYS(pipe2(fds, O_DIRECT));
    CHECK_EQ(fcntl(fds[1], F_GETFL), O_WRONLY | O_DIRECT);
    set_nonblock(fds[1], true);
    CHECK_EQ(fcntl(fds[1], F_GETFL), O_WRONLY | O_DIRECT | O_NONBLOCK);
    CHECK_SYS(fcntl(fds[1], F_SETFL, 0));
    CHECK_EQ(fcntl(fds[1], F_GETFL), O_WRONLY);
    CHECK_SYS(fcntl(fds[0], F_SETFL, O_ASYNC | O_NONBLOCK));
    CHECK_EQ(fcntl(fds[0], F_GETFL), O_RDONLY | O_ASYNC | O_NONBLOCK);
    CHECK_ERRNO(fcntl(-1, F_GETFL), EBADF);
    CHECK_ERRNO(fcntl(-1, F_SETFL, O_NONBLOCK), EBADF);
    close_pair(fds);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGIO, SIG_IGN);
    RUN(set_by_fcntl);
    RUN(set_by_ioctl);
    RUN(set_at_birth);
    RUN(writing);
    RUN(set_through_a_copy);
    RUN(the_flag_stays_what_it_is);
    RUN(during_connect_and_accept);
    RUN(other_flags_survive);
    return 0;
}
