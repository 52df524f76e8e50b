// cflags: -O2 -D_FORTIFY_SOURCE=2
// no-stats
/* A fortified read into a buffer that is too small ends the program, also on a thread other than main. */
#include "fds.h"

static volatile size_t too_many = 9;

static void *overflow(void *arg)
{
    char buffer[8];
    int fds[2];
    (void)arg;
    CHECK_SYS(pipe(fds));
    CHECK_EQ(write(fds[1], "x", 1), 1);
    printf("before\n");
    fflush(stdout);
    ssize_t n = read(fds[0], buffer, too_many);
    printf("after: %zd\n", n);
    return NULL;
}

int main(void)
{
    join(start(overflow, NULL));
    return 0;
}
