/* stdio on a socketpair: main reads lines with fgets, a thread answers; the streams share one description. */
#include "fds.h"

enum { LINES = 2000 };

static void *write_lines(void *arg)
{
    FILE *out = fdopen(*(int *)arg, "w");
    char line[128];
    CHECK(out != NULL);
    for (int i = 0; i < LINES; i++) {
        fprintf(out, "line %d of %s %.3f\n", i, "many", i / 8.0);
        if (i % 10 == 0)
            CHECK_EQ(fflush(out), 0);
        if (i % 400 == 0)
            sleep_ms(5);
    }
    snprintf(line, sizeof line, "%d lines were written\n", LINES);
    CHECK(fputs(line, out) >= 0);
    CHECK_EQ(fclose(out), 0);
    return NULL;
}

int main(void)
{
    int fds[2];
    char line[128], want[128];
    unix_pair(fds);
    pthread_t writer = start(write_lines, &fds[1]);
    FILE *in = fdopen(fds[0], "r");
    CHECK(in != NULL);
    for (int i = 0; i < LINES; i++) {
        CHECK(fgets(line, sizeof line, in) != NULL);
        snprintf(want, sizeof want, "line %d of %s %.3f\n", i, "many", i / 8.0);
        CHECK_STR(line, want);
    }
    CHECK(fgets(line, sizeof line, in) != NULL);
    printf("%s", line);
    CHECK(fgets(line, sizeof line, in) == NULL);
    CHECK(feof(in) && !ferror(in));
    CHECK_EQ(fclose(in), 0);
    join(writer);
    return 0;
}
