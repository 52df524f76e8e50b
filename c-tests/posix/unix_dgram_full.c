/* A unix datagram receiver whose queue is full: senders wait, with and without a connection or a time limit. */
#include "fds.h"
#include <stddef.h>

static char directory[64];

static socklen_t name_it(struct sockaddr_un *addr, const char *name)
{
    memset(addr, 0, sizeof *addr);
    addr->sun_family = AF_UNIX;
    snprintf(addr->sun_path, sizeof addr->sun_path, "%s/%s", directory, name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(addr->sun_path) + 1);
}

static int named(const char *name)
{
    struct sockaddr_un addr;
    socklen_t size = name_it(&addr, name);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    CHECK_SYS(fd);
    CHECK_SYS(bind(fd, (struct sockaddr *)&addr, size));
    return fd;
}

static void remove_name(const char *name)
{
    struct sockaddr_un addr;
    name_it(&addr, name);
    CHECK_SYS(unlink(addr.sun_path));
}

enum { MESSAGES = 3000 };

static void *send_many(void *arg)
{
    int fd = *(int *)arg;
    for (int i = 0; i < MESSAGES; i++)
        CHECK_EQ(send(fd, &i, sizeof i, 0), (int)sizeof i);
    return NULL;
}

static void *sendto_many(void *arg)
{
    struct sockaddr_un to;
    socklen_t size = name_it(&to, "full");
    for (int i = 0; i < MESSAGES; i++)
        CHECK_EQ(sendto(*(int *)arg, &i, sizeof i, 0, (struct sockaddr *)&to, size), (int)sizeof i);
    return NULL;
}

static void receive_many(int fd)
{
    sleep_ms(30);
    for (int i = 0; i < MESSAGES; i++) {
        int number;
        CHECK_EQ(recv(fd, &number, sizeof number, 0), (int)sizeof number);
        CHECK_EQ(number, i);
        if (i % 300 == 0)
            sleep_ms(1);
    }
    CHECK_ERRNO(recv(fd, &(int){0}, 4, MSG_DONTWAIT), EAGAIN);
}

static void a_full_queue_connected(void)
{
    struct sockaddr_un to;
    socklen_t size = name_it(&to, "full");
    int receiver = named("full"), sender = socket(AF_UNIX, SOCK_DGRAM, 0);
    CHECK_SYS(connect(sender, (struct sockaddr *)&to, size));
    pthread_t thread = start(send_many, &sender);
    receive_many(receiver);
    join(thread);
    CHECK_SYS(close(sender));
    CHECK_SYS(close(receiver));
    remove_name("full");
}

/* poll says that an unconnected socket may send although the receiver's queue is full; a sender waits all the same. */
static void a_full_queue_by_address(void)
{
    int receiver = named("full"), sender = socket(AF_UNIX, SOCK_DGRAM, 0);
    pthread_t thread = start(sendto_many, &sender);
    receive_many(receiver);
    join(thread);
    CHECK_SYS(close(sender));
    CHECK_SYS(close(receiver));
    remove_name("full");
}

static void a_full_queue_and_no_patience(void)
{
    struct sockaddr_un to;
    socklen_t size = name_it(&to, "full");
    int receiver = named("full"), sender = socket(AF_UNIX, SOCK_DGRAM, 0), count = 0;
    while (sendto(sender, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&to, size) == 1)
        count++;
    CHECK_EQ(errno, EAGAIN);
    CHECK(count > 0);
    set_timeout(sender, SO_SNDTIMEO, 40);
    int64_t begun = now_ns();
    CHECK_ERRNO(sendto(sender, "x", 1, 0, (struct sockaddr *)&to, size), EAGAIN);
    CHECK_LASTED(begun, 30);
    CHECK_SYS(connect(sender, (struct sockaddr *)&to, size));
    begun = now_ns();
    CHECK_ERRNO(send(sender, "x", 1, 0), EAGAIN);
    CHECK_LASTED(begun, 30);
    CHECK_SYS(close(sender));
    CHECK_SYS(close(receiver));
    remove_name("full");
}

static void *send_one(void *arg)
{
    struct sockaddr_un to;
    socklen_t size = name_it(&to, "full");
    CHECK_ERRNO(sendto(*(int *)arg, "x", 1, 0, (struct sockaddr *)&to, size), ECONNREFUSED);
    return NULL;
}

static void the_receiver_leaves(void)
{
    struct sockaddr_un to;
    socklen_t size = name_it(&to, "full");
    int receiver = named("full"), sender = socket(AF_UNIX, SOCK_DGRAM, 0);
    while (sendto(sender, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&to, size) == 1)
        ;
    pthread_t thread = start(send_one, &sender);
    sleep_ms(30);
    CHECK_SYS(close(receiver));
    join(thread);
    CHECK_SYS(close(sender));
    remove_name("full");
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    temp_dir(directory);
    RUN(a_full_queue_connected);
    RUN(a_full_queue_by_address);
    RUN(a_full_queue_and_no_patience);
    RUN(the_receiver_leaves);
    CHECK_SYS(rmdir(directory));
    return 0;
}
