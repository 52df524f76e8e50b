/* stdio that waits inside libc, where nobody can help it: threads with fgets and fprintf on both ends, several pairs. */
#include "fds.h"

enum { PAIRS = 6, LINES = 300 };

static void *answer_lines(void *arg)
{
    int fd = *(int *)arg, copy = dup(fd);
    FILE *in = fdopen(fd, "r"), *out = fdopen(copy, "w");
    char line[64];
    while (fgets(line, sizeof line, in) != NULL) {
        fprintf(out, "you said %s", line);
        CHECK_EQ(fflush(out), 0);
    }
    CHECK_EQ(fclose(in), 0);
    CHECK_EQ(fclose(out), 0);
    return NULL;
}

static void *talk(void *arg)
{
    int fds[2], me = (int)(intptr_t)arg;
    char line[64], want[64];
    unix_pair(fds);
    pthread_t other = start(answer_lines, &fds[1]);
    FILE *stream = fdopen(fds[0], "r+");
    CHECK(stream != NULL);
    for (int i = 0; i < LINES; i++) {
        fprintf(stream, "%d from %d\n", i, me);
        CHECK_EQ(fflush(stream), 0);
        CHECK(fgets(line, sizeof line, stream) != NULL);
        snprintf(want, sizeof want, "you said %d from %d\n", i, me);
        CHECK_STR(line, want);
    }
    CHECK_EQ(fclose(stream), 0);
    join(other);
    return NULL;
}

static void six_conversations(void)
{
    pthread_t threads[PAIRS];
    for (int i = 0; i < PAIRS; i++)
        threads[i] = start(talk, (void *)(intptr_t)i);
    for (int i = 0; i < PAIRS; i++)
        join(threads[i]);
}

int main(void)
{
    RUN(six_conversations);
    return 0;
}
