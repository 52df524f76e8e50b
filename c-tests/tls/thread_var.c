// __thread variables: initialised and zeroed ones, large and aligned ones, fresh in every thread that is created.
#include "check.h"

static const char target = 't';

static __thread int number = 42;
static __thread char text[] = "initial text";
static __thread long zero;
static __thread char zeroes[3000];
static __thread _Alignas(64) char aligned[64] = "aligned";
static __thread _Alignas(64) char aligned_zeroes[64];
static __thread const char *pointer = &target;
static __thread int array[1000] = {1, 2, 3, [999] = 999};
__thread int external = 5;

static void check_fresh(void)
{
    CHECK_EQ(number, 42);
    CHECK_STR(text, "initial text");
    CHECK_EQ(zero, 0);
    for (size_t i = 0; i < sizeof zeroes; i++)
        CHECK_EQ(zeroes[i], 0);
    CHECK_EQ((uintptr_t)aligned % 64, 0);
    CHECK_EQ((uintptr_t)aligned_zeroes % 64, 0);
    CHECK_STR(aligned, "aligned");
    CHECK_EQ(aligned_zeroes[63], 0);
    CHECK(pointer == &target);
    CHECK_EQ(array[0] + array[1] + array[2] + array[500] + array[999], 6 + 999);
    CHECK_EQ(external, 5);
}

static void spoil(int value)
{
    number = value;
    snprintf(text, sizeof text, "%d", value);
    zero = value;
    memset(zeroes, value | 1, sizeof zeroes);
    memset(aligned, value | 1, sizeof aligned);
    memset(aligned_zeroes, value | 1, sizeof aligned_zeroes);
    pointer = NULL;
    for (int i = 0; i < 1000; i++)
        array[i] = value + i;
    external = value;
}

static void check_spoilt(int value)
{
    char want[sizeof text];
    snprintf(want, sizeof want, "%d", value);
    CHECK_EQ(number, value);
    CHECK_STR(text, want);
    CHECK_EQ(zero, value);
    CHECK_EQ(zeroes[2999], (char)(value | 1));
    CHECK_EQ(aligned[63], (char)(value | 1));
    CHECK_EQ(aligned_zeroes[0], (char)(value | 1));
    CHECK(pointer == NULL);
    CHECK_EQ(array[999], value + 999);
    CHECK_EQ(external, value);
}

static void *use(void *arg)
{
    int me = (int)(long)arg;
    check_fresh();
    for (int i = 0; i < 10; i++) {
        spoil(me + i);
        sched_yield();
        check_spoilt(me + i);
        if (i == 5)
            usleep(100);
        check_spoilt(me + i);
    }
    if (me % 3 == 0)
        pthread_exit(&number);
    return &number;
}

int main(void)
{
    enum { ROUNDS = 10, THREADS = 200 };
    pthread_t threads[THREADS];
    check_fresh();
    spoil(-5);
    for (int round = 0; round < ROUNDS; round++) {
        for (long i = 0; i < THREADS; i++)
            threads[i] = start(use, (void *)(i * 100));
        for (int i = 0; i < THREADS; i++)
            CHECK(join(threads[i]) != &number);
    }
    /* One after the other, so that each gets what the last one left. */
    for (long i = 0; i < 500; i++)
        join(start(use, (void *)i));
    check_spoilt(-5);
    puts("__thread: ok");
    return 0;
}
