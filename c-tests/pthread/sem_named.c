// Named semaphores, and unnamed ones shared with a child process.
#include "check.h"

#include <fcntl.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/wait.h>

static void *post_later(void *arg)
{
    sleep_ms(20);
    CHECK_SYS(sem_post(arg));
    return arg;
}

static void *take(void *arg)
{
    CHECK_SYS(sem_wait(arg));
    return arg;
}

int main(void)
{
    char name[64];
    snprintf(name, sizeof name, "/preloom-test-%d", getpid());
    sem_t *sem = sem_open(name, O_CREAT | O_EXCL, 0600, 1);
    CHECK(sem != SEM_FAILED);
    CHECK(sem_open(name, O_CREAT | O_EXCL, 0600, 1) == SEM_FAILED && errno == EEXIST);
    sem_t *same = sem_open(name, 0);
    CHECK(same == sem);
    CHECK_SYS(sem_wait(sem));
    CHECK_ERRNO(sem_trywait(same), EAGAIN);
    pthread_t taker = start(take, same);
    pthread_t poster = start(post_later, sem);
    join(taker);
    join(poster);
    CHECK_SYS(sem_close(same));
    CHECK_SYS(sem_close(sem));
    CHECK_SYS(sem_unlink(name));
    CHECK_ERRNO(sem_unlink(name), ENOENT);
    CHECK(sem_open(name, 0) == SEM_FAILED && errno == ENOENT);

    /* Shared: the child posts, main and threads wait. */
    sem_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    CHECK_SYS(sem_init(shared, 1, 0));
    pid_t child = fork();
    CHECK_SYS(child);
    if (child == 0) {
        usleep(20000);
        for (int i = 0; i < 4; i++)
            sem_post(shared);
        _exit(0);
    }
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        threads[i] = start(take, shared);
    CHECK_SYS(sem_wait(shared));
    for (int i = 0; i < 3; i++)
        join(threads[i]);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    CHECK_ERRNO(sem_trywait(shared), EAGAIN);
    puts("named and shared semaphores: ok");
    return 0;
}
