// printf, puts, fwrite and flockfile from many threads at once: every call's output stays in one piece.
#include "check.h"

enum { THREADS = 50, LINES = 100 };
static FILE *file;

static void *print(void *arg)
{
    long me = (long)arg;
    char text[128];
    for (int i = 0; i < LINES; i++) {
        switch (i % 4) {
        case 0:
            fprintf(file, "%ld %d %s %.3f end\n", me, i, "printf", me + i / 1000.0);
            break;
        case 1:
            snprintf(text, sizeof text, "%ld %d %s %.3f end\n", me, i, "fputs", me + i / 1000.0);
            fputs(text, file);
            break;
        case 2:
            snprintf(text, sizeof text, "%ld %d %s %.3f end\n", me, i, "fwrite", me + i / 1000.0);
            fwrite(text, strlen(text), 1, file);
            break;
        default: /* several calls in one piece, with yields between them */
            flockfile(file);
            fprintf(file, "%ld %d ", me, i);
            sched_yield();
            flockfile(file);
            fprintf(file, "%s ", "flockfile");
            funlockfile(file);
            if (i % 20 == 3)
                usleep(100);
            fprintf(file, "%.3f end\n", me + i / 1000.0);
            funlockfile(file);
        }
        if (i % 10 == 0)
            fflush(file);
    }
    return NULL;
}

static void *try_lock(void *arg)
{
    CHECK(ftrylockfile(file) != 0);
    return arg;
}

int main(void)
{
    static const char *const ways[] = {"printf", "fputs", "fwrite", "flockfile"};
    static char seen[THREADS][LINES];
    pthread_t threads[THREADS];
    file = tmpfile();
    CHECK(file != NULL);
    for (long i = 0; i < THREADS; i++)
        threads[i] = start(print, (void *)i);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);

    flockfile(file);
    join(start(try_lock, NULL));
    CHECK_EQ(ftrylockfile(file), 0);
    funlockfile(file);
    funlockfile(file);

    rewind(file);
    char line[256], way[32];
    int lines = 0;
    while (fgets(line, sizeof line, file)) {
        long who;
        int what, length = 0;
        double number;
        CHECK_EQ(sscanf(line, "%ld %d %31s %lf end\n%n", &who, &what, way, &number, &length), 4);
        CHECK_EQ(length, strlen(line));
        CHECK(who >= 0 && who < THREADS && what >= 0 && what < LINES);
        CHECK(number > who + what / 1000.0 - 0.0001 && number < who + what / 1000.0 + 0.0001);
        CHECK_STR(way, ways[what % 4]);
        CHECK(!seen[who][what]);
        seen[who][what] = 1;
        lines++;
    }
    CHECK_EQ(lines, THREADS * LINES);
    puts("lines: ok");
    return 0;
}
