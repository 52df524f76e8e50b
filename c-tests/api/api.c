// The C API, in a program that finds it at run time: natively it is not there.
#include "check.h"

#include <dlfcn.h>
#include <stdint.h>

#include "../../include/preloom.h"

/* Null where there is no library. */
static const char *(*version)(void);
static int (*is_green)(void);
static void (*give_way)(void);
static uint64_t (*id)(void);
static int (*stats)(struct preloom_stats *, size_t);

static void look_up(void)
{
    version = (const char *(*)(void))dlsym(RTLD_DEFAULT, "preloom_version");
    is_green = (int (*)(void))dlsym(RTLD_DEFAULT, "preloom_is_green");
    give_way = (void (*)(void))dlsym(RTLD_DEFAULT, "preloom_yield");
    id = (uint64_t (*)(void))dlsym(RTLD_DEFAULT, "preloom_id");
    stats = (int (*)(struct preloom_stats *, size_t))dlsym(RTLD_DEFAULT, "preloom_stats");
}

static void *in_a_thread(void *seen)
{
    CHECK_EQ(is_green(), 1);
    *(uint64_t *)seen = id();
    CHECK(id() != 0);
    give_way();
    CHECK_EQ(id(), *(uint64_t *)seen);
    return NULL;
}

static void with_the_library(void)
{
    uint64_t ids[10];
    pthread_t threads[10];
    struct preloom_stats now;
    CHECK(strcmp(version(), PRELOOM_VERSION) == 0);
    CHECK_EQ(is_green(), 0);
    CHECK_EQ(id(), 0);
    give_way();
    CHECK_EQ(stats(&now, sizeof now), 0);
    CHECK_EQ(now.workers, 0);
    CHECK_EQ(now.created, 0);
    for (int i = 0; i < 10; i++)
        threads[i] = start(in_a_thread, &ids[i]);
    for (int i = 0; i < 10; i++)
        join(threads[i]);
    for (int i = 0; i < 10; i++)
        for (int j = 0; j < i; j++)
            CHECK(ids[i] != ids[j]);
    CHECK_EQ(stats(&now, sizeof now), 0);
    CHECK(now.workers >= 1);
    CHECK_EQ(now.created, 10);
    CHECK_EQ(now.live, 0);
    CHECK(now.switches >= 20);
    CHECK(now.carriers >= now.workers);

    /* A shorter and a longer structure, and what is wrong. */
    struct {
        struct preloom_stats known;
        uint64_t later;
    } longer = {.later = 99};
    CHECK_EQ(stats(&longer.known, sizeof longer), 0);
    CHECK_EQ(longer.known.created, 10);
    CHECK_EQ(longer.later, 0);
    now.created = 77;
    CHECK_EQ(stats(&now, sizeof now.workers), 0);
    CHECK_EQ(now.created, 77);
    CHECK_EQ(stats(NULL, sizeof now), EINVAL);
    CHECK_EQ(stats(&now, 0), EINVAL);
}

int main(void)
{
    look_up();
    if (version)
        with_the_library();
    puts("api: ok");
    return 0;
}
