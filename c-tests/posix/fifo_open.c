/* Opening a named FIFO waits for the other end. */
#include "fds.h"

static char path[96];

static void *write_there(void *arg)
{
    (void)arg;
    sleep_ms(20);
    int fd = open(path, O_WRONLY);
    CHECK_SYS(fd);
    CHECK_EQ(write(fd, "hello", 5), 5);
    CHECK_SYS(close(fd));
    return NULL;
}

static void *read_there(void *arg)
{
    char bytes[8];
    (void)arg;
    int fd = open(path, O_RDONLY);
    CHECK_SYS(fd);
    CHECK_EQ(read_all(fd, bytes, 8), 5);
    CHECK_SYS(close(fd));
    return NULL;
}

static void each_end_waits_for_the_other(void)
{
    for (int i = 0; i < 20; i++) {
        pthread_t reader = start(read_there, NULL), writer = start(write_there, NULL);
        join(reader);
        join(writer);
    }
}

int main(void)
{
    char dir[64];
    temp_dir(dir);
    snprintf(path, sizeof path, "%s/fifo", dir);
    CHECK_SYS(mkfifo(path, 0600));
    RUN(each_end_waits_for_the_other);
    CHECK_SYS(unlink(path));
    CHECK_SYS(rmdir(dir));
    return 0;
}
