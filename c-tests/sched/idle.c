// A process whose 1,000 threads all wait does nothing: no CPU time, no kernel thread that wakes up now and then.
// alone
#include "check.h"

#include <dirent.h>
#include <semaphore.h>
#include <stdatomic.h>

enum { THREADS = 1000 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static int pipe_ends[2];
static int go;
static atomic_int here;

static void *wait(void *arg)
{
    char byte;
    atomic_fetch_add(&here, 1);
    switch ((long)arg % 4) {
    case 0:
        CHECK_SYS(sem_wait(&sem));
        break;
    case 1:
        CHECK_EQ(read(pipe_ends[0], &byte, 1), 1);
        break;
    case 2:
        sleep_ms(3000);
        break;
    default:
        pthread_mutex_lock(&mutex);
        while (!go)
            pthread_cond_wait(&cond, &mutex);
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}

/* Context switches, voluntary or not, of all kernel threads of this process but the caller. */
static long switches(void)
{
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    long sum = 0;
    struct dirent *entry;
    while ((entry = readdir(tasks))) {
        if (entry->d_name[0] == '.' || atoi(entry->d_name) == getpid())
            continue;
        char path[300], line[256];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *status = fopen(path, "r");
        if (!status)
            continue;
        long count;
        while (fgets(line, sizeof line, status))
            if (sscanf(line, "voluntary_ctxt_switches: %ld", &count) == 1
                || sscanf(line, "nonvoluntary_ctxt_switches: %ld", &count) == 1)
                sum += count;
        fclose(status);
    }
    closedir(tasks);
    return sum;
}

static long cpu_ms(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

int main(void)
{
    static pthread_t threads[THREADS];
    CHECK_SYS(sem_init(&sem, 0, 0));
    CHECK_SYS(pipe(pipe_ends));
    for (long i = 0; i < THREADS; i++)
        threads[i] = start(wait, (void *)i);
    while (atomic_load(&here) < THREADS)
        usleep(1000);
    sleep_ms(300); /* until the last one really waits */

    long before = switches();
    long cpu = cpu_ms();
    sleep_ms(1000);
    cpu = cpu_ms() - cpu;
    long during = switches() - before;
    if (during > 10)
        CHECK_FAIL("%ld context switches in an idle second", during);
    if (cpu > 100)
        CHECK_FAIL("%ld ms of CPU time in an idle second", cpu);

    char bytes[THREADS / 4];
    memset(bytes, 'b', sizeof bytes);
    CHECK_EQ(write(pipe_ends[1], bytes, sizeof bytes), sizeof bytes);
    for (int i = 0; i < THREADS / 4; i++)
        CHECK_SYS(sem_post(&sem));
    pthread_mutex_lock(&mutex);
    go = 1;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&mutex);
    for (long i = 0; i < THREADS; i++)
        CHECK(join(threads[i]) == (void *)i);
    puts("idle: ok");
    return 0;
}
