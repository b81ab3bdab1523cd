/* The host as a device: segments are memfds, so that the ranks of one host can map each other's; work is done inside
 * the call, so streams hold nothing and events are complete when recorded. device_test.c covers this file. */
#include "lib/base/status.h"
#include "lib/base/host/thread_limit.h"
#include "lib/device/host_segments.h"
#include "lib/device/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE /* since Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

enum { HUGE_PAGE_BYTES = 2 << 20, POPULATED_BYTES = 32 << 20, POPULATING_THREADS = 8 };

static sluice_status host_open(void **state)
{
    *state = NULL;
    return SLUICE_OK;
}

static void host_close(void *state)
{
    (void)state;
}

static sluice_status host_get_facts(slc_device *device, slc_device_facts *out)
{
    (void)device, (void)out;
    return SLUICE_OK;
}

static void host_watch_launches(slc_device *device, slc_launch_watch *told, void *context)
{
    (void)device, (void)told, (void)context;
}

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Returns `bytes` rounded up to whole pages, at least one; 0 if that does not fit a size_t. */
static size_t whole_pages(size_t bytes)
{
    size_t page = page_bytes();
    if (!bytes) return page;
    return bytes > SIZE_MAX - page ? 0 : (bytes + page - 1) / page * page;
}

/* `own`: this process made the segment. */
static sluice_status map_descriptor(slc_device *device, int fd, size_t bytes, bool own, slc_segment *out)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return slc_error(SLUICE_ERR_MEMORY, "mapping a segment of %zu bytes: %s", bytes, strerror(errno));
    if (!slc_host_segments_add(base, bytes, fd, own)) {
        munmap(base, bytes);
        return slc_error(SLUICE_ERR_MEMORY, "segment of %zu bytes", bytes);
    }
    /* A hint: only a kernel with shared huge pages switched on ("advise") follows it. */
    if (bytes >= HUGE_PAGE_BYTES) madvise(base, bytes, MADV_HUGEPAGE);
    *out = (slc_segment){.base = base, .bytes = bytes, .fd = fd, .device = device};
    return SLUICE_OK;
}

/* Maps a segment that no peer can map: for one process alone, or on a system that denies memfd_create. A forked child
 * has its own copy of it. The system sets no memory aside for addresses that may never be touched. */
static sluice_status map_for_one(slc_device *device, size_t bytes, slc_segment *out)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return slc_error(SLUICE_ERR_MEMORY, "mapping a segment of %zu bytes: %s", bytes, strerror(errno));
    if (bytes >= HUGE_PAGE_BYTES) madvise(base, bytes, MADV_HUGEPAGE);
    *out = (slc_segment){.base = base, .bytes = bytes, .fd = -1, .device = device};
    return SLUICE_OK;
}

static sluice_status host_segment_create(slc_device *device, size_t bytes, slc_segment *out)
{
    size_t rounded = whole_pages(bytes);
    if (!rounded) return slc_error(SLUICE_ERR_ARGUMENT, "segment of %zu bytes: too large", bytes);
    /* A memfd's addresses cost nothing even if memory may not be overcommitted. */
    if (device->alone && !map_for_one(device, rounded, out)) return SLUICE_OK;
    int fd = memfd_create("sluice", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 && (errno == EPERM || errno == EACCES || errno == ENOSYS)) return map_for_one(device, rounded, out);
    if (fd < 0) return slc_error(SLUICE_ERR_SYSTEM, "memfd_create: %s", strerror(errno));

    sluice_status status = SLUICE_OK;
    if (ftruncate(fd, (off_t)rounded))
        status = slc_error(SLUICE_ERR_MEMORY, "segment of %zu bytes: %s", rounded, strerror(errno));
    /* A peer that maps the segment may rely on its size, because a sealed segment can neither shrink nor grow. */
    else if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        status = slc_error(SLUICE_ERR_SYSTEM, "sealing a segment: %s", strerror(errno));
    else
        status = map_descriptor(device, fd, rounded, true, out);
    if (status) close(fd);
    return status;
}

static sluice_status host_segment_map(slc_device *device, int fd, size_t bytes, slc_segment *out)
{
    size_t rounded = whole_pages(bytes);
    struct stat file;
    if (fstat(fd, &file)) return slc_error(SLUICE_ERR_SYSTEM, "peer's segment: %s", strerror(errno));
    if (!rounded || (uint64_t)file.st_size < rounded)
        return slc_error(SLUICE_ERR_ARGUMENT, "peer's segment has %lld bytes, not %zu", (long long)file.st_size, bytes);
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK))
        return slc_error(SLUICE_ERR_ARGUMENT, "peer's segment is not sealed: it could shrink");
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) return slc_error(SLUICE_ERR_SYSTEM, "peer's segment: %s", strerror(errno));
    sluice_status status = map_descriptor(device, own, rounded, false, out);
    if (status) close(own);
    return status;
}

static void host_segment_destroy(slc_segment *segment)
{
    int fd = slc_host_segments_remove(segment->base);
    if (!segment->kept) munmap(segment->base, segment->bytes);
    if (fd >= 0) close(fd);
}

/* Reading is enough: a page of a shared mapping becomes present and stays writable, and a peer's bytes are kept. */
__attribute__((no_sanitize("address", "thread"))) static void touch_pages(const unsigned char *base, size_t bytes)
{
    const volatile unsigned char *at = base;
    size_t page = page_bytes();
    for (size_t i = 0; i < bytes; i += page) (void)at[i];
}

/* Makes the pages of a range present. They are touched only if the kernel is too old for madvise to populate them:
 * touching a page for which there is no memory ends the process, and gives no error. */
static int populate(unsigned char *base, size_t bytes)
{
    int failed;
    do failed = madvise(base, bytes, MADV_POPULATE_WRITE) ? errno : 0;
    while (failed == EINTR || failed == EAGAIN);
    if (failed != EINVAL && failed != ENOSYS) return failed;
    touch_pages(base, bytes);
    return 0;
}

/* A part of a segment, which a thread of its own makes present. */
typedef struct {
    unsigned char *base;
    size_t bytes;
    int failed;
    pthread_t thread;
    bool started;
} populating;

static void *populate_part(void *argument)
{
    populating *part = argument;
    part->failed = populate(part->base, part->bytes);
    return NULL;
}

/* Returns how many threads populate memory: as many as this process has cores, and no more than have something to do.
 */
static size_t populating_threads(size_t bytes)
{
    cpu_set_t set;
    size_t cores = sched_getaffinity(0, sizeof set, &set) ? 1 : (size_t)CPU_COUNT(&set), most = bytes / POPULATED_BYTES;
    if (cores > POPULATING_THREADS) cores = POPULATING_THREADS;
    return most < cores ? most : cores;
}

/* The kernel clears each page, which one core does no faster than it can write. */
static int populate_together(unsigned char *base, size_t bytes)
{
    populating parts[POPULATING_THREADS];
    const size_t threads = populating_threads(bytes);
    if (threads < 2) return populate(base, bytes);
    const size_t each = whole_pages(bytes / threads);
    int failed = 0;
    for (size_t i = 0; i < threads; i++) {
        const size_t begin = i * each, left = bytes - begin;
        parts[i] = (populating){.base = base + begin, .bytes = i + 1 < threads ? each : left};
        if (i + 1 < threads) parts[i].started = !pthread_create(&parts[i].thread, NULL, populate_part, &parts[i]);
        if (!parts[i].started) populate_part(&parts[i]);
    }
    for (size_t i = 0; i < threads; i++) {
        if (parts[i].started) pthread_join(parts[i].thread, NULL);
        if (!failed) failed = parts[i].failed;
    }
    return failed;
}

static sluice_status host_segment_populate(slc_segment *segment, size_t offset, size_t bytes)
{
    const size_t begin = offset / page_bytes() * page_bytes(), length = offset + bytes - begin;
    const int failed = populate_together((unsigned char *)segment->base + begin, length);
    if (!failed) return SLUICE_OK;
    return slc_error(SLUICE_ERR_MEMORY, "no memory for %zu bytes of a segment: %s", length, strerror(failed));
}

static void host_segment_discard(slc_segment *segment, size_t offset, size_t bytes)
{
    size_t page = page_bytes(), begin = (offset + page - 1) / page * page, end = (offset + bytes) / page * page;
    if (begin < end && segment->fd < 0)
        madvise((unsigned char *)segment->base + begin, end - begin, MADV_DONTNEED);
    else if (begin < end && !slc_host_segments_inherited(segment->base))
        fallocate(segment->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)begin, (off_t)(end - begin));
}

static sluice_status host_pinned_create(slc_device *device, size_t bytes, void **base)
{
    const size_t alignment = 64;
    (void)device;
    *base = bytes > SIZE_MAX - alignment ? NULL : aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
    return *base ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "pinned memory of %zu bytes", bytes);
}

static void host_pinned_destroy(slc_device *device, void *base)
{
    (void)device;
    free(base);
}

static sluice_status host_stream_nothing(sluice_stream *stream)
{
    stream->handle = NULL;
    return SLUICE_OK;
}

static void *wait_for_others(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* Starts as many threads as OpenMP will, all at once, and ends them: if one cannot be started OpenMP would end the
 * process. */
static sluice_status host_stream_create(sluice_stream *stream)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    const uint32_t wanted = stream->threads - 1;
    if (!wanted) return host_stream_nothing(stream);
    pthread_t *threads = calloc(wanted, sizeof *threads);
    if (!threads) return slc_error(SLUICE_ERR_MEMORY, "%u compute threads", stream->threads);
    uint32_t started = 0;
    int why = 0;
    pthread_mutex_lock(&gate);
    while (started < wanted && !(why = pthread_create(&threads[started], NULL, wait_for_others, &gate))) started++;
    pthread_mutex_unlock(&gate);
    for (uint32_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
    free(threads);
    char what[64];
    snprintf(what, sizeof what, "%u compute threads, of which %u start", stream->threads, started + 1);
    return why ? slc_thread_limit_error(why, what) : host_stream_nothing(stream);
}

static void host_stream_destroy(sluice_stream *stream)
{
    (void)stream;
}

static sluice_status host_copy(sluice_stream *stream, void *dst, const void *src, size_t bytes)
{
    (void)stream;
    memcpy(dst, src, bytes);
    return SLUICE_OK;
}

static sluice_status host_move(sluice_stream *stream, void *dst, const void *src, size_t bytes)
{
    (void)stream;
    memmove(dst, src, bytes);
    return SLUICE_OK;
}

static sluice_status host_fill_zero(sluice_stream *stream, void *dst, size_t bytes)
{
    (void)stream;
    memset(dst, 0, bytes);
    return SLUICE_OK;
}

static sluice_status host_event_create(slc_device *device, slc_event *event)
{
    (void)device, (void)event;
    return SLUICE_OK;
}

static void host_event_destroy(slc_event *event)
{
    (void)event;
}

static sluice_status host_event_record(sluice_stream *stream, slc_event *event)
{
    (void)stream;
    event->handle = NULL;
    return SLUICE_OK;
}

static bool host_event_done(const slc_event *event)
{
    (void)event;
    return true;
}

static void *host_stream_native(const sluice_stream *stream)
{
    (void)stream;
    return NULL;
}

static sluice_status host_event_synchronize(slc_event *event)
{
    (void)event;
    return SLUICE_OK;
}

static sluice_status host_stream_wait_event(sluice_stream *stream, const slc_event *event)
{
    (void)stream;
    (void)event;
    return SLUICE_OK;
}

static sluice_status host_event_elapsed(const slc_event *begin, const slc_event *end, double *seconds)
{
    (void)begin, (void)end, (void)seconds;
    return slc_error(SLUICE_ERR_UNSUPPORTED, "events of the host have no times");
}

const slc_device_ops slc_host_ops = {
    .kind = SLC_DEVICE_HOST,
    .name = "cpu",
    .runs_on = "cpu",
    .open = host_open,
    .close = host_close,
    .get_facts = host_get_facts,
    .watch_launches = host_watch_launches,
    .segment_create = host_segment_create,
    .segment_map = host_segment_map,
    .segment_destroy = host_segment_destroy,
    .segment_populate = host_segment_populate,
    .segment_discard = host_segment_discard,
    .pinned_create = host_pinned_create,
    .pinned_destroy = host_pinned_destroy,
    .stream_create = host_stream_create,
    .stream_destroy = host_stream_destroy,
    .stream_synchronize = host_stream_nothing,
    .stream_native = host_stream_native,
    .copy = host_copy,
    .move = host_move,
    .fill_zero = host_fill_zero,
    .event_create = host_event_create,
    .event_destroy = host_event_destroy,
    .event_record = host_event_record,
    .event_done = host_event_done,
    .event_synchronize = host_event_synchronize,
    .stream_wait_event = host_stream_wait_event,
    .event_elapsed = host_event_elapsed,
};
