/* A process's ranks share one mapping, so that a thread sanitizer sees what one rank hands to another. */
#include "tests/nccl/bed/hostnccl/segment.h"

#include "tests/nccl/bed/hostnccl/errors.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PREFIX "hostnccl-"
#define FOLDER "/dev/shm/"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hostnccl_segment *segments;

/* Removes the files that no living process has open. */
static void sweep(void)
{
    DIR *folder = opendir(FOLDER);
    if (!folder) return;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0) continue;
        int file = openat(dirfd(folder), entry->d_name, O_RDWR | O_CLOEXEC);
        if (file < 0) continue;
        if (flock(file, LOCK_EX | LOCK_NB) == 0) unlinkat(dirfd(folder), entry->d_name, 0);
        close(file);
    }
    closedir(folder);
}

ncclResult_t hostnccl_name_make(char name[HOSTNCCL_NAME_BYTES])
{
    uint64_t random[2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return hostnccl_error(ncclSystemError, "getrandom: %s", strerror(errno));
    sweep();
    snprintf(name, HOSTNCCL_NAME_BYTES, PREFIX "%016llx%016llx", (unsigned long long)random[0],
             (unsigned long long)random[1]);
    return ncclSuccess;
}

/* Opens the file, and holds a shared lock on it that says somebody uses it. */
static int open_locked(const char *name)
{
    char path[sizeof FOLDER + HOSTNCCL_NAME_BYTES];
    snprintf(path, sizeof path, FOLDER "%s", name);
    for (;;) {
        int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (file < 0) return -1;
        struct stat now;
        if (flock(file, LOCK_SH) == 0 && fstat(file, &now) == 0 && now.st_nlink > 0) return file;
        close(file); /* it was removed before the lock was there */
    }
}

static size_t rounded(size_t bytes)
{
    return (bytes + 4095) & ~(size_t)4095;
}

/* Lays out the segment's memory. The layout is the same in every process, because it follows from the number of ranks.
 */
static void lay_out(hostnccl_segment *segment)
{
    size_t ranks = (size_t)segment->ranks, pairs = ranks * ranks;
    size_t stage = ((size_t)2 << 20) / ranks, piece = ((size_t)4 << 20) / pairs;
    segment->stage_bytes = rounded(stage > 524288 ? 524288 : stage < 65536 ? 65536 : stage);
    segment->piece_bytes = piece > 262144 ? 262144 : piece < 1024 ? 1024 : piece & ~(size_t)63;
    char *memory = (char *)segment->control;
    size_t at = 4096;
    segment->rows = (hostnccl_row *)(memory + at);
    at += rounded(ranks * sizeof *segment->rows);
    segment->channels = (hostnccl_channel *)(memory + at);
    at += rounded(pairs * sizeof *segment->channels);
    segment->stages = memory + at;
    at += 2 * ranks * segment->stage_bytes;
    segment->pieces = memory + at;
    segment->bytes = at + rounded(pairs * HOSTNCCL_SLOTS * segment->piece_bytes);
}

static ncclResult_t map_new(const char *name, int ranks, hostnccl_segment **out)
{
    ncclResult_t result = ncclSystemError;
    hostnccl_segment *segment = calloc(1, sizeof *segment);
    if (!segment) return hostnccl_error(ncclSystemError, "no memory for a communicator");
    snprintf(segment->name, sizeof segment->name, "%s", name);
    segment->ranks = ranks;
    lay_out(segment); /* for its bytes */
    segment->file = open_locked(name);
    if (segment->file < 0 || ftruncate(segment->file, (off_t)segment->bytes)) {
        hostnccl_error(ncclSystemError, "%s%s: %s", FOLDER, name, strerror(errno));
        goto close_file;
    }
    void *memory = mmap(NULL, segment->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment->file, 0);
    if (memory == MAP_FAILED) {
        hostnccl_error(ncclSystemError, "%s%s: mapping %zu bytes: %s", FOLDER, name, segment->bytes, strerror(errno));
        goto close_file;
    }
    segment->control = memory;
    segment->named = true;
    lay_out(segment);
    uint32_t none = 0;
    if (!atomic_compare_exchange_strong(&segment->control->ranks, &none, (uint32_t)ranks) && none != (uint32_t)ranks) {
        result = hostnccl_error(ncclInvalidUsage, "this rank says %d ranks, another one %u, with the same unique id",
                                ranks, none);
        goto unmap;
    }
    segment->next = segments;
    segments = *out = segment;
    return ncclSuccess;

unmap:
    munmap(memory, segment->bytes);
close_file:
    if (segment->file >= 0) close(segment->file);
    free(segment);
    return result;
}

ncclResult_t hostnccl_segment_join(const char *name, int ranks, hostnccl_segment **out)
{
    ncclResult_t result = ncclSuccess;
    pthread_mutex_lock(&lock);
    hostnccl_segment *segment = segments;
    while (segment && strcmp(segment->name, name) != 0) segment = segment->next;
    if (!segment)
        result = map_new(name, ranks, &segment);
    else if (segment->ranks != ranks)
        result = hostnccl_error(ncclInvalidUsage, "this rank says %d ranks, another one %d, with the same unique id",
                                ranks, segment->ranks);
    if (!result) {
        segment->users++;
        *out = segment;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static void remove_name(hostnccl_segment *segment)
{
    char path[sizeof FOLDER + HOSTNCCL_NAME_BYTES];
    snprintf(path, sizeof path, FOLDER "%s", segment->name);
    if (segment->named) unlink(path);
    segment->named = false;
}

void hostnccl_segment_leave(hostnccl_segment *segment)
{
    pthread_mutex_lock(&lock);
    if (--segment->users == 0) {
        for (hostnccl_segment **at = &segments; *at; at = &(*at)->next)
            if (*at == segment) {
                *at = segment->next;
                break;
            }
        if (segment->named && flock(segment->file, LOCK_EX | LOCK_NB) == 0) remove_name(segment); /* nobody else came */
        munmap(segment->control, segment->bytes);
        close(segment->file);
        free(segment);
    }
    pthread_mutex_unlock(&lock);
}

ncclResult_t hostnccl_segment_take_row(hostnccl_segment *segment, int rank, int device)
{
    hostnccl_row *row = &segment->rows[rank];
    uint32_t free_row = 0;
    if (!atomic_compare_exchange_strong(&row->here, &free_row, 1))
        return hostnccl_error(ncclInvalidUsage, "rank %d of %d is there already", rank, segment->ranks);
    row->process = getpid();
    row->device = device;
    atomic_store(&row->here, 2);
    hostnccl_segment_ring(segment);
    return ncclSuccess;
}

bool hostnccl_segment_complete(hostnccl_segment *segment)
{
    for (int rank = 0; rank < segment->ranks; rank++)
        if (atomic_load(&segment->rows[rank].here) != 2) return false;
    pthread_mutex_lock(&lock);
    remove_name(segment);
    pthread_mutex_unlock(&lock);
    return true;
}

char *hostnccl_segment_stage(const hostnccl_segment *segment, int rank, uint32_t meeting)
{
    return segment->stages + (2 * (size_t)rank + (meeting & 1)) * segment->stage_bytes;
}

char *hostnccl_segment_piece(const hostnccl_segment *segment, int from, int to, uint32_t number)
{
    size_t pair = (size_t)from * (size_t)segment->ranks + (size_t)to;
    return segment->pieces + (pair * HOSTNCCL_SLOTS + number % HOSTNCCL_SLOTS) * segment->piece_bytes;
}

static long futex(_Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
    return syscall(SYS_futex, (uint32_t *)word, operation, value, timeout, NULL, 0);
}

void hostnccl_segment_ring(hostnccl_segment *segment)
{
    atomic_fetch_add(&segment->control->bell, 1);
    if (atomic_load(&segment->control->sleepers)) futex(&segment->control->bell, FUTEX_WAKE, INT_MAX, NULL);
}

void hostnccl_segment_wait(hostnccl_segment *segment, uint32_t bell, unsigned *spins)
{
    enum { PAUSES = 50, YIELDS = 200 };
    hostnccl_control *control = segment->control;
    if ((*spins)++ < PAUSES) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
        return;
    }
    if (*spins < PAUSES + YIELDS) {
        sched_yield();
        return;
    }
    atomic_fetch_add(&control->sleepers, 1);
    struct timespec limit = {.tv_nsec = 20000000};
    futex(&control->bell, FUTEX_WAIT, bell, &limit);
    atomic_fetch_sub(&control->sleepers, 1);
}
