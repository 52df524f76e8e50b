/* A description that a child process shares: both wait on it, neither sees a mode that the other did not ask for. The
 * child is forked before there are threads. */
#include "fds.h"
#include <sys/wait.h>

static int work[2], result[2], command[2], echo[2];

/* ---- the child: takes orders, one letter each ---- */

static void child_main(void)
{
    char order, byte;
    int taken = 0;
    close(command[1]);
    close(echo[0]);
    while (read(command[0], &order, 1) == 1) {
        char answer = 'y';
        switch (order) {
        case 'r': /* read one byte, blocking */
            answer = read(work[0], &byte, 1) == 1 ? 'y' : 'n';
            break;
        case 'f': /* is the description as it was made? */
            answer = fcntl(work[0], F_GETFL) == O_RDONLY && fcntl(work[1], F_GETFL) == O_WRONLY ? 'y' : 'n';
            break;
        case 'n':
            answer = fcntl(work[0], F_SETFL, O_NONBLOCK) == 0 ? 'y' : 'n';
            break;
        case 'b':
            answer = fcntl(work[0], F_SETFL, 0) == 0 ? 'y' : 'n';
            break;
        case 'c': /* compete until there is a zero */
            for (taken = 0; read(work[0], &byte, 1) == 1 && byte != 0;)
                taken++;
            answer = write(result[1], &taken, sizeof taken) == (int)sizeof taken ? 'y' : 'n';
            break;
        }
        if (write(echo[1], &answer, 1) != 1)
            _exit(2);
    }
    _exit(0);
}

static void order(char what) { CHECK_EQ(write(command[1], &what, 1), 1); }

static void answered(void)
{
    char answer = '?';
    CHECK_EQ(read(echo[0], &answer, 1), 1);
    CHECK_EQ(answer, 'y');
}

static void have_child(char what)
{
    order(what);
    answered();
}

/* ---- the parent ---- */

static void *read_one(void *arg)
{
    get_byte(work[0]);
    return arg;
}

static void the_child_sees_a_blocking_pipe(void)
{
    pthread_t readers[3];
    for (int i = 0; i < 3; i++)
        readers[i] = start(read_one, NULL);
    sleep_ms(20);
    have_child('f');
    order('r'); /* waits beside the threads */
    sleep_ms(20);
    CHECK_EQ(write(work[1], "1234", 4), 4);
    answered();
    for (int i = 0; i < 3; i++)
        join(readers[i]);
    have_child('f');
}

static void *compete(void *arg)
{
    intptr_t taken = 0;
    char byte;
    (void)arg;
    for (;;) {
        CHECK_EQ(read(work[0], &byte, 1), 1);
        if (byte == 0)
            return (void *)taken;
        taken++;
    }
}

static void threads_and_child_compete(void)
{
    enum { BYTES = 6000, READERS = 4 };
    pthread_t readers[READERS];
    int taken;
    order('c');
    for (int i = 0; i < READERS; i++)
        readers[i] = start(compete, NULL);
    for (int i = 0; i < BYTES; i++) {
        put_byte(work[1]);
        if (i % 300 == 0)
            sleep_ms(1);
    }
    CHECK_EQ(write(work[1], "\0\0\0\0\0", READERS + 1), READERS + 1);
    intptr_t total = 0;
    for (int i = 0; i < READERS; i++)
        total += (intptr_t)join(readers[i]);
    answered();
    CHECK_EQ(read(result[0], &taken, sizeof taken), (int)sizeof taken);
    CHECK_EQ(total + taken, BYTES);
}

static void the_child_sets_a_mode(void)
{
    char byte;
    pthread_t waiting = start(read_one, NULL);
    sleep_ms(30);
    have_child('n');
    CHECK_EQ(fcntl(work[0], F_GETFL), O_RDONLY | O_NONBLOCK);
    CHECK_EQ(write(work[1], "z", 1), 1); /* who waited before goes on waiting, and gets it */
    join(waiting);
    CHECK_ERRNO(read(work[0], &byte, 1), EAGAIN);
    have_child('b');
    pthread_t writer = later(20, put_byte, work[1]);
    CHECK_EQ(read(work[0], &byte, 1), 1);
    join(writer);
}

int main(void)
{
    int status;
    CHECK_SYS(pipe(work));
    CHECK_SYS(pipe(result));
    CHECK_SYS(pipe(command));
    CHECK_SYS(pipe(echo));
    pid_t child = fork();
    CHECK_SYS(child);
    if (child == 0)
        child_main();
    CHECK_SYS(close(command[0]));
    CHECK_SYS(close(echo[1]));
    RUN(the_child_sees_a_blocking_pipe);
    RUN(threads_and_child_compete);
    RUN(the_child_sets_a_mode);
    CHECK_SYS(close(command[1]));
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    return 0;
}
