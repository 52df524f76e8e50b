// What libc keeps per thread: strtok, strerror, locale, ctype tables, numbers, malloc's caches, in 1,000 threads.
#include "check.h"

#include <ctype.h>
#include <locale.h>
#include <math.h>

enum { THREADS = 1000, ROUNDS = 10 };

static void rest(long how)
{
    if (how % 13 == 0)
        usleep(200);
    else
        sched_yield();
}

static void numbers(long me)
{
    char text[128];
    snprintf(text, sizeof text, "%f %.15g %e %a", me + 0.25, me / 8.0, me * 1e10, me * 2.0);
    rest(me);
    double a, b, c, d;
    CHECK_EQ(sscanf(text, "%lf %lf %lf %la", &a, &b, &c, &d), 4);
    CHECK(a == me + 0.25 && b == me / 8.0 && fabs(c - me * 1e10) <= me * 1e5 && d == me * 2.0);
    CHECK(strtod("1.5", NULL) == 1.5);
    errno = 0;
    CHECK(strtol("999999999999999999999", NULL, 10) > 0);
    rest(me + 1);
    CHECK_EQ(errno, ERANGE);
}

static void tokens(long me)
{
    char text[64], want[16], *save;
    snprintf(text, sizeof text, "%ld,%ld;%ld", me, me + 1, me + 2);
    long i = me;
    for (char *token = strtok_r(text, ",;", &save); token; token = strtok_r(NULL, ",;", &save), i++) {
        snprintf(want, sizeof want, "%ld", i);
        CHECK_STR(token, want);
        rest(i);
    }
    CHECK_EQ(i, me + 3);
}

static void times(long me)
{
    time_t when = me * 86400;
    struct tm parts;
    char text[64];
    CHECK(gmtime_r(&when, &parts) == &parts);
    rest(me + 2);
    CHECK_EQ(parts.tm_year, 70 + (me >= 365) + (me >= 730));
    CHECK_EQ(timegm(&parts), when);
    CHECK(localtime_r(&when, &parts) == &parts);
    rest(me + 3);
    CHECK_EQ(mktime(&parts), when);
    CHECK_EQ(strftime(text, sizeof text, "%Y-%m-%d", &parts), 10);
}

static void errors(long me)
{
    /* strerror of an unknown number uses a buffer of the thread's own. */
    char want[64];
    snprintf(want, sizeof want, "Unknown error %ld", me + 5000);
    const char *got = strerror((int)me + 5000);
    rest(me + 4);
    CHECK_STR(got, want);
    CHECK_STR(strerror(ENOENT), "No such file or directory");
}

static locale_t other; /* not the global one */

static void locales(long me)
{
    CHECK(uselocale(NULL) == LC_GLOBAL_LOCALE);
    if (me % 2)
        CHECK(uselocale(other) == LC_GLOBAL_LOCALE);
    locale_t mine = me % 2 ? other : LC_GLOBAL_LOCALE;
    for (int i = 0; i < 5; i++) {
        CHECK(uselocale(NULL) == mine);
        CHECK(isalpha('a') && !isalpha('1') && isdigit('7') && toupper('b') == 'B' && isspace('\t'));
        rest(me + i);
    }
    CHECK(uselocale(LC_GLOBAL_LOCALE) == mine);
}

static void memory(long me)
{
    enum { BLOCKS = 20 };
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        size_t size = (size_t)(me * 7 + i * 113) % 3000 + 1;
        blocks[i] = malloc(size);
        CHECK(blocks[i] != NULL);
        memset(blocks[i], (int)(me + i), size);
        if (i % 7 == 0)
            rest(me + i);
    }
    for (int i = 0; i < BLOCKS; i++) {
        size_t size = (size_t)(me * 7 + i * 113) % 3000 + 1;
        for (size_t at = 0; at < size; at += 61)
            CHECK_EQ(blocks[i][at], (char)(me + i));
        free(blocks[i]);
    }
}

static void randoms(long me)
{
    struct drand48_data a, b;
    double x, y;
    srand48_r(me, &a);
    srand48_r(me, &b);
    for (int i = 0; i < 10; i++) {
        drand48_r(&a, &x);
        rest(me + i);
        drand48_r(&b, &y);
        CHECK(x == y);
    }
}

static void *work(void *arg)
{
    static void (*const parts[])(long) = {numbers, tokens, times, errors, locales, memory, randoms};
    long me = (long)arg;
    for (int i = 0; i < ROUNDS; i++)
        parts[(me + i) % 7](me);
    return arg;
}

int main(void)
{
    static pthread_t threads[THREADS];
    setenv("TZ", "UTC", 1);
    tzset();
    other = newlocale(LC_ALL_MASK, "C.UTF-8", NULL);
    if (other == NULL)
        other = newlocale(LC_ALL_MASK, "C", NULL);
    CHECK(other != NULL);
    for (long i = 0; i < THREADS; i++)
        threads[i] = start(work, (void *)i);
    for (long i = 0; i < THREADS; i++)
        CHECK(join(threads[i]) == (void *)i);
    CHECK(uselocale(NULL) == LC_GLOBAL_LOCALE);
    freelocale(other);
    puts("libc's state: ok");
    return 0;
}
