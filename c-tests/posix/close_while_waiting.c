/* close of what somebody waits on, as far as it must be the same everywhere: the other end going away, another number
 * of the same description going away, and a number whose waiter is left behind being used again at once. */
#include "fds.h"

static void the_other_end_of_a_pipe(void)
{
    int fds[2];
    char byte;
    CHECK_SYS(pipe(fds));
    pthread_t closer = later(20, close_it, fds[1]);
    CHECK_EQ(read(fds[0], &byte, 1), 0);
    join(closer);
    CHECK_SYS(close(fds[0]));
}

static void the_other_end_of_a_socket(void)
{
    int fds[2];
    char byte;
    for (int tcp = 0; tcp < 2; tcp++) {
        (tcp ? tcp_pair : unix_pair)(fds);
        pthread_t closer = later(20, close_it, fds[1]);
        CHECK_EQ(recv(fds[0], &byte, 1, 0), 0);
        join(closer);
        CHECK_SYS(close(fds[0]));
    }
}

static void the_other_end_while_polling(void)
{
    int fds[2];
    unix_pair(fds);
    struct pollfd watch = {fds[0], 0, 0};
    pthread_t closer = later(20, close_it, fds[1]);
    CHECK_EQ(poll(&watch, 1, -1), 1);
    CHECK_EQ(watch.revents, POLLHUP);
    join(closer);
    CHECK_SYS(close(fds[0]));
}

/* The description lives on under its second number: neither the waiter nor the registration may be lost. */
static void a_second_number(void)
{
    for (int kind = 0; kind < 3; kind++) {
        int fds[2];
        char byte;
        if (kind == 0)
            CHECK_SYS(pipe(fds));
        else
            (kind == 1 ? tcp_pair : unix_pair)(fds);
        int second = dup(fds[0]);
        CHECK_SYS(second);

        pthread_t closer = later(10, close_it, second), writer = later(40, put_byte, fds[1]);
        CHECK_EQ(read(fds[0], &byte, 1), 1);
        join(closer);
        join(writer);

        second = dup(fds[0]);
        writer = later(20, put_byte, fds[1]);
        CHECK_EQ(read(second, &byte, 1), 1);
        join(writer);
        CHECK_SYS(close(fds[0]));
        writer = later(20, put_byte, fds[1]);
        CHECK_EQ(read(second, &byte, 1), 1);
        join(writer);
        pthread_t end = later(20, close_it, fds[1]);
        CHECK_EQ(read(second, &byte, 1), 0);
        join(end);
        CHECK_SYS(close(second));
    }
}

static void a_second_number_of_the_writer(void)
{
    int fds[2];
    char byte;
    CHECK_SYS(pipe(fds));
    int second = dup(fds[1]);
    pthread_t first_closer = later(10, close_it, fds[1]), writer = later(30, put_byte, second);
    CHECK_EQ(read(fds[0], &byte, 1), 1);
    join(first_closer);
    join(writer);
    pthread_t closer = later(20, close_it, second);
    CHECK_EQ(read(fds[0], &byte, 1), 0);
    join(closer);
    CHECK_SYS(close(fds[0]));
}

/* Natively a reader whose number was closed reads on; elsewhere it may be told EBADF. Either way it ends when its
 * peer goes, and the new owner of the number gets what is the new owner's. */
struct left_behind {
    int fd;
    ssize_t result;
    char byte;
};

static void *left_behind_body(void *arg)
{
    struct left_behind *left = arg;
    left->result = read(left->fd, &left->byte, 1);
    if (left->result < 0)
        CHECK_EQ(errno, EBADF);
    return NULL;
}

static void the_number_is_used_again(void)
{
    for (int round = 0; round < 50; round++) {
        int old[2], new[2];
        char bytes[8];
        if (round % 2)
            CHECK_SYS(pipe(old));
        else
            unix_pair(old);
        struct left_behind left = {old[0], 99, 0};
        pthread_t reader = start(left_behind_body, &left);
        sleep_ms(round % 5);
        CHECK_SYS(close(old[0]));
        if (round % 3)
            CHECK_SYS(pipe(new));
        else
            unix_pair(new);
        CHECK_EQ(new[0], old[0]);
        /* A reader that had not begun reads from the new descriptor, and gets one of these. */
        CHECK_EQ(write(new[1], "nn", 2), 2);
        CHECK_SYS(close(new[1]));
        CHECK_SYS(close(old[1]));
        join(reader);
        CHECK(left.result <= 0 || left.byte == 'n');
        CHECK_EQ(read_all(new[0], bytes, 8), left.result == 1 ? 1 : 2);
        CHECK_SYS(close(new[0]));
    }
}

static void close_tells_its_errors(void)
{
    int fds[2];
    CHECK_ERRNO(close(-1), EBADF);
    CHECK_ERRNO(close(1000000), EBADF);
    CHECK_SYS(pipe(fds));
    close_pair(fds);
    CHECK_ERRNO(close(fds[0]), EBADF);
    CHECK_ERRNO(close(fds[1]), EBADF);
}

static void *open_and_close(void *arg)
{
    (void)arg;
    for (int i = 0; i < 500; i++) {
        int fds[2];
        char byte;
        CHECK_SYS(pipe(fds));
        pthread_t closer = later(0, close_it, fds[1]);
        CHECK_EQ(read(fds[0], &byte, 1), 0);
        join(closer);
        CHECK_SYS(close(fds[0]));
    }
    return NULL;
}

static void many_at_once(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        threads[i] = start(open_and_close, NULL);
    for (int i = 0; i < 4; i++)
        join(threads[i]);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    RUN(the_other_end_of_a_pipe);
    RUN(the_other_end_of_a_socket);
    RUN(the_other_end_while_polling);
    RUN(a_second_number);
    RUN(a_second_number_of_the_writer);
    RUN(the_number_is_used_again);
    RUN(close_tells_its_errors);
    RUN(many_at_once);
    return 0;
}
