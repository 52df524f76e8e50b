/* Children started from a thread see the descriptors that the program meant them to see, under the numbers that the
 * kernel gives in a program without a library in between, and no others. The child is this program again, with an
 * argument: it prints its open descriptors. */
#include "fds.h"
#include <dirent.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;
static char self[256];

static void list_descriptors(void)
{
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    for (int fd = 0; fd < (int)files.rlim_cur; fd++)
        if (fcntl(fd, F_GETFD) != -1)
            printf(" %d", fd);
    printf("\n");
    fflush(stdout);
}

static void print_from(FILE *from)
{
    char line[256] = "(nothing)\n";
    CHECK(fgets(line, sizeof line, from) != NULL);
    printf(" %s", line);
}

static void check_exit(pid_t pid)
{
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
}

static void own_numbers(void)
{
    int fds[2];
    CHECK_SYS(pipe(fds));
    printf(" pipe %d %d", fds[0], fds[1]);
    int copy = dup(0), far = fcntl(0, F_DUPFD, 100), socket_ = socket(AF_INET, SOCK_STREAM, 0);
    printf(", dup %d, F_DUPFD %d, socket %d", copy, far, socket_);
    CHECK_SYS(close(fds[0]));
    int file = temp_file();
    printf(", file %d\n", file);
    CHECK_SYS(close(fds[1]));
    CHECK_SYS(close(copy));
    CHECK_SYS(close(far));
    CHECK_SYS(close(socket_));
    CHECK_SYS(close(file));
}

static void command(char out[300]) { snprintf(out, 300, "'%s' list", self); }

static void by_popen(void)
{
    char text[300];
    command(text);
    FILE *from = popen(text, "r");
    CHECK(from != NULL);
    print_from(from);
    CHECK_EQ(pclose(from), 0);
}

static void by_system(void)
{
    char text[300];
    command(text);
    fflush(stdout);
    CHECK_EQ(system(text), 0);
}

static void with_kept_and_closed_ones(void)
{
    int kept[2], closed[2];
    CHECK_SYS(pipe(kept));
    CHECK_SYS(pipe2(closed, O_CLOEXEC));
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), far = fcntl(0, F_DUPFD, 200);
    by_popen();
    by_system();
    close_pair(kept);
    close_pair(closed);
    CHECK_SYS(close(listener));
    CHECK_SYS(close(far));
}

static void by_posix_spawn(void)
{
    int fds[2];
    pid_t pid;
    char *argv[] = {self, "list", NULL};
    posix_spawn_file_actions_t actions;
    CHECK_SYS(pipe2(fds, O_CLOEXEC));
    CHECK_OK(posix_spawn_file_actions_init(&actions));
    CHECK_OK(posix_spawn_file_actions_adddup2(&actions, fds[1], 1));
    CHECK_OK(posix_spawn_file_actions_adddup2(&actions, 0, 7));
    CHECK_OK(posix_spawn_file_actions_addopen(&actions, 9, "/dev/null", O_RDONLY, 0));
    CHECK_OK(posix_spawn(&pid, self, &actions, NULL, argv, environ));
    CHECK_OK(posix_spawn_file_actions_destroy(&actions));
    CHECK_SYS(close(fds[1]));
    FILE *from = fdopen(fds[0], "r");
    print_from(from);
    fclose(from);
    check_exit(pid);
}

static void by_fork_and_exec(void)
{
    int fds[2];
    CHECK_SYS(pipe(fds));
    fflush(stdout);
    pid_t pid = fork();
    CHECK_SYS(pid);
    if (pid == 0) {
        if (dup2(fds[1], 1) != 1 || close(fds[0]) != 0 || close(fds[1]) != 0)
            _exit(2);
        execl(self, self, "list", NULL);
        _exit(127);
    }
    CHECK_SYS(close(fds[1]));
    FILE *from = fdopen(fds[0], "r");
    print_from(from);
    fclose(from);
    check_exit(pid);
}

/* The child inherits the modes of what it inherits: a blocking pipe is a blocking pipe. */
static void modes_are_untouched(void)
{
    int fds[2];
    char byte;
    CHECK_SYS(pipe(fds));
    pthread_t writer = later(30, put_byte, fds[1]);
    CHECK_EQ(read(fds[0], &byte, 1), 1);
    join(writer);
    char text[64];
    snprintf(text, sizeof text, "grep flags /proc/self/fdinfo/%d", fds[0]);
    FILE *from = popen(text, "r");
    CHECK(from != NULL);
    print_from(from);
    CHECK_EQ(pclose(from), 0);
    close_pair(fds);
}

static void *spawn_repeatedly(void *arg)
{
    (void)arg;
    for (int i = 0; i < 5; i++) {
        FILE *from = popen("echo one line", "r");
        char line[32];
        CHECK(from != NULL);
        CHECK(fgets(line, sizeof line, from) != NULL);
        CHECK_STR(line, "one line\n");
        CHECK_EQ(pclose(from), 0);
    }
    return NULL;
}

static void several_threads_at_once(void)
{
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        threads[i] = start(spawn_repeatedly, NULL);
    for (int i = 0; i < 8; i++)
        join(threads[i]);
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        list_descriptors();
        return 0;
    }
    CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    RUN(own_numbers);
    RUN(by_popen);
    RUN(by_system);
    RUN(with_kept_and_closed_ones);
    RUN(by_posix_spawn);
    RUN(by_fork_and_exec);
    RUN(modes_are_untouched);
    RUN(several_threads_at_once);
    return 0;
}
