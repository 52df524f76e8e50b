// Floating point: rounding mode, exception flags and masks, precision, MXCSR are each thread's own across yields.
// link: -lm
#include "check.h"

#include <fenv.h>
#include <math.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

enum { THREADS = 100, ROUNDS = 50 };
static const int modes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};

/* 1/3 in the current mode, by SSE and by x87. */
static void check_mode(int mode)
{
    volatile double one = 1, three = 3;
    volatile long double lone = 1, lthree = 3;
    double third = one / three;
    long double lthird = lone / lthree;
    CHECK_EQ(fegetround(), mode);
    CHECK((third > 1.0 / 3) == (mode == FE_UPWARD));
    CHECK((lthird < 1.0L / 3) == (mode == FE_DOWNWARD || mode == FE_TOWARDZERO)); /* the nearest is above */
    CHECK_EQ(lrint(2.5), mode == FE_UPWARD ? 3 : 2);
    CHECK_EQ(lrint(-2.5), mode == FE_DOWNWARD ? -3 : -2);
}

static void *compute(void *arg)
{
    long me = (long)arg;
    CHECK_EQ(fegetround(), FE_UPWARD); /* inherited from the creator */
    for (int i = 0; i < ROUNDS; i++) {
        int mode = modes[(me + i) % 4];
        CHECK_EQ(fesetround(mode), 0);
#ifdef __x86_64__
        if (me % 2)
            _mm_setcsr(_mm_getcsr() | _MM_FLUSH_ZERO_ON);
#endif
        if (i % 10 == 0)
            usleep(100);
        else
            sched_yield();
        check_mode(mode);
#ifdef __x86_64__
        CHECK_EQ(_mm_getcsr() & _MM_FLUSH_ZERO_ON, me % 2 ? _MM_FLUSH_ZERO_ON : 0);
#endif
        volatile double x = i + 0.5;
        CHECK(sqrt(x * x) - x < 1e-12);
    }

    /* Which exceptions trap. */
    if (me % 2) {
        feclearexcept(FE_ALL_EXCEPT);
        CHECK(feenableexcept(FE_DIVBYZERO) != -1);
    }
    for (int i = 0; i < 5; i++) {
        sched_yield();
        CHECK_EQ(fegetexcept() & FE_DIVBYZERO, me % 2 ? FE_DIVBYZERO : 0);
    }
    return arg;
}

int main(void)
{
    pthread_t threads[THREADS];
    CHECK_EQ(fesetround(FE_UPWARD), 0);
    for (long i = 0; i < THREADS; i++)
        threads[i] = start(compute, (void *)i);
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    check_mode(FE_UPWARD);
    puts("floating point: ok");
    return 0;
}
