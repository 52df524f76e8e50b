// A thread that blocks in something that is no thread call (flock, fgets on a pipe, waitpid) holds up nobody.
#include "check.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/wait.h>

static atomic_int others_done;
static char path[] = "/tmp/preloom-test-XXXXXX";
static int pipe_ends[2];

static void *locks(void *arg)
{
    int file = open(path, O_RDWR);
    CHECK_SYS(file);
    CHECK_SYS(flock(file, LOCK_EX)); /* until main lets go */
    CHECK_EQ(atomic_load(&others_done), 20);
    CHECK_SYS(close(file));
    return arg;
}

static void *gets_line(void *arg)
{
    char line[32];
    FILE *stream = fdopen(pipe_ends[0], "r");
    CHECK(fgets(line, sizeof line, stream) == line);
    CHECK_STR(line, "line\n");
    fclose(stream);
    return arg;
}

static void *waits(void *arg)
{
    pid_t child = fork();
    CHECK_SYS(child);
    if (child == 0) {
        usleep(50000);
        _exit(5);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    return arg;
}

static void *other(void *arg)
{
    for (int i = 0; i < 10; i++)
        usleep(500);
    atomic_fetch_add(&others_done, 1);
    return arg;
}

int main(void)
{
    pthread_t blocked[6], others[20];
    int file = mkstemp(path);
    CHECK_SYS(file);
    CHECK_SYS(flock(file, LOCK_EX));
    CHECK_SYS(pipe(pipe_ends));
    for (int i = 0; i < 4; i++)
        blocked[i] = start(locks, NULL);
    blocked[4] = start(gets_line, NULL);
    blocked[5] = start(waits, NULL);
    for (int i = 0; i < 20; i++)
        others[i] = start(other, NULL);
    for (int i = 0; i < 20; i++)
        join(others[i]);
    CHECK_EQ(write(pipe_ends[1], "line\n", 5), 5);
    CHECK_SYS(flock(file, LOCK_UN));
    for (int i = 0; i < 6; i++)
        join(blocked[i]);
    unlink(path);
    puts("blocked: ok");
    return 0;
}
