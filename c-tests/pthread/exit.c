// pthread_exit: from nested calls, value to the joiner, cleanup handlers in reverse order, then key destructors.
#include "check.h"

static void say(void *text)
{
    puts(text);
}

static void say_slowly(void *text)
{
    sched_yield();
    usleep(1000);
    puts(text);
}

static void (*volatile leave)(void *) = pthread_exit;

__attribute__((noinline)) static void deep(int depth, void *value)
{
    volatile char room[100];
    room[0] = (char)depth;
    if (depth == 0) {
        leave(value);
        return;
    }
    pthread_cleanup_push(depth % 2 ? say : say_slowly, depth % 2 ? "  odd" : "  even");
    deep(depth - 1, value);
    pthread_cleanup_pop(0);
    CHECK(!room[0]); /* not reached */
}

static void *nested(void *arg)
{
    deep(4, arg);
    return NULL;
}

static void *after_yield(void *arg)
{
    pthread_cleanup_push(say, "  handler of a thread that slept");
    usleep(1000);
    sched_yield();
    pthread_exit(arg);
    pthread_cleanup_pop(0);
    return NULL;
}

static void *popped(void *arg)
{
    pthread_cleanup_push(say, "  not run: popped with 0");
    pthread_cleanup_pop(0);
    pthread_cleanup_push(say, "  run by pop(1)");
    pthread_cleanup_push(say_slowly, "  run by pop(1), slowly");
    pthread_cleanup_pop(1);
    pthread_cleanup_pop(1);
    pthread_cleanup_push(say, "  run by the exit");
    pthread_exit(arg);
    pthread_cleanup_pop(0);
    return NULL;
}

static pthread_key_t key;

static void *with_key(void *arg)
{
    CHECK_OK(pthread_setspecific(key, "  key destructor"));
    pthread_cleanup_push(say, "  handler");
    pthread_exit(arg);
    pthread_cleanup_pop(0);
    return NULL;
}

/* Handlers see the locals of the frames that pushed them. */
static void add_up(void *arg)
{
    int *numbers = arg;
    numbers[2] = numbers[0] + numbers[1];
    printf("  %d\n", numbers[2]);
}

static void *locals(void *arg)
{
    int numbers[3] = {40, 2, 0};
    pthread_cleanup_push(add_up, numbers);
    sched_yield();
    pthread_exit(arg);
    pthread_cleanup_pop(0);
    return NULL;
}

static void *exits(void *arg)
{
    if ((long)arg % 2)
        usleep(100);
    pthread_exit(arg);
}

static void check(const char *title, void *(*routine)(void *), void *value)
{
    puts(title);
    CHECK(join(start(routine, value)) == value);
}

int main(void)
{
    CHECK_OK(pthread_key_create(&key, say));
    check("nested:", nested, (void *)1);
    check("after a yield:", after_yield, (void *)2);
    check("popped:", popped, (void *)3);
    check("with a key:", with_key, (void *)4);
    check("locals:", locals, (void *)5);

    enum { MANY = 500 };
    pthread_t threads[MANY];
    for (long i = 0; i < MANY; i++)
        threads[i] = start(exits, (void *)i);
    for (long i = 0; i < MANY; i++)
        CHECK(join(threads[i]) == (void *)i);
    puts("exit: ok");
    return 0;
}
