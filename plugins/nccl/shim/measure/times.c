/* A pool of pairs for each CUDA context. The lock of a pool is held for a few instructions, never across a call of the
 * driver: two threads may wait for the driver, but not for each other.
 *
 * The device's times are put on the host's clock by an anchor: an event on a stream of our own, which is asked about
 * until it is done, between two looks at the clock. It is renewed every second, because elapsed times are floats of
 * milliseconds. Nothing here waits for the device without a limit: it may be stuck in the operation before.
 * tests/nccl/on_the_bed.py covers this file. */
#include "plugins/nccl/shim/measure/times.h"

#include "lib/base/log.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_POOLS = 64, GROWTH = 64, MOST_PAIRS = 8192, ANCHOR_LIFE_NS = 1000000000 };

typedef struct slc_shim_time_pool {
    slc_shim_driver_context context;
    atomic_flag lock;
    slc_shim_time_pair *free; /* under the lock, as the next two */
    slc_shim_time_pair *running, **running_end;
    _Atomic unsigned pairs;
    atomic_flag reading;           /* one thread reads events at a time; others go on */
    slc_shim_driver_stream stream; /* this and the next four belong to the reading thread */
    slc_shim_driver_event anchor, other;
    bool trying;       /* `other` is recorded, and was not done when it was last asked about */
    int64_t anchor_ns; /* 0: none yet */
} slc_shim_time_pool;

static _Atomic(slc_shim_time_pool *) pools[MOST_POOLS];

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void refuse(slc_shim_recorder *recorder, const char *what, int error)
{
    if (!atomic_exchange(&recorder->time_is_off, true))
        slc_log(SLC_LOG_WARN, "SLUICE_SHIM_TIME has no effect any more: cu%s failed with CUDA error %d", what, error);
}

void slc_shim_times_lost(slc_shim_recorder *recorder)
{
    __atomic_fetch_add(&recorder->header->times_lost, 1, __ATOMIC_RELAXED);
}

/* ---- Pools ---- */

static void lock(slc_shim_time_pool *pool)
{
    while (atomic_flag_test_and_set_explicit(&pool->lock, memory_order_acquire)) sched_yield();
}

static void unlock(slc_shim_time_pool *pool)
{
    atomic_flag_clear_explicit(&pool->lock, memory_order_release);
}

static slc_shim_time_pool *pool_of(slc_shim_driver_context context)
{
    for (int i = 0; i < MOST_POOLS; i++) {
        slc_shim_time_pool *pool = atomic_load_explicit(&pools[i], memory_order_acquire);
        if (!pool) {
            slc_shim_time_pool *fresh = calloc(1, sizeof *fresh);
            if (!fresh) return NULL;
            fresh->context = context;
            fresh->running_end = &fresh->running;
            if (atomic_compare_exchange_strong(&pools[i], &pool, fresh)) return fresh;
            free(fresh);
        }
        if (pool->context == context) return pool;
    }
    return NULL;
}

static slc_shim_time_pool *current_pool(slc_shim_recorder *recorder)
{
    slc_shim_driver_context context = NULL;
    int error = recorder->driver->CtxGetCurrent(&context);
    if (error) refuse(recorder, "CtxGetCurrent", error);
    return error || !context ? NULL : pool_of(context);
}

static void give_back(slc_shim_time_pair *pair)
{
    slc_shim_time_pool *pool = pair->pool;
    lock(pool);
    pair->next = pool->free;
    pool->free = pair;
    unlock(pool);
}

static void grow(slc_shim_recorder *recorder, slc_shim_time_pool *pool)
{
    if (atomic_fetch_add(&pool->pairs, GROWTH) >= MOST_PAIRS) {
        atomic_fetch_sub(&pool->pairs, GROWTH);
        return;
    }
    for (int i = 0; i < GROWTH; i++) {
        slc_shim_time_pair *pair = calloc(1, sizeof *pair);
        if (!pair) return;
        pair->pool = pool;
        int error = recorder->driver->EventCreate(&pair->begin, 0);
        if (!error) error = recorder->driver->EventCreate(&pair->end, 0);
        if (error) {
            refuse(recorder, "EventCreate", error);
            free(pair);
            return;
        }
        give_back(pair);
    }
}

static slc_shim_time_pair *take_free(slc_shim_time_pool *pool)
{
    lock(pool);
    slc_shim_time_pair *pair = pool->free;
    if (pair) pool->free = pair->next;
    unlock(pool);
    return pair;
}

/* ---- Reading ---- */

/* Asks until the event is done, for `patience_ns` at most. If it is done, it became so between *before and *by. */
static int poll_event(slc_shim_recorder *recorder, slc_shim_driver_event event, int64_t patience_ns, int64_t *before,
                      int64_t *by)
{
    for (int64_t begin = now_ns();;) {
        int64_t asked = now_ns();
        int state = recorder->driver->EventQuery(event);
        *by = now_ns();
        if (state != SLC_SHIM_DRIVER_NOT_READY || *by - begin >= patience_ns) return state;
        *before = asked;
        sched_yield();
    }
}

/* Records the spare event as an anchor and waits for it for a while. It became done within `width_ns` around
 * `middle_ns`. NOT_READY: it stays under way. The next try records it again only once it is done, because nobody has
 * seen when it became so. */
static int try_anchor(slc_shim_recorder *recorder, slc_shim_time_pool *pool, bool patient, int64_t *middle_ns,
                      int64_t *width_ns)
{
    enum { SOON_NS = 200000, PATIENT_NS = 1000000000 };
    int64_t before = 0, by;
    if (pool->trying) {
        int late = poll_event(recorder, pool->other, patient ? PATIENT_NS : 0, &before, &by);
        if (late) return late;
    }
    before = now_ns();
    int error = recorder->driver->EventRecord(pool->other, pool->stream);
    if (error) return error;
    pool->trying = true;
    error = poll_event(recorder, pool->other, patient ? PATIENT_NS : SOON_NS, &before, &by);
    if (error) return error;
    pool->trying = false;
    *width_ns = by - before;
    *middle_ns = before + *width_ns / 2;
    return 0;
}

/* Tries several times to record an anchor, and takes the one whose time is known best. It stops at the first one that
 * is as good as on an idle device. If the device is too busy for any, the old anchor stays. False: there is no
 * anchor. */
static bool renew_anchor(slc_shim_recorder *recorder, slc_shim_time_pool *pool, bool patient)
{
    enum { TRIES = 5, NARROW_NS = 30000 };
    const slc_shim_driver *driver = recorder->driver;
    if (pool->anchor_ns && now_ns() - pool->anchor_ns < ANCHOR_LIFE_NS) return true;
    int error = pool->stream ? 0 : driver->StreamCreate(&pool->stream, SLC_SHIM_DRIVER_NON_BLOCKING);
    if (!error && !pool->anchor) error = driver->EventCreate(&pool->anchor, 0);
    if (!error && !pool->other) error = driver->EventCreate(&pool->other, 0);
    int64_t least = INT64_MAX, middle, width;
    for (int i = 0; !error && i < TRIES && least > NARROW_NS; i++) {
        error = try_anchor(recorder, pool, patient, &middle, &width);
        if (error || width >= least) continue;
        slc_shim_driver_event better = pool->other;
        pool->other = pool->anchor;
        pool->anchor = better;
        pool->anchor_ns = middle;
        least = width;
    }
    if (error && error != SLC_SHIM_DRIVER_NOT_READY) refuse(recorder, "EventQuery of an anchor", error);
    return pool->anchor_ns && !atomic_load(&recorder->time_is_off);
}

static void write_time(slc_shim_recorder *recorder, uint64_t index, int64_t begin, int64_t end)
{
    slc_record_time *time = &recorder->times[index & recorder->entry_mask];
    const slc_record_entry *entry = &recorder->entries[index & recorder->entry_mask];
    uint32_t sequence = (uint32_t)(index + 1);
    if (__atomic_load_n(&entry->sequence, __ATOMIC_ACQUIRE) != sequence) {
        slc_shim_times_lost(recorder);
        return;
    }
    __atomic_store_n(&time->sequence, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&time->begin_ns, begin, __ATOMIC_RELEASE);
    __atomic_store_n(&time->end_ns, end, __ATOMIC_RELEASE);
    __atomic_store_n(&time->sequence, sequence, __ATOMIC_RELEASE);
}

/* Returns true if the entry is one of those that the pair's group put on its stream. */
static bool is_of_pair(const slc_shim_recorder *recorder, uint64_t index, const slc_shim_time_pair *pair)
{
    const slc_record_entry *entry = &recorder->entries[index & recorder->entry_mask];
    uint64_t stream = __atomic_load_n(&entry->stream_operation_dtype, __ATOMIC_RELAXED);
    unsigned operation = (unsigned)(stream >> 48) & 0xff;
    return (__atomic_load_n(&entry->group_flags, __ATOMIC_RELAXED) & 0xffffffu) == pair->group &&
           __atomic_load_n(&entry->send_communicator, __ATOMIC_RELAXED) >> 48 == pair->row &&
           (stream & SLC_RECORD_LOW48) == ((uint64_t)(uintptr_t)pair->stream & SLC_RECORD_LOW48) &&
           operation <= SLC_RECORD_RECEIVE && operation != SLC_RECORD_SPLIT;
}

static void write_pair(slc_shim_recorder *recorder, const slc_shim_time_pool *pool, const slc_shim_time_pair *pair)
{
    float since_anchor, lasted;
    int error = recorder->driver->EventElapsedTime(&since_anchor, pool->anchor, pair->begin);
    if (!error) error = recorder->driver->EventElapsedTime(&lasted, pair->begin, pair->end);
    if (error) {
        refuse(recorder, "EventElapsedTime", error);
        return;
    }
    int64_t begin = pool->anchor_ns + (int64_t)((double)since_anchor * 1e6);
    int64_t end = begin + (int64_t)((double)lasted * 1e6);
    if (!pair->group) {
        write_time(recorder, pair->first, begin, end);
        return;
    }
    for (uint64_t i = pair->first; i <= pair->last; i++)
        if (is_of_pair(recorder, i, pair)) write_time(recorder, i, begin, end);
}

/* Takes the oldest pair out of the list, if it is done and there is an anchor for it; else returns NULL. */
static slc_shim_time_pair *take_finished(slc_shim_recorder *recorder, slc_shim_time_pool *pool, bool patient)
{
    lock(pool);
    slc_shim_time_pair *oldest = pool->running; /* stays: only the reading thread takes pairs out */
    unlock(pool);
    if (!oldest) return NULL;
    int error = recorder->driver->EventQuery(oldest->end);
    if (error == SLC_SHIM_DRIVER_NOT_READY) return NULL;
    if (error) {
        refuse(recorder, "EventQuery", error);
        return NULL;
    }
    if (!renew_anchor(recorder, pool, patient)) return NULL;
    lock(pool);
    pool->running = oldest->next;
    if (!pool->running) pool->running_end = &pool->running;
    unlock(pool);
    return oldest;
}

/* Exchanges this thread's capture mode with *mode, so that reading events does not end a capture that another thread
 * has under way. */
static void exchange_capture_mode(const slc_shim_recorder *recorder, int *mode)
{
    const slc_shim_driver *driver = recorder->driver;
    if (driver->ThreadExchangeStreamCaptureMode) driver->ThreadExchangeStreamCaptureMode(mode);
}

/* Reads finished pairs of a pool. If another thread does so already, a patient one waits for it, and others leave them
 * to it. */
static void harvest(slc_shim_recorder *recorder, slc_shim_time_pool *pool, unsigned most, bool patient)
{
    int mode = SLC_SHIM_DRIVER_RELAXED;
    while (atomic_flag_test_and_set_explicit(&pool->reading, memory_order_acquire)) {
        if (!patient) return;
        sched_yield();
    }
    exchange_capture_mode(recorder, &mode);
    slc_shim_time_pair *pair;
    while (most-- && !atomic_load(&recorder->time_is_off) && (pair = take_finished(recorder, pool, patient))) {
        write_pair(recorder, pool, pair);
        give_back(pair);
    }
    exchange_capture_mode(recorder, &mode);
    atomic_flag_clear_explicit(&pool->reading, memory_order_release);
}

void slc_shim_times_harvest(slc_shim_recorder *recorder)
{
    for (int i = 0; i < MOST_POOLS && !atomic_load(&recorder->time_is_off); i++) {
        slc_shim_time_pool *pool = atomic_load_explicit(&pools[i], memory_order_acquire);
        if (!pool) return;
        if (recorder->driver->CtxPushCurrent(pool->context)) continue;
        harvest(recorder, pool, UINT32_MAX, true);
        slc_shim_driver_context popped;
        recorder->driver->CtxPopCurrent(&popped);
    }
}

void slc_shim_times_begin_child(void)
{
    for (int i = 0; i < MOST_POOLS; i++) atomic_store(&pools[i], NULL);
}

/* ---- Pairs ---- */

slc_shim_time_pair *slc_shim_times_begin(slc_shim_recorder *recorder, cudaStream_t stream)
{
    slc_shim_time_pool *pool = atomic_load(&recorder->time_is_off) ? NULL : current_pool(recorder);
    if (!pool) return NULL;
    harvest(recorder, pool, 4, false);
    slc_shim_time_pair *pair = take_free(pool);
    if (!pair) {
        grow(recorder, pool);
        pair = take_free(pool);
    }
    if (!pair) {
        slc_shim_times_lost(recorder);
        return NULL;
    }
    pair->stream = stream;
    pair->group = 0;
    int error = recorder->driver->EventRecord(pair->begin, stream);
    if (!error) return pair;
    refuse(recorder, "EventRecord", error);
    give_back(pair);
    return NULL;
}

void slc_shim_times_end(slc_shim_recorder *recorder, slc_shim_time_pair *pair, bool failed)
{
    slc_shim_time_pool *pool = pair->pool;
    int error = failed ? 0 : recorder->driver->EventRecord(pair->end, pair->stream);
    if (error) refuse(recorder, "EventRecord", error);
    if (error || failed) {
        give_back(pair);
        return;
    }
    pair->next = NULL;
    lock(pool);
    *pool->running_end = pair;
    pool->running_end = &pair->next;
    unlock(pool);
}

void slc_shim_times_lose(slc_shim_recorder *recorder, slc_shim_time_pair *pair)
{
    for (uint64_t i = pair->first; i <= pair->last; i++)
        if (!pair->group || is_of_pair(recorder, i, pair)) slc_shim_times_lost(recorder);
    give_back(pair);
}
