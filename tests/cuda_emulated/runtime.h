/* Declarations that the files of the emulated runtime share. Streams, memory and limits (streams.cc, loading.cc,
 * limits.cc, memory.cc, bytes.cc) are the same in two libraries: the emulation for this project's kernels, and
 * tests/nccl/bed/hostcuda, which runs other people's programs. Their rules, and functions of their own, say what the
 * two do not have in common.
 *
 * The files are compiled without the thread sanitizer: what orders the
 * program's own accesses they tell it by hand (order_before and order_after on one address), so that what the program
 * forgot to order shows as a race. Their own words are ordered by atomics, which the sanitizer does not see. */
#pragma once

#include <atomic>
#include <functional>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>
#include <emulated.h>

#if defined(EMULATED_THREAD_SANITIZER)
extern "C" {
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void *__tsan_get_current_fiber(void);
void __tsan_acquire(void *at);
void __tsan_release(void *at);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
}
#define order_before(at) __tsan_release(at)
#define order_after(at) __tsan_acquire(at)
#else
#define order_before(at) ((void)(at))
#define order_after(at) ((void)(at))
#endif

/* Frees what a stream's thread may have been the last to read: an atomic counter, which the thread sanitizer does not
 * see, says that it has, and to show it that order would order what the program did not. */
static inline void emulated_free(void *at)
{
#if defined(EMULATED_THREAD_SANITIZER)
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    free(at);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
#else
    free(at);
#endif
}

/* ---- Options and draws ---- */
uint64_t emulated_option(const char *name, uint64_t otherwise); /* from the environment */
uint64_t emulated_seed();
uint64_t emulated_draw(uint64_t *state); /* SplitMix64 */

/* ---- Words that threads of the host wait at, and locks of a few instructions ---- */
void emulated_wait_for(std::atomic<uint32_t> *word, uint32_t least);
void emulated_wake(std::atomic<uint32_t> *word);
struct emulated_lock {
    std::atomic<int> taken{0};
    void lock();
    void unlock();
};

/* ---- Rules, which each of the two libraries has ---- */
struct emulated_rules {
    const char *devices, *memory,
        *guard; /* names of settings in the environment; guard may be NULL: nothing is guarded */
    uint64_t device_count, memory_bytes; /* where they are not set */
    bool destroy_waits;                  /* cudaStreamDestroy returns when the stream's work is done */
    size_t shared_bytes;                 /* of shared memory that a kernel may ask for */
};
extern const emulated_rules emulated_rules;
/* Called when a program does what this project's programs must not do, but CUDA bears or answers with an error: the
 * emulation ends the process, tests/nccl/bed/hostcuda returns. */
void emulated_forbidden(const char *why);
/* Called before a call that allocates, frees, or asks or waits for what streams have done. Returns an error if a
 * capture forbids such calls, and invalidates that capture. The emulation captures nothing. */
cudaError_t emulated_unsafe_call();
void emulated_stream_ends(); /* called by a stream's thread at its end */

/* ---- fibers.cc, of the emulation alone ---- */
struct emulated_grid;
/* Runs all blocks of a grid in this thread, in a drawn order. */
void emulated_run_grid(const emulated_grid *grid, const void *arguments);
void emulated_end_fibers(); /* frees what this thread keeps for its blocks */

/* ---- streams.cc ---- */
extern std::atomic<uint64_t> emulated_allocations, emulated_waits, emulated_launches, emulated_copies,
    emulated_collectives, emulated_calls;
/* Appends work to a stream; `device_memory`: it touches some. */
cudaError_t emulated_enqueue(cudaStream_t stream, bool device_memory, std::function<void()> work);
cudaError_t emulated_error(cudaError_t error); /* keeps it for cudaGetLastError; returns it */
/* Sets what emulated_error has kept for this thread; returns what it was. */
cudaError_t emulated_exchange_last_error(cudaError_t error);
cudaError_t emulated_sticky();             /* the error that every call returns from now on, or cudaSuccess */
void emulated_wait_for_device(int device); /* for all its streams */

/* ---- memory.cc ---- */
enum { EMULATED_DEVICES_MOST = 64 };
int emulated_device();        /* the current one of this thread; 0, from now on, if it had none */
int emulated_chosen_device(); /* the same, but -1 if it has none */
void emulated_choose_device(int device);
uint64_t emulated_memory(); /* the bytes of a device */
enum emulated_kind { EMULATED_UNKNOWN, EMULATED_PINNED, EMULATED_DEVICE, EMULATED_MANAGED, EMULATED_REGISTERED };
struct emulated_allocation {
    size_t bytes, pages; /* pages: the bytes rounded up to whole ones, which count */
    emulated_kind kind;
    int device; /* the current one when it was allocated */
};
cudaError_t emulated_allocate(void **out, size_t bytes, emulated_kind kind);
/* Registers memory of the host that the program has; false: a part of it is known already. */
bool emulated_register(void *at, size_t bytes);
/* Forgets and frees an allocation of this kind, at once, without waiting for streams. */
cudaError_t emulated_release(void *at, emulated_kind kind);
/* Returns the kind of the allocation that all of [at, at + bytes) lies in, and tells what it is unless that is NULL. */
emulated_kind emulated_find(const void *at, size_t bytes, const char **begin, emulated_allocation *found);
void emulated_reach(bool open); /* takes device memory in and out of reach, where it is guarded */

/* ---- bytes.cc, which sanitizers see ---- */
void emulated_copy_bytes(void *to, const void *from, size_t bytes);
void emulated_set_bytes(void *at, int value, size_t bytes);
