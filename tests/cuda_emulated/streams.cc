/* Streams, events, launches and errors. A stream is a thread with a queue; with a seed it sleeps now and then before
 * an operation, so that what the program did not order happens in many orders. */
#include "tests/cuda_emulated/runtime.h"

#include <deque>
#include <linux/futex.h>
#include <map>
#include <memory>
#include <pthread.h>
#include <set>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <vector>

std::atomic<uint64_t> emulated_allocations, emulated_waits, emulated_launches, emulated_copies;

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

void emulated_fail(uint64_t operation, int error)
{
    failing_error = error;
    failing_operation = operation;
}

/* Whether the next operation, which begins now, must not be done. */
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

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle: return "invalid resource handle";
    case cudaErrorNotReady: return "device not ready";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    case cudaErrorNotSupported: return "operation not supported";
    }
    return "unrecognized error code";
}

/* ---- Streams ---- */

namespace {
struct operation {
    std::function<void()> work; /* none: the stream ends */
    bool device_memory;
    char order; /* what the caller did before it is seen by it; each has its own, so that later calls order nothing */
};
} // namespace
struct CUstream_st {
    std::deque<std::unique_ptr<operation>> queue;
    emulated_lock lock;
    std::atomic<uint32_t> asked{0}, done{0};
    pthread_t thread;
    uint64_t random;
    char order; /* from the stream to who waits for it */
};
enum { GENERATIONS = 8 };
struct CUevent_st {
    std::atomic<uint32_t> asked{0}, done{0};
    bool timed;
    timespec when;
    char order[GENERATIONS]; /* of record n at n % GENERATIONS, so that a later record orders nothing more */
};

static emulated_lock streams_lock;
static std::set<cudaStream_t> &all_streams()
{
    static std::set<cudaStream_t> *streams = new std::set<cudaStream_t>;
    return *streams;
}

static void *stream_main(void *argument)
{
    cudaStream_t s = (cudaStream_t)argument;
    for (uint32_t number = 1;; number++) {
        emulated_wait_for(&s->asked, number);
        s->lock.lock();
        std::unique_ptr<operation> next = std::move(s->queue.front());
        s->queue.pop_front();
        s->lock.unlock();
        order_after(&next->order);
        if (!next->work) break;
        if (emulated_seed() && emulated_draw(&s->random) % 4 == 0) usleep((unsigned)(emulated_draw(&s->random) % 500));
        if (!next->device_memory) {
            next->work();
        } else if (!operation_fails()) {
            emulated_reach(true);
            next->work();
            emulated_reach(false);
        }
        order_before(&s->order);
        s->done = number;
        emulated_wake(&s->done);
    }
    emulated_end_fibers();
    return NULL;
}

static void push(cudaStream_t s, bool device_memory, std::function<void()> work)
{
    if (!s) emulated_stop("the default stream is not for use");
    std::unique_ptr<operation> o(new operation{std::move(work), device_memory, 0});
    order_before(&o->order);
    s->lock.lock();
    s->queue.push_back(std::move(o));
    s->asked++;
    s->lock.unlock();
    emulated_wake(&s->asked);
}

cudaError_t emulated_enqueue(cudaStream_t s, bool device_memory, std::function<void()> work)
{
    if (emulated_sticky()) return emulated_sticky();
    push(s, device_memory, std::move(work));
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    static std::atomic<uint64_t> number;
    if (emulated_sticky()) return emulated_sticky();
    if (flags != cudaStreamNonBlocking) emulated_stop("streams must not wait for the default stream");
    emulated_allocations++;
    cudaStream_t s = new CUstream_st();
    s->random = emulated_seed() + 977 * ++number;
    if (pthread_create(&s->thread, NULL, stream_main, s)) {
        delete s;
        return emulated_error(cudaErrorMemoryAllocation);
    }
    streams_lock.lock();
    all_streams().insert(s);
    streams_lock.unlock();
    *out = s;
    return cudaSuccess;
}

static void wait_for_stream(cudaStream_t s)
{
    emulated_wait_for(&s->done, s->asked);
    order_after(&s->order);
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    emulated_waits++;
    wait_for_stream(s);
    return emulated_sticky();
}

void emulated_wait_for_all_streams()
{
    streams_lock.lock();
    std::vector<cudaStream_t> streams(all_streams().begin(), all_streams().end());
    streams_lock.unlock();
    for (cudaStream_t s : streams) wait_for_stream(s);
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    streams_lock.lock();
    all_streams().erase(s);
    streams_lock.unlock();
    push(s, false, nullptr);
    pthread_join(s->thread, NULL);
    delete s;
    return emulated_sticky();
}

/* ---- Events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    if (emulated_sticky()) return emulated_sticky();
    emulated_allocations++;
    *out = new CUevent_st();
    (*out)->timed = !(flags & cudaEventDisableTiming);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    emulated_wait_for(&e->done, e->asked); /* a GPU would free it only then */
    delete e;
    return emulated_sticky();
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    if (emulated_sticky()) return emulated_sticky();
    const uint32_t number = ++e->asked;
    push(s, false, [=] {
        clock_gettime(CLOCK_MONOTONIC, &e->when);
        order_before(&e->order[number % GENERATIONS]);
        uint32_t done = e->done; /* another stream may have done a later record already */
        while ((int32_t)(done - number) < 0 && !e->done.compare_exchange_weak(done, number)) {
        }
        emulated_wake(&e->done);
    });
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t e)
{
    if (emulated_sticky()) return emulated_sticky();
    const uint32_t number = e->asked;
    if ((int32_t)(e->done - number) < 0) return cudaErrorNotReady;
    order_after(&e->order[number % GENERATIONS]);
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    emulated_waits++;
    const uint32_t number = e->asked;
    emulated_wait_for(&e->done, number);
    order_after(&e->order[number % GENERATIONS]);
    return emulated_sticky();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned)
{
    const uint32_t number = e->asked;
    return emulated_enqueue(s, false, [=] {
        emulated_wait_for(&e->done, number);
        order_after(&e->order[number % GENERATIONS]);
    });
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end)
{
    if (emulated_sticky()) return emulated_sticky();
    if (!begin->timed || !end->timed || !begin->asked || !end->asked)
        return emulated_error(cudaErrorInvalidResourceHandle);
    if (cudaEventQuery(begin) || cudaEventQuery(end)) return cudaErrorNotReady;
    *milliseconds = (float)(1e3 * (double)(end->when.tv_sec - begin->when.tv_sec) +
                            1e-6 * (double)(end->when.tv_nsec - begin->when.tv_nsec));
    return cudaSuccess;
}

/* ---- Launches ---- */

constexpr size_t SHARED_WITHOUT_ASKING = 48 << 10;
constexpr int SHARED_MOST = 227 << 10, THREADS_MOST = 1024, GRID_Y_MOST = 65535;

static emulated_lock limits_lock;
static std::map<const void *, size_t> &shared_limits()
{
    static std::map<const void *, size_t> *limits = new std::map<const void *, size_t>;
    return *limits;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute, int value)
{
    if (emulated_sticky()) return emulated_sticky();
    if (value < 0 || value > SHARED_MOST) return emulated_error(cudaErrorInvalidValue);
    limits_lock.lock();
    shared_limits()[kernel] = (size_t)value;
    limits_lock.unlock();
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *, const void *)
{
    return emulated_error(cudaErrorNotSupported);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *, const void *, int, size_t)
{
    return emulated_error(cudaErrorNotSupported);
}

static size_t shared_limit(const void *kernel)
{
    limits_lock.lock();
    auto found = shared_limits().find(kernel);
    size_t limit = found == shared_limits().end() ? 0 : found->second;
    limits_lock.unlock();
    return limit > SHARED_WITHOUT_ASKING ? limit : SHARED_WITHOUT_ASKING;
}

cudaError_t emulated_enqueue_grid(cudaStream_t stream, const emulated_grid *grid, const void *arguments, size_t bytes)
{
    const emulated_grid launch = *grid;
    const dim3 t = launch.threads, g = launch.grid;
    const uint64_t threads = (uint64_t)t.x * t.y * t.z;
    if (emulated_sticky()) return emulated_sticky();
    if (!threads || threads > THREADS_MOST || !g.x || !g.y || !g.z || g.x > INT32_MAX || g.y > GRID_Y_MOST ||
        g.z > GRID_Y_MOST || launch.shared > shared_limit(launch.kernel)) {
        return emulated_error(launch.shared > shared_limit(launch.kernel) ? cudaErrorInvalidValue
                                                                          : cudaErrorInvalidConfiguration);
    }
    emulated_launches++;
    std::shared_ptr<void> kept(aligned_alloc(64, (bytes + 63) / 64 * 64), free);
    memcpy(kept.get(), arguments, bytes);
    push(stream, true, [=] { emulated_run_grid(&launch, kept.get()); });
    return cudaSuccess;
}

emulated_counts emulated_count(void)
{
    return {emulated_allocations, emulated_waits, emulated_launches, emulated_copies};
}
