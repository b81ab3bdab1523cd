/* Lazy loading, and what it does beside collectives. CUDA loads a kernel into a GPU when the kernel is launched there
 * for the first time; it then holds the context's lock, so that no thread gives that GPU other work, and may wait until
 * the GPU has nothing left to do. Here it always waits. If a stream runs a collective meanwhile, which waits for a rank
 * that waits for work which this process can only give later, neither goes on (openxla/xla #38932). A program avoids
 * that if every kernel and every shape of a product has run before its first collective. */
#include "tests/cuda_emulated/streams.h"

#include <emulated.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>
#include <unordered_set>

enum { PATIENCE_S = 20, LOOKS_A_SECOND = 50 };

/* ---- The lock of a device's context ---- */

static std::atomic<uint32_t> context[EMULATED_DEVICES_MOST]; /* 0: free, 1: taken, 2: taken, and a thread waits */

void emulated_context_lock(int device)
{
    uint32_t state = 0;
    if (context[device].compare_exchange_strong(state, 1)) return;
    while (context[device].exchange(2)) syscall(SYS_futex, &context[device], FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

void emulated_context_unlock(int device)
{
    if (context[device].exchange(0) == 2) emulated_wake(&context[device]);
}

/* ---- Collectives ---- */

static std::atomic<int> pending;      /* those that are in a stream and have not ended */
static std::atomic<bool> collectives; /* the process has begun one */
static thread_local CUstream_st *own; /* the stream whose thread this is */

void emulated_is_stream(CUstream_st *stream)
{
    own = stream;
}

cudaError_t emulated_launch_collective(cudaStream_t stream, void (*run)(void *argument), void *argument,
                                       const char *what, uint64_t calls)
{
    collectives = true;
    emulated_collectives++;
    emulated_calls += calls;
    pending++;
    return emulated_enqueue(stream, false, [=, name = std::string(what)] {
        CUstream_st *here = own;
        emulated_reach(true);
        if (here) here->collective = name.c_str();
        run(argument);
        if (here) here->collective = NULL;
        emulated_reach(false);
        pending--;
    });
}

/* ---- Loading ---- */

static emulated_lock loaded_lock;
static bool is_new(int device, uint64_t kernel)
{
    static std::unordered_set<uint64_t> *loaded = new std::unordered_set<uint64_t>[EMULATED_DEVICES_MOST];
    loaded_lock.lock();
    const bool first = loaded[device].insert(kernel).second;
    loaded_lock.unlock();
    return first;
}

[[noreturn]] static void stop(const char *kernel, const char *why, const char *what)
{
    fprintf(stderr, "emulated CUDA: kernel %s: its first launch %s %s\n", kernel, why, what);
    _exit(EMULATED_EXIT_CODE);
}

/* Waits until a device's streams are empty. If nothing moves for a while and a collective is under way, that is a
 * deadlock. Without a collective it waits on: a stream may run a function of the host that waits for the program. */
static void wait_for_streams(int device, const char *kernel)
{
    const int most = (int)emulated_option("SLUICE_EMULATED_PATIENCE", PATIENCE_S) * LOOKS_A_SECOND;
    const std::vector<std::shared_ptr<CUstream_st>> streams = emulated_streams_of(device);
    uint64_t seen = 0;
    for (int looks = 0; looks <= most; looks++) {
        const char *collective = NULL;
        uint64_t done = 0;
        bool idle = true;
        for (auto &s : streams) {
            idle = idle && s->done == s->asked;
            done += s->done;
            if (const char *what = s->collective) collective = what;
        }
        if (idle) return;
        if (done != seen || !collective) looks = 0, seen = done;
        if (looks == most)
            stop(kernel, "waits for all streams of the GPU, and one of them for other ranks: a deadlock with",
                 collective);
        usleep(looks ? 1000000 / LOOKS_A_SECOND : 100);
    }
}

void emulated_load(cudaStream_t stream, uint64_t kernel, const char *name)
{
    cudaStream_t s = emulated_stream(stream);
    if (!s || s->recorder || !is_new(s->device, kernel)) return;
    if (collectives && emulated_option("SLUICE_EMULATED_LOADED", 0) == 1)
        stop(name, "comes after the process has begun a collective,", "and may be a deadlock with it");
    if (pending && emulated_option("SLUICE_EMULATED_LOADED", 0) == 2)
        stop(name, "comes while a collective is under way,", "which may be a deadlock");
    emulated_context_lock(s->device);
    wait_for_streams(s->device, name);
    emulated_context_unlock(s->device);
}
