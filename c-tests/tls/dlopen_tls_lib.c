// The library of dlopen_tls.c: thread-local variables in the dynamic model.
// not-a-test
#include <string.h>

#ifndef THREAD
#define THREAD __thread
#define BLOCK 5000
#endif

static THREAD int counter = 100;
static THREAD char block[BLOCK];
static _Alignas(64) THREAD long aligned = 7;

int lib_count(void)
{
    return ++counter;
}

/* Whether all is as in a new thread. */
int lib_fresh(void)
{
    for (unsigned i = 0; i < sizeof block; i++)
        if (block[i])
            return 0;
    return counter == 100 && aligned == 7 && (unsigned long)&aligned % 64 == 0;
}

void lib_spoil(int value)
{
    counter = value;
    memset(block, value, sizeof block);
    aligned = value;
}

int lib_spoilt(int value)
{
    return counter == value && block[BLOCK - 1] == (char)value && aligned == value;
}
