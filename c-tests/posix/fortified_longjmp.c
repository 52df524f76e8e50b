// cflags: -O2 -D_FORTIFY_SOURCE=2
/* longjmp in a fortified program, out of places that waited, on a thread: the check of the stack must know where it
 * is. And fortified stdio on a socket. */
#include "fds.h"
#include <setjmp.h>

static volatile size_t eight = 8, four = 4, one = 1;
static volatile nfds_t one_fd = 1;

static void fortified_stdio(void)
{
    int fds[2];
    char line[8], text[8];
    volatile int size = sizeof line;
    unix_pair(fds);
    FILE *in = fdopen(fds[0], "r"), *out = fdopen(fds[1], "w");
    fprintf(out, "%d %s\n", 42, "x");
    fwrite("bytes", 1, 5, out);
    CHECK_EQ(fclose(out), 0);
    CHECK(fgets(line, size, in) != NULL);
    CHECK_STR(line, "42 x\n");
    CHECK_EQ(fread(line, one, eight, in), 5);
    snprintf(text, eight, "%.*s", (int)four, line);
    CHECK_STR(text, "byte");
    CHECK_EQ(fclose(in), 0);
}

/* longjmp out of a place that waited, and again, within one thread: __longjmp_chk must know the stack. */
static jmp_buf back;
static int deep_pipe[2];

__attribute__((noinline)) static void go_deep(int depth)
{
    volatile char room[512];
    char byte;
    room[0] = (char)depth;
    if (depth > 0)
        go_deep(depth - 1);
    pthread_t writer = later(1, put_byte, deep_pipe[1]);
    CHECK_EQ(read(deep_pipe[0], &byte, one), 1);
    join(writer);
    if (room[0] == (char)depth)
        longjmp(back, depth + 1);
}

static void fortified_longjmp(void)
{
    volatile int jumps = 0;
    CHECK_SYS(pipe(deep_pipe));
    if (setjmp(back) != 0)
        jumps++;
    if (jumps < 5)
        go_deep(10 * jumps);
    CHECK_EQ(jumps, 5);
    close_pair(deep_pipe);
}

int main(void)
{
    RUN(fortified_longjmp);
    RUN(fortified_stdio);
    return 0;
}
