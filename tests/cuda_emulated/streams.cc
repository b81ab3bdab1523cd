/* Streams, events and errors. A stream is a thread with a queue; with a seed it sleeps now and then before an
 * operation, so that what the program did not order happens in many orders. */
#include "tests/cuda_emulated/streams.h"

#include <linux/futex.h>
#include <set>
#include <sys/syscall.h>
#include <unistd.h>

std::atomic<uint64_t> emulated_allocations, emulated_waits, emulated_launches, emulated_copies, emulated_collectives,
    emulated_calls;

/* ---- Options, draws, waiting ---- */

uint64_t emulated_option(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

uint64_t emulated_seed()
{
    static const uint64_t seed = emulated_option("SLUICE_EMULATED_SEED", 0);
    return seed;
}

uint64_t emulated_draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

/* Waits are system calls of our own: the sanitizer would take a condition variable for an order of the program's. */
void emulated_wait_for(std::atomic<uint32_t> *word, uint32_t least)
{
    for (uint32_t now; (int32_t)((now = word->load()) - least) < 0;)
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
}

void emulated_wake(std::atomic<uint32_t> *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1 << 30, NULL, NULL, 0);
}

void emulated_lock::lock()
{
    while (taken.exchange(1, std::memory_order_acquire)) usleep(0);
}

void emulated_lock::unlock()
{
    taken.store(0, std::memory_order_release);
}

/* ---- Errors ---- */

static std::atomic<int> sticky;
static std::atomic<uint64_t> failing_operation; /* counts down; 0: none */
static std::atomic<int> failing_error;
static __thread cudaError_t last_error;

cudaError_t emulated_sticky()
{
    return (cudaError_t)sticky.load();
}

cudaError_t emulated_error(cudaError_t error)
{
    if (error) last_error = error;
    return error;
}

cudaError_t emulated_exchange_last_error(cudaError_t error)
{
    const cudaError_t before = last_error;
    last_error = error;
    return before;
}

void emulated_fail(uint64_t operation, int error)
{
    failing_error = error;
    failing_operation = operation;
}

/* True if the operation that begins now must not be done, because it or an earlier one fails. */
static bool operation_fails()
{
    uint64_t left = failing_operation.load();
    while (left && !failing_operation.compare_exchange_weak(left, left - 1)) {
    }
    if (left == 1) sticky = failing_error.load();
    return sticky != cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = emulated_sticky() ? emulated_sticky() : last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return emulated_sticky() ? emulated_sticky() : last_error;
}

/* ---- Streams ---- */

static emulated_lock streams_lock;
static std::set<std::shared_ptr<CUstream_st>> &all_streams()
{
    static std::set<std::shared_ptr<CUstream_st>> *streams = new std::set<std::shared_ptr<CUstream_st>>;
    return *streams;
}
static std::atomic<cudaStream_t> default_streams[EMULATED_DEVICES_MOST];

static void *end_stream(cudaStream_t s, uint32_t number)
{
    order_after(&s->last);
    emulated_stream_ends();
    streams_lock.lock();
    all_streams().erase(s->shared_from_this());
    streams_lock.unlock();
    s->done = number;
    emulated_wake(&s->done);
    return NULL;
}

static void *stream_main(void *argument)
{
    std::unique_ptr<std::shared_ptr<CUstream_st>> kept((std::shared_ptr<CUstream_st> *)argument);
    cudaStream_t s = kept->get();
    emulated_is_stream(s);
    for (uint32_t number = 1;; number++) {
        emulated_wait_for(&s->asked, number);
        s->lock.lock();
        std::unique_ptr<emulated_job> next = std::move(s->queue.front());
        s->queue.pop_front();
        s->lock.unlock();
        order_after(&next->order);
        if (!next->work) return end_stream(s, number);
        if (emulated_seed() && emulated_draw(&s->random) % 4 == 0) usleep((unsigned)(emulated_draw(&s->random) % 500));
        if (!next->device_memory) {
            next->work();
        } else if (!operation_fails()) {
            emulated_reach(true);
            next->work();
            emulated_reach(false);
        }
        next.reset();
        order_before(&s->order);
        s->done = number;
        emulated_wake(&s->done);
    }
}

void emulated_push(cudaStream_t s, bool device_memory, std::function<void()> work)
{
    std::unique_ptr<emulated_job> o(new emulated_job{std::move(work), device_memory, 0});
    const bool ends = !o->work;
    order_before(&o->order);
    emulated_context_lock(s->device);
    s->lock.lock();
    s->queue.push_back(std::move(o));
    if (ends) order_before(&s->last); /* the queue, which may have grown just now, goes with the stream */
    s->asked++;
    s->lock.unlock();
    emulated_context_unlock(s->device);
    emulated_wake(&s->asked);
}

static bool is_idle(cudaStream_t s)
{
    return s->done == s->asked;
}

static bool waits_for_default(cudaStream_t s)
{
    return !(s->flags & cudaStreamNonBlocking);
}

/* Makes stream s wait for what stream t was asked to do before now. */
static void wait_in_stream(cudaStream_t s, std::shared_ptr<CUstream_st> t)
{
    const uint32_t number = t->asked;
    emulated_push(s, false, [=] {
        emulated_wait_for(&t->done, number);
        order_after(&t->order);
    });
}

/* The default stream waits for the device's other streams and they for it, unless they were made otherwise. */
static void order_with_default_stream(cudaStream_t s)
{
    if (!waits_for_default(s)) return;
    cudaStream_t standard = default_streams[s->device];
    if (s != standard) {
        if (standard && !is_idle(standard)) wait_in_stream(s, standard->shared_from_this());
        return;
    }
    for (auto &t : emulated_streams_of(s->device))
        if (t.get() != s && waits_for_default(t.get()) && !is_idle(t.get()) && !t->recorder) wait_in_stream(s, t);
}

cudaError_t emulated_enqueue(cudaStream_t handle, bool device_memory, std::function<void()> work)
{
    if (emulated_sticky()) return emulated_sticky();
    cudaStream_t s = emulated_stream(handle);
    if (!s) return emulated_error(cudaErrorMemoryAllocation);
    if (emulated_recorder *recorder = s->recorder)
        return emulated_error(recorder->append(s, device_memory, std::move(work)));
    order_with_default_stream(s);
    emulated_push(s, device_memory, std::move(work));
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument)
{
    if (!function) return emulated_error(cudaErrorInvalidValue);
    return emulated_enqueue(stream, false, [=] { function(argument); });
}

enum { PRIORITY_LEAST = 0, PRIORITY_GREATEST = -5 };

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    if (least) *least = PRIORITY_LEAST;
    if (greatest) *greatest = PRIORITY_GREATEST;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    if (!stream || flags > cudaStreamNonBlocking) return emulated_error(cudaErrorInvalidValue);
    if (flags != cudaStreamNonBlocking) emulated_forbidden("streams must not wait for the default stream");
    if (priority > PRIORITY_LEAST) priority = PRIORITY_LEAST;
    if (priority < PRIORITY_GREATEST) priority = PRIORITY_GREATEST;
    return emulated_create_stream(stream, flags, priority);
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int *priority)
{
    cudaStream_t s = emulated_stream(handle);
    if (!s || !priority) return emulated_error(cudaErrorInvalidValue);
    *priority = s->priority;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t emulated_create_stream(cudaStream_t *out, unsigned flags, int priority)
{
    static std::atomic<uint64_t> numbers;
    if (emulated_sticky()) return emulated_sticky();
    emulated_allocations++;
    auto s = std::make_shared<CUstream_st>();
    s->handle = s;
    s->flags = flags, s->priority = priority, s->device = emulated_device();
    s->number = ++numbers, s->random = emulated_seed() + 977 * s->number;
    streams_lock.lock();
    all_streams().insert(s);
    streams_lock.unlock();
    auto kept = new std::shared_ptr<CUstream_st>(s); /* by its thread */
    if (pthread_create(&s->thread, NULL, stream_main, kept)) {
        delete kept;
        s->handle.reset();
        streams_lock.lock();
        all_streams().erase(s);
        streams_lock.unlock();
        return emulated_error(cudaErrorMemoryAllocation);
    }
    *out = s.get();
    return cudaSuccess;
}

namespace {
struct own_streams { /* a thread's default streams, destroyed at its end */
    cudaStream_t of[EMULATED_DEVICES_MOST] = {};
    ~own_streams()
    {
        for (cudaStream_t s : of)
            if (s) cudaStreamDestroy(s);
    }
};
} // namespace

static cudaStream_t default_stream(int device)
{
    static emulated_lock lock;
    lock.lock();
    cudaStream_t s = default_streams[device];
    if (!s && !emulated_create_stream(&s, 0, 0)) default_streams[device] = s;
    lock.unlock();
    return s;
}

cudaStream_t emulated_stream(cudaStream_t handle)
{
    if ((uintptr_t)handle > 2) return handle;
    emulated_forbidden("the default stream is not for use");
    if ((uintptr_t)handle < 2) return default_stream(emulated_device());
    static thread_local own_streams own;
    cudaStream_t *s = &own.of[emulated_device()];
    return *s || !emulated_create_stream(s, 0, 0) ? *s : NULL;
}

void emulated_wait_for_stream(CUstream_st *s)
{
    emulated_wait_for(&s->done, s->asked);
    order_after(&s->order);
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
    cudaStream_t s = emulated_stream(handle);
    if (!s) return emulated_error(cudaErrorMemoryAllocation);
    emulated_waits++;
    if (emulated_recorder *recorder = s->recorder) return emulated_error(recorder->refuse());
    if (cudaError_t error = emulated_unsafe_call()) return emulated_error(error);
    if (s == default_streams[s->device]) order_with_default_stream(s);
    emulated_wait_for_stream(s);
    return emulated_sticky();
}

std::vector<std::shared_ptr<CUstream_st>> emulated_streams_of(int device)
{
    std::vector<std::shared_ptr<CUstream_st>> found;
    streams_lock.lock();
    for (auto &s : all_streams())
        if (s->device == device) found.push_back(s);
    streams_lock.unlock();
    return found;
}

void emulated_wait_for_device(int device)
{
    for (auto &s : emulated_streams_of(device)) emulated_wait_for_stream(s.get());
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    if ((uintptr_t)s <= 2) return emulated_error(cudaErrorInvalidResourceHandle);
    if (emulated_recorder *recorder = s->recorder) return emulated_error(recorder->refuse());
    std::shared_ptr<CUstream_st> kept = std::move(s->handle);
    emulated_push(s, false, nullptr);
    if (emulated_rules.destroy_waits)
        pthread_join(s->thread, NULL);
    else
        pthread_detach(s->thread);
    return emulated_sticky();
}

/* ---- Events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    if (emulated_sticky()) return emulated_sticky();
    emulated_allocations++;
    auto e = std::make_shared<CUevent_st>();
    e->handle = e;
    e->device = emulated_device();
    e->timed = !(flags & cudaEventDisableTiming);
    *out = e.get();
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    if (!e) return emulated_error(cudaErrorInvalidResourceHandle);
    std::shared_ptr<CUevent_st> kept = std::move(e->handle);
    return emulated_sticky();
}

std::function<void()> emulated_recording(cudaEvent_t event)
{
    auto record = std::make_shared<emulated_record>();
    std::atomic_store(&event->latest, record);
    return [=] {
        timespec now; /* the sanitizer sees what clock_gettime writes, and not what lets the record be freed later */
        clock_gettime(CLOCK_MONOTONIC, &now);
        record->when = now;
        order_before(&record->order);
        record->done = 1;
        emulated_wake(&record->done);
    };
}

std::function<void()> emulated_waiting(cudaEvent_t event)
{
    std::shared_ptr<emulated_record> record = std::atomic_load(&event->latest);
    return [=] {
        if (!record) return; /* an event that was never recorded */
        emulated_wait_for(&record->done, 1);
        order_after(&record->order);
    };
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t handle)
{
    if (emulated_sticky()) return emulated_sticky();
    cudaStream_t s = emulated_stream(handle);
    if (!e || !s || e->device != s->device) return emulated_error(cudaErrorInvalidResourceHandle);
    if (emulated_recorder *recorder = s->recorder) return emulated_error(recorder->record(s, e));
    e->recorder.reset();
    order_with_default_stream(s);
    emulated_push(s, false, emulated_recording(e));
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t e)
{
    if (emulated_sticky()) return emulated_sticky();
    if (e->recorder) return emulated_error(e->recorder->refuse_event());
    if (cudaError_t error = emulated_unsafe_call()) return emulated_error(error);
    std::shared_ptr<emulated_record> record = std::atomic_load(&e->latest);
    if (!record) return cudaSuccess;
    if (!record->done) return emulated_error(cudaErrorNotReady);
    order_after(&record->order);
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    if (e->recorder) return emulated_error(e->recorder->refuse_event());
    if (cudaError_t error = emulated_unsafe_call()) return emulated_error(error);
    emulated_waits++;
    emulated_waiting(e)();
    return emulated_sticky();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t e, unsigned)
{
    if (emulated_sticky()) return emulated_sticky();
    cudaStream_t s = emulated_stream(handle);
    if (!e || !s) return emulated_error(cudaErrorInvalidResourceHandle);
    emulated_recorder *recorder = e->recorder ? e->recorder.get() : s->recorder.load();
    if (recorder) return emulated_error(recorder->wait(s, e));
    order_with_default_stream(s);
    emulated_push(s, false, emulated_waiting(e));
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end)
{
    if (emulated_sticky()) return emulated_sticky();
    std::shared_ptr<emulated_record> first = std::atomic_load(&begin->latest), last = std::atomic_load(&end->latest);
    if (!begin->timed || !end->timed || !first || !last) return emulated_error(cudaErrorInvalidResourceHandle);
    if (cudaEventQuery(begin) || cudaEventQuery(end)) return emulated_error(cudaErrorNotReady);
    *milliseconds = (float)(1e3 * (double)(last->when.tv_sec - first->when.tv_sec) +
                            1e-6 * (double)(last->when.tv_nsec - first->when.tv_nsec));
    return cudaSuccess;
}
