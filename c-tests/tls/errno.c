// errno is each thread's own: what others' failing calls set does not show, across yields and sleeps.
#include "check.h"

#include <fcntl.h>

enum { THREADS = 200, ROUNDS = 50 };

static void *fail(void *arg)
{
    long me = (long)arg;
    int *address = &errno;
    CHECK_EQ(errno, 0); /* a new thread starts with 0 */
    for (int i = 0; i < ROUNDS; i++) {
        int want;
        switch ((me + i) % 5) {
        case 0:
            CHECK_EQ(close(-1), -1);
            want = EBADF;
            break;
        case 1:
            CHECK_EQ(open("/nonexistent/file", O_RDONLY), -1);
            want = ENOENT;
            break;
        case 2:
            CHECK_EQ(nanosleep(&(struct timespec){0, -1}, NULL), -1);
            want = EINVAL;
            break;
        case 3:
            CHECK_EQ(read(-1, NULL, 0), -1);
            want = EBADF;
            break;
        default:
            errno = want = (int)me + 1000;
        }
        CHECK_EQ(errno, want);
        sched_yield();
        CHECK_EQ(errno, want);
        if (i % 10 == 0) {
            usleep(100);
            CHECK_EQ(errno, want);
        }
        CHECK(address == &errno);
    }
    return address;
}

int main(void)
{
    pthread_t threads[THREADS];
    errno = 77;
    for (long i = 0; i < THREADS; i++)
        threads[i] = start(fail, (void *)i);
    for (int i = 0; i < THREADS; i++)
        CHECK(join(threads[i]) != &errno);
    CHECK_EQ(errno, 77);

    /* Calls of the pthread family return their error and leave errno alone. */
    pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    struct timespec past = {0, 0};
    CHECK_ERR(pthread_mutex_unlock(&mutex), EPERM);
    CHECK_OK(pthread_mutex_lock(&mutex));
    CHECK_ERR(pthread_mutex_lock(&mutex), EDEADLK);
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    CHECK_ERR(pthread_cond_timedwait(&cond, &mutex, &past), ETIMEDOUT);
    CHECK_EQ(errno, 77);
    puts("errno: ok");
    return 0;
}
