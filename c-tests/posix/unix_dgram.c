/* Unix datagrams: names, bounds, a receiver's queue that is full, receivers that are not there. */
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

static void names_and_bounds(void)
{
    struct sockaddr_un to, from, expected;
    socklen_t size = name_it(&to, "b"), got = sizeof from;
    char buffer[16];
    int a = named("a"), b = named("b");
    CHECK_EQ(sendto(a, "hello", 5, 0, (struct sockaddr *)&to, size), 5);
    CHECK_EQ(sendto(a, "again!", 6, 0, (struct sockaddr *)&to, size), 6);
    CHECK_EQ(recvfrom(b, buffer, sizeof buffer, 0, (struct sockaddr *)&from, &got), 5);
    CHECK_EQ(got, name_it(&expected, "a"));
    CHECK_STR(from.sun_path, expected.sun_path);
    CHECK_EQ(recvfrom(b, buffer, 3, MSG_TRUNC, NULL, NULL), 6);
    CHECK_ERRNO(recv(b, buffer, 3, MSG_DONTWAIT), EAGAIN);
    /* A nameless sender has no address. */
    int nameless = socket(AF_UNIX, SOCK_DGRAM, 0);
    CHECK_EQ(sendto(nameless, "", 0, 0, (struct sockaddr *)&to, size), 0);
    got = sizeof from;
    CHECK_EQ(recvfrom(b, buffer, sizeof buffer, 0, (struct sockaddr *)&from, &got), 0);
    CHECK_EQ(got, 0);
    CHECK_SYS(close(nameless));
    CHECK_SYS(close(a));
    CHECK_SYS(close(b));
    remove_name("a");
    remove_name("b");
}

static void nobody_there(void)
{
    struct sockaddr_un to;
    socklen_t size = name_it(&to, "nobody");
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    char byte = 0;
    CHECK_ERRNO(sendto(fd, &byte, 1, 0, (struct sockaddr *)&to, size), ENOENT);
    CHECK_ERRNO(connect(fd, (struct sockaddr *)&to, size), ENOENT);
    CHECK_ERRNO(send(fd, &byte, 1, 0), ENOTCONN);
    int other = named("nobody");
    CHECK_SYS(connect(fd, (struct sockaddr *)&to, size));
    CHECK_EQ(send(fd, &byte, 1, 0), 1);
    CHECK_SYS(close(other));
    CHECK_ERRNO(send(fd, &byte, 1, 0), ECONNREFUSED);
    CHECK_ERRNO(send(fd, &byte, 1, 0), ENOTCONN);
    CHECK_ERRNO(sendto(fd, &byte, 1, 0, (struct sockaddr *)&to, size), ECONNREFUSED);
    CHECK_SYS(close(fd));
    remove_name("nobody");
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

static void abstract_names(void)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX}, from;
    socklen_t size = sizeof(sa_family_t), got = sizeof from;
    char buffer[8];
    int a = socket(AF_UNIX, SOCK_DGRAM, 0), b = socket(AF_UNIX, SOCK_DGRAM, 0);
    CHECK_SYS(bind(a, (struct sockaddr *)&addr, size)); /* the kernel chooses a name */
    CHECK_SYS(bind(b, (struct sockaddr *)&addr, size));
    CHECK_SYS(getsockname(a, (struct sockaddr *)&from, &got));
    CHECK_EQ(got, sizeof(sa_family_t) + 6);
    CHECK_EQ(from.sun_path[0], 0);
    CHECK_EQ(sendto(b, "to a", 4, 0, (struct sockaddr *)&from, got), 4);
    got = sizeof from;
    CHECK_EQ(recvfrom(a, buffer, 8, 0, (struct sockaddr *)&from, &got), 4);
    CHECK_EQ(sendto(a, "back", 4, 0, (struct sockaddr *)&from, got), 4);
    CHECK_EQ(recv(b, buffer, 8, 0), 4);
    CHECK(memcmp(buffer, "back", 4) == 0);
    CHECK_SYS(close(a));
    CHECK_SYS(close(b));
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    temp_dir(directory);
    RUN(names_and_bounds);
    RUN(nobody_there);
    RUN(a_full_queue_connected);
    RUN(a_full_queue_by_address);
    RUN(a_full_queue_and_no_patience);
    RUN(the_receiver_leaves);
    RUN(abstract_names);
    CHECK_SYS(rmdir(directory));
    return 0;
}
