/* A process in which everybody waits uses no processor time. */
#include "fds.h"

enum { THREADS = 200 };

static int quiet[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static bool over;

static void *wait_somehow(void *arg)
{
    struct pollfd one = {quiet[0], POLLIN, 0};
    char byte;
    switch ((intptr_t)arg % 5) {
    case 0:
        CHECK_EQ(read(quiet[0], &byte, 1), 0);
        break;
    case 1:
        CHECK_EQ(poll(&one, 1, -1), 1);
        break;
    case 2:
        CHECK_EQ(poll(&one, 1, 3600000), 1);
        break;
    case 3:
        pthread_mutex_lock(&lock);
        while (!over)
            pthread_cond_wait(&never, &lock);
        pthread_mutex_unlock(&lock);
        break;
    default:
        sleep(2);
    }
    return NULL;
}

static int64_t used_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

int main(void)
{
    pthread_t threads[THREADS];
    CHECK_SYS(pipe(quiet));
    /* Something is readable all the time and nobody asks for it. */
    int loud[2];
    CHECK_SYS(pipe(loud));
    pthread_t writer = later(1, put_byte, loud[1]);
    get_byte(loud[0]);
    join(writer);
    put_byte(loud[1]);

    for (int i = 0; i < THREADS; i++)
        threads[i] = start(wait_somehow, (void *)(intptr_t)i);
    sleep_ms(700); /* everybody has come to rest */
    int64_t before = used_ns();
    sleep_ms(1000);
    int64_t used = used_ns() - before;
    if (used > 100000000)
        CHECK_FAIL("%lld ms of processor time in a second of rest", (long long)used / 1000000);

    CHECK_SYS(close(quiet[1]));
    pthread_mutex_lock(&lock);
    over = true;
    pthread_cond_broadcast(&never);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    close_pair(loud);
    printf("%d threads rest\n", THREADS);
    return 0;
}
