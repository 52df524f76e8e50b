/* dup and its kin: the copies share the description - data, O_NONBLOCK, position - and not FD_CLOEXEC. */
#include "fds.h"

static void waits_through_any_number(void)
{
    int fds[2];
    char byte;
    CHECK_SYS(pipe(fds));
    int copies[] = {dup(fds[0]), fcntl(fds[0], F_DUPFD, 50), fcntl(fds[0], F_DUPFD_CLOEXEC, 60), dup2(fds[0], 70),
                    dup3(fds[0], 80, O_CLOEXEC)};
    CHECK(copies[1] >= 50 && copies[2] >= 60 && copies[3] == 70 && copies[4] == 80);
    for (int i = 0; i < 5; i++) {
        CHECK_SYS(copies[i]);
        CHECK_EQ(fcntl(copies[i], F_GETFD), i == 2 || i == 4 ? FD_CLOEXEC : 0);
        pthread_t writer = later(10, put_byte, fds[1]);
        CHECK_EQ(read(copies[i], &byte, 1), 1);
        join(writer);
    }
    CHECK_SYS(close(fds[0]));
    for (int i = 0; i < 5; i++) {
        pthread_t writer = later(10, put_byte, fds[1]);
        CHECK_EQ(read(copies[i], &byte, 1), 1);
        join(writer);
        CHECK_SYS(close(copies[i]));
    }
    CHECK_ERRNO(write(fds[1], "x", 1), EPIPE);
    CHECK_SYS(close(fds[1]));
}

static void nonblock_is_shared(void)
{
    int fds[2];
    char byte;
    unix_pair(fds);
    int copy = dup(fds[0]);
    set_nonblock(copy, true);
    CHECK_EQ(fcntl(fds[0], F_GETFL), O_RDWR | O_NONBLOCK);
    CHECK_ERRNO(recv(fds[0], &byte, 1, 0), EAGAIN);
    CHECK_ERRNO(recv(copy, &byte, 1, 0), EAGAIN);
    set_nonblock(fds[0], false);
    CHECK_EQ(fcntl(copy, F_GETFL), O_RDWR);
    pthread_t writer = later(20, put_byte, fds[1]);
    CHECK_EQ(recv(copy, &byte, 1, 0), 1);
    join(writer);
    set_timeout(copy, SO_RCVTIMEO, 40);
    int64_t begun = now_ns();
    CHECK_ERRNO(recv(fds[0], &byte, 1, 0), EAGAIN);
    CHECK_LASTED(begun, 35);
    CHECK_SYS(close(copy));
    close_pair(fds);
}

static void dup2_over_an_open_one(void)
{
    int fds[2], other[2];
    char byte;
    CHECK_SYS(pipe(fds));
    unix_pair(other);
    set_nonblock(other[0], true);
    CHECK_ERRNO(read(other[0], &byte, 1), EAGAIN);
    /* other[0] becomes a blocking pipe; its peer sees it go. */
    CHECK_EQ(dup2(fds[0], other[0]), other[0]);
    CHECK_EQ(read(other[1], &byte, 1), 0);
    CHECK_EQ(fcntl(other[0], F_GETFL), O_RDONLY);
    pthread_t writer = later(20, put_byte, fds[1]);
    CHECK_EQ(read(other[0], &byte, 1), 1);
    join(writer);
    CHECK_ERRNO(recv(other[0], &byte, 1, 0), ENOTSOCK);
    close_pair(other);
    close_pair(fds);

    unix_pair(other);
    CHECK_SYS(pipe(fds));
    CHECK_EQ(dup3(other[0], fds[0], O_CLOEXEC), fds[0]);
    CHECK_EQ(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
    writer = later(20, put_byte, other[1]);
    CHECK_EQ(recv(fds[0], &byte, 1, 0), 1);
    join(writer);
    CHECK_EQ(dup2(other[0], fds[0]), fds[0]);
    CHECK_EQ(fcntl(fds[0], F_GETFD), 0);
    close_pair(other);
    close_pair(fds);
}

static int null;
static void replace_by_null(int fd) { CHECK_EQ(dup2(null, fd), fd); }

/* Somebody reads while the only writer is replaced by another file. */
static void dup2_wakes_the_other_end(void)
{
    int fds[2];
    char byte;
    null = open("/dev/null", O_RDWR);
    CHECK_SYS(null);
    CHECK_SYS(pipe(fds));
    pthread_t replacer = later(20, replace_by_null, fds[1]);
    CHECK_EQ(read(fds[0], &byte, 1), 0);
    join(replacer);
    CHECK_EQ(write(fds[1], "x", 1), 1);
    close_pair(fds);
    CHECK_SYS(close(null));
}

static void position_is_shared(void)
{
    int fd = temp_file(), copy = dup(fd);
    char bytes[8];
    CHECK_EQ(write(fd, "abcdef", 6), 6);
    CHECK_EQ(lseek(copy, 2, SEEK_SET), 2);
    CHECK_EQ(read(fd, bytes, 2), 2);
    CHECK_EQ(read(copy, bytes, 8), 2);
    CHECK(memcmp(bytes, "ef", 2) == 0);
    CHECK_SYS(close(fd));
    CHECK_SYS(close(copy));
}

static void errors(void)
{
    int fds[2];
    struct rlimit files;
    CHECK_SYS(getrlimit(RLIMIT_NOFILE, &files));
    CHECK_SYS(pipe(fds));
    CHECK_ERRNO(dup(-1), EBADF);
    CHECK_ERRNO(dup2(-1, fds[0]), EBADF);
    CHECK_ERRNO(dup2(fds[0], -1), EBADF);
    CHECK_ERRNO(dup2(fds[0], (int)files.rlim_cur), EBADF);
    CHECK_EQ(dup2(fds[0], fds[0]), fds[0]);
    CHECK_ERRNO(dup3(fds[0], fds[0], 0), EINVAL);
    CHECK_ERRNO(dup3(fds[0], fds[1], 1), EINVAL);
    CHECK_ERRNO(fcntl(fds[0], F_DUPFD, -1), EINVAL);
    CHECK_ERRNO(fcntl(fds[0], F_DUPFD, (int)files.rlim_cur), EINVAL);
    CHECK_ERRNO(fcntl(-1, F_DUPFD, 0), EBADF);
    CHECK_ERRNO(fcntl(fds[0], 12345), EINVAL);
    close_pair(fds);
    CHECK_ERRNO(dup2(fds[0], fds[0]), EBADF);
}

/* Commands of fcntl that have nothing to do with waiting go to the kernel as they are. */
static void other_commands(void)
{
    int fds[2];
    CHECK_SYS(pipe(fds));
    CHECK_EQ(fcntl(fds[0], F_SETPIPE_SZ, 16384), 16384);
    CHECK_EQ(fcntl(fds[1], F_GETPIPE_SZ), 16384);
    CHECK_SYS(fcntl(fds[0], F_SETFD, FD_CLOEXEC));
    CHECK_EQ(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
    CHECK_SYS(fcntl(fds[0], F_SETOWN, getpid()));
    CHECK_EQ(fcntl(fds[0], F_GETOWN), getpid());
    struct f_owner_ex owner = {0};
    CHECK_SYS(fcntl(fds[0], F_GETOWN_EX, &owner));
    CHECK_EQ(owner.pid, getpid());
    CHECK_SYS(fcntl(fds[0], F_SETSIG, SIGUSR1));
    CHECK_EQ(fcntl(fds[0], F_GETSIG), SIGUSR1);
    close_pair(fds);
    int fd = temp_file();
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    CHECK_SYS(fcntl(fd, F_SETLK, &lock));
    CHECK_SYS(fcntl(fd, F_GETLK, &lock));
    CHECK_EQ(lock.l_type, F_UNLCK);
    CHECK_SYS(close(fd));
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    RUN(waits_through_any_number);
    RUN(nonblock_is_shared);
    RUN(dup2_over_an_open_one);
    RUN(dup2_wakes_the_other_end);
    RUN(position_is_shared);
    RUN(errors);
    RUN(other_commands);
    return 0;
}
