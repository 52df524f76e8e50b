// Stacks: pthread_attr_setstack and setstacksize honoured, the default one as deep as glibc's.
#include "check.h"

#include <sys/mman.h>

struct range {
    char *low;
    size_t size;
};

/* My locals lie in the stack that I was given. */
static void *inside(void *arg)
{
    struct range *range = arg;
    char local;
    sched_yield();
    CHECK(&local >= range->low && &local < range->low + range->size);
    char text[64];
    snprintf(text, sizeof text, "%d", 12345);
    CHECK_STR(text, "12345");
    return arg;
}

static void *nothing(void *arg)
{
    return arg;
}

/* Uses so many bytes of stack, and yields now and then on the way down and up. */
__attribute__((noinline)) static size_t descend(size_t bytes)
{
    volatile char page[4000];
    memset((char *)page, (int)(bytes >> 12), sizeof page);
    if (bytes % (1 << 20) < 4096)
        sched_yield();
    size_t depth = bytes > 4096 ? descend(bytes - 4096) + 1 : 1;
    if (bytes % (1 << 20) < 4096)
        sched_yield();
    for (size_t i = 0; i < sizeof page; i += 999)
        CHECK_EQ((unsigned char)page[i], (unsigned char)(bytes >> 12));
    return depth;
}

static void *recurse(void *arg)
{
    return (void *)descend((size_t)arg);
}

static void *with_size(size_t stacksize, void *(*routine)(void *), void *arg)
{
    pthread_attr_t attr;
    pthread_t thread;
    CHECK_OK(pthread_attr_init(&attr));
    CHECK_OK(pthread_attr_setstacksize(&attr, stacksize));
    CHECK_OK(pthread_create(&thread, &attr, routine, arg));
    CHECK_OK(pthread_attr_destroy(&attr));
    return join(thread);
}

static void on_stack(struct range *range)
{
    pthread_attr_t attr;
    pthread_t thread;
    CHECK_OK(pthread_attr_init(&attr));
    CHECK_OK(pthread_attr_setstack(&attr, range->low, range->size));
    CHECK_OK(pthread_create(&thread, &attr, inside, range));
    CHECK_OK(pthread_attr_destroy(&attr));
    CHECK(join(thread) == range);
}

static char in_bss[1 << 17] __attribute__((aligned(4096)));

int main(void)
{
    /* Memory of any origin; used again and again; ours again after the join. */
    struct range stack = {in_bss, sizeof in_bss};
    for (int i = 0; i < 100; i++) {
        on_stack(&stack);
        memset(in_bss, 0xa5, sizeof in_bss);
    }
    stack.size = 3 << 20;
    stack.low = mmap(NULL, stack.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    CHECK(stack.low != MAP_FAILED);
    on_stack(&stack);
    CHECK_OK(munmap(stack.low, stack.size));
    stack.size = 100000; /* neither a multiple of a page, nor aligned to one */
    char *block = malloc(stack.size + 16);
    stack.low = block + 16;
    on_stack(&stack);
    free(block);

    /* Several at a time. */
    enum { FEW = 20 };
    struct range stacks[FEW];
    pthread_t threads[FEW];
    for (int i = 0; i < FEW; i++) {
        stacks[i].size = 65536 + (size_t)i * 4096;
        stacks[i].low = aligned_alloc(4096, stacks[i].size);
        pthread_attr_t attr;
        CHECK_OK(pthread_attr_init(&attr));
        CHECK_OK(pthread_attr_setstack(&attr, stacks[i].low, stacks[i].size));
        CHECK_OK(pthread_create(&threads[i], &attr, inside, &stacks[i]));
        CHECK_OK(pthread_attr_destroy(&attr));
    }
    for (int i = 0; i < FEW; i++) {
        CHECK(join(threads[i]) == &stacks[i]);
        free(stacks[i].low);
    }

    /* Sizes: the smallest runs, a large one is as deep as it says. */
    CHECK(with_size(PTHREAD_STACK_MIN, nothing, &stack) == &stack);
    CHECK(with_size(65536, recurse, (void *)32768) == (void *)8);
    CHECK(with_size(256 << 20, recurse, (void *)(64ul << 20)) == (void *)(64ul << 8));
    CHECK(with_size((1 << 20) + 1, recurse, (void *)(512ul << 10)) == (void *)128);

    /* Three quarters of the default size, in several threads at a time. */
    pthread_attr_t usual;
    size_t size;
    CHECK_OK(pthread_getattr_default_np(&usual));
    CHECK_OK(pthread_attr_getstacksize(&usual, &size));
    if (size > 8 << 20)
        size = 8 << 20;
    size = size / 4 * 3;
    for (int i = 0; i < FEW; i++)
        threads[i] = start(recurse, (void *)size);
    for (int i = 0; i < FEW; i++)
        CHECK_EQ(join(threads[i]), size / 4096);

    puts("stacks: ok");
    return 0;
}
