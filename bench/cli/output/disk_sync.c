/* The thread sleeps until something was written, then as long as it may, and syncs once for all that came meanwhile. */
#include "bench/cli/output/disk_sync.h"

#include "lib/base/host/thread_limit.h"
#include "lib/base/status.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct slc_disk_sync {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    double within_s;
    int files[SLC_DISK_SYNC_FILES], count;
    bool written, ends;
    int why; /* errno of the first sync that failed */
};

static struct timespec later(double seconds)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    const long long ns = at.tv_nsec + (long long)(seconds * 1e9);
    at.tv_sec += (time_t)(ns / 1000000000);
    at.tv_nsec = (long)(ns % 1000000000);
    return at;
}

/* Pipes and devices have nothing to sync, and say EINVAL. Returns 0 or the first errno. */
static int sync_all(const int *files, int count)
{
    int why = 0;
    for (int i = 0; i < count; i++)
        if (fdatasync(files[i]) && errno != EINVAL && errno != EROFS && !why) why = errno;
    return why;
}

/* Syncs the files that were written to. The lock is held when this is called and when it returns, but not while the
 * disk works. */
static void sync_unlocked(slc_disk_sync *s)
{
    int files[SLC_DISK_SYNC_FILES];
    const int count = s->count;
    for (int i = 0; i < count; i++) files[i] = s->files[i];
    s->written = false;
    pthread_mutex_unlock(&s->lock);
    const int why = sync_all(files, count);
    pthread_mutex_lock(&s->lock);
    if (!s->why) s->why = why;
}

static void *keep_syncing(void *argument)
{
    slc_disk_sync *s = argument;
    pthread_mutex_lock(&s->lock);
    while (!s->ends) {
        if (!s->written) {
            pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        const struct timespec until = later(s->within_s);
        while (!s->ends && pthread_cond_timedwait(&s->changed, &s->lock, &until) != ETIMEDOUT) continue;
        if (!s->ends) sync_unlocked(s);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Starts the thread with all signals blocked, because another thread waits for them. */
static int start_thread(slc_disk_sync *s)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int why = pthread_create(&s->thread, NULL, keep_syncing, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return why;
}

static void free_sync(slc_disk_sync *s)
{
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

sluice_status slc_disk_sync_start(double within_s, slc_disk_sync **out)
{
    pthread_condattr_t clock;
    slc_disk_sync *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s) return slc_error(SLUICE_ERR_MEMORY, "a thread that syncs files");
    s->within_s = within_s;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &clock);
    pthread_condattr_destroy(&clock);
    const int why = start_thread(s);
    if (why) {
        free_sync(s);
        return slc_thread_limit_error(why, "no thread to sync files");
    }
    *out = s;
    return SLUICE_OK;
}

void slc_disk_sync_add(slc_disk_sync *s, int file)
{
    pthread_mutex_lock(&s->lock);
    if (s->count < SLC_DISK_SYNC_FILES) s->files[s->count++] = file;
    pthread_mutex_unlock(&s->lock);
}

void slc_disk_sync_soon(slc_disk_sync *s)
{
    if (!s) return;
    pthread_mutex_lock(&s->lock);
    if (!s->written) pthread_cond_signal(&s->changed);
    s->written = true;
    pthread_mutex_unlock(&s->lock);
}

int slc_disk_sync_end(slc_disk_sync **sync)
{
    slc_disk_sync *s = *sync;
    if (!s) return 0;
    pthread_mutex_lock(&s->lock);
    s->ends = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    const int last = sync_all(s->files, s->count), why = s->why ? s->why : last;
    free_sync(s);
    *sync = NULL;
    return why;
}
