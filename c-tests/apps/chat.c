/* A chat room over TCP: a thread a guest, each line sent to all under the room's lock; everybody sees the same order. */
#include "../posix/fds.h"

enum { GUESTS = 24, LINES = 25, LINE = 64 };

/* ---- the room ---- */

static int listener;
static pthread_mutex_t room = PTHREAD_MUTEX_INITIALIZER;
static int members[GUESTS], present;

static void tell_all(const char *line)
{
    for (int i = 0; i < present; i++)
        write_all(members[i], line, strlen(line));
}

static bool read_line(FILE *in, char line[LINE])
{
    return fgets(line, LINE, in) != NULL;
}

static void *attend(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char line[LINE];
    FILE *in = fdopen(dup(fd), "r");
    CHECK(in != NULL);
    pthread_mutex_lock(&room);
    members[present++] = fd;
    if (present == GUESTS)
        tell_all("welcome\n");
    pthread_mutex_unlock(&room);
    while (read_line(in, line) && strcmp(line, "/quit\n") != 0) {
        pthread_mutex_lock(&room);
        tell_all(line);
        pthread_mutex_unlock(&room);
    }
    fclose(in);
    CHECK_SYS(shutdown(fd, SHUT_WR));
    return NULL;
}

static void *keep_open(void *arg)
{
    pthread_t threads[GUESTS];
    int fds[GUESTS];
    for (int i = 0; i < GUESTS; i++) {
        fds[i] = accept(listener, NULL, NULL);
        CHECK_SYS(fds[i]);
        threads[i] = start(attend, (void *)(intptr_t)fds[i]);
    }
    for (int i = 0; i < GUESTS; i++)
        join(threads[i]);
    for (int i = 0; i < GUESTS; i++)
        CHECK_SYS(close(fds[i]));
    return arg;
}

/* ---- a guest: one thread listens, one talks ---- */

struct guest {
    int number, fd;
    uint64_t heard; /* what was heard, in its order */
    pthread_barrier_t welcome;
};

static void *hear(void *arg)
{
    struct guest *guest = arg;
    int next[GUESTS] = {0}, who, what;
    char line[LINE];
    FILE *in = fdopen(dup(guest->fd), "r");
    CHECK(read_line(in, line));
    CHECK_STR(line, "welcome\n");
    pthread_barrier_wait(&guest->welcome);
    for (int i = 0; i < GUESTS * LINES; i++) {
        CHECK(read_line(in, line));
        CHECK_EQ(sscanf(line, "guest %d says %d\n", &who, &what), 2);
        CHECK_EQ(what, next[who]);
        next[who]++;
        guest->heard = guest->heard * 31 + (uint64_t)(who * LINES + what + 1);
    }
    write_all(guest->fd, "/quit\n", 6);
    CHECK(!read_line(in, line));
    fclose(in);
    return NULL;
}

static void *visit(void *arg)
{
    struct guest *guest = arg;
    char line[LINE];
    guest->fd = tcp_connect(port_of(listener));
    CHECK_OK(pthread_barrier_init(&guest->welcome, NULL, 2));
    pthread_t ears = start(hear, guest);
    pthread_barrier_wait(&guest->welcome);
    for (int i = 0; i < LINES; i++) {
        int size = snprintf(line, sizeof line, "guest %d says %d\n", guest->number, i);
        write_all(guest->fd, line, (size_t)size);
        if (i % 8 == guest->number % 8)
            sleep_ms(1);
    }
    join(ears);
    CHECK_OK(pthread_barrier_destroy(&guest->welcome));
    CHECK_SYS(close(guest->fd));
    return NULL;
}

int main(void)
{
    static struct guest guests[GUESTS];
    pthread_t threads[GUESTS];
    signal(SIGPIPE, SIG_IGN);
    listener = tcp_listener(GUESTS);
    pthread_t server = start(keep_open, NULL);
    for (int i = 0; i < GUESTS; i++) {
        guests[i].number = i;
        threads[i] = start(visit, &guests[i]);
    }
    for (int i = 0; i < GUESTS; i++) {
        join(threads[i]);
        CHECK(guests[i].heard == guests[0].heard);
    }
    join(server);
    CHECK_SYS(close(listener));
    printf("%d guests heard %d lines in one order\n", GUESTS, GUESTS * LINES);
    return 0;
}
