/* What a child that a thread starts has open: what it should inherit, and nothing else. */
#include "fds.h"
#include <dirent.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;
static char expected[1024];

/* The open descriptors of this process, all or those that a child inherits, as text. */
static void list(char *text, size_t room, bool all)
{
    DIR *dir = opendir("/proc/self/fd");
    bool open[4096] = {false};
    struct dirent *entry;
    CHECK(dir != NULL);
    while ((entry = readdir(dir)) != NULL) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd != dirfd(dir)) {
            CHECK(fd < 4096);
            open[fd] = true;
        }
    }
    closedir(dir);
    size_t at = 0;
    text[0] = '\0';
    for (int fd = 0; fd < 4096; fd++)
        if (open[fd] && (all || (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0))
            at += (size_t)snprintf(text + at, room - at, "%d ", fd);
}

static char *self[] = {"/proc/self/exe", "list", NULL};

/* Reads what a child printed, waits for it, compares. */
static void check_child(int fd, pid_t child, const char *how)
{
    char text[1024] = "";
    int status;
    read_all(fd, text, sizeof text - 1);
    CHECK_SYS(close(fd));
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    if (strcmp(text, expected) != 0)
        CHECK_FAIL("by %s the child has \"%s\", not \"%s\"", how, text, expected);
}

/* Threads that keep many descriptors busy meanwhile, all of them close-on-exec. */
static volatile bool enough;

static void *be_busy(void *arg)
{
    (void)arg;
    while (!enough) {
        int fds[2];
        CHECK_SYS(pipe2(fds, O_CLOEXEC));
        pthread_t writer = later(1, put_byte, fds[1]);
        get_byte(fds[0]);
        join(writer);
        close_pair(fds);
    }
    return NULL;
}

static void by_posix_spawn(void)
{
    int fds[2];
    pid_t child;
    posix_spawn_file_actions_t actions;
    CHECK_SYS(pipe2(fds, O_CLOEXEC));
    CHECK_OK(posix_spawn_file_actions_init(&actions));
    CHECK_OK(posix_spawn_file_actions_adddup2(&actions, fds[1], 1));
    CHECK_OK(posix_spawn(&child, self[0], &actions, NULL, self, environ));
    CHECK_OK(posix_spawn_file_actions_destroy(&actions));
    CHECK_SYS(close(fds[1]));
    check_child(fds[0], child, "posix_spawn");
}

static void by_fork_and_exec(void)
{
    int fds[2];
    CHECK_SYS(pipe2(fds, O_CLOEXEC));
    pid_t child = fork();
    CHECK_SYS(child);
    if (child == 0) {
        dup2(fds[1], 1);
        execv(self[0], self);
        _exit(127);
    }
    CHECK_SYS(close(fds[1]));
    check_child(fds[0], child, "fork and exec");
}

static void by_popen(void)
{
    char command[64], text[1024] = "";
    snprintf(command, sizeof command, "exec /proc/%d/exe list", (int)getpid());
    FILE *child = popen(command, "re");
    CHECK(child != NULL);
    CHECK(fgets(text, sizeof text, child) != NULL);
    CHECK_EQ(pclose(child), 0);
    CHECK_STR(text, expected);
}

/* A child that does not exec has what its parent had, and can wait on it. */
static void by_fork_alone(void)
{
    int fds[2];
    char byte;
    CHECK_SYS(pipe(fds));
    fflush(stdout);
    pid_t child = fork();
    CHECK_SYS(child);
    if (child == 0) {
        struct timespec span = {0, 20000000};
        nanosleep(&span, NULL);
        _exit(write(fds[1], "c", 1) == 1 ? 0 : 1);
    }
    CHECK_EQ(read(fds[0], &byte, 1), 1);
    CHECK_EQ(byte, 'c');
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    child = fork();
    CHECK_SYS(child);
    if (child == 0)
        _exit(read(fds[0], &byte, 1) == 1 && byte == 'x' ? 0 : 1);
    sleep_ms(20);
    put_byte(fds[1]);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    close_pair(fds);
}

static void the_lowest_number_is_free(void)
{
    int first = open("/dev/null", O_RDONLY | O_CLOEXEC), second = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(second, first + 1);
    CHECK_SYS(close(first));
    CHECK_SYS(close(second));
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "list") == 0) {
        char text[1024];
        list(text, sizeof text, true);
        printf("%s", text);
        return 0;
    }
    int inherited = open("/dev/null", O_RDONLY), private = open("/dev/null", O_RDONLY | O_CLOEXEC);
    list(expected, sizeof expected, false);
    RUN(the_lowest_number_is_free);
    RUN(by_posix_spawn);
    RUN(by_fork_and_exec);
    RUN(by_popen);
    RUN(by_fork_alone);
    pthread_t busy[4];
    for (int i = 0; i < 4; i++)
        busy[i] = start(be_busy, NULL);
    RUN(by_posix_spawn);
    RUN(by_fork_and_exec);
    RUN(by_popen);
    enough = true;
    for (int i = 0; i < 4; i++)
        join(busy[i]);
    CHECK_SYS(close(inherited));
    CHECK_SYS(close(private));
    return 0;
}
