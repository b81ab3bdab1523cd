/* What the files of the emulated runtime share. They are compiled without the thread sanitizer: what orders the
 * program's own accesses they tell it by hand (order_before and order_after on one address), so that what the program
 * forgot to order shows as a race. Their own words are ordered by atomics, which the sanitizer does not see. */
#ifndef EMULATED_RUNTIME_H
#define EMULATED_RUNTIME_H

#include <atomic>
#include <functional>

#include <cuda_runtime.h>
#include <emulated.h>

#if defined(EMULATED_THREAD_SANITIZER)
extern "C" {
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void *__tsan_get_current_fiber(void);
void __tsan_acquire(void *at);
void __tsan_release(void *at);
}
#define order_before(at) __tsan_release(at)
#define order_after(at) __tsan_acquire(at)
#else
#define order_before(at) ((void)(at))
#define order_after(at) ((void)(at))
#endif

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

/* ---- fibers.cc ---- */
/* Runs all blocks of a grid in this thread, in a drawn order. */
void emulated_run_grid(const emulated_grid *grid, const void *arguments);
void emulated_end_fibers(); /* frees what this thread keeps for its blocks */

/* ---- streams.cc ---- */
extern std::atomic<uint64_t> emulated_allocations, emulated_waits, emulated_launches, emulated_copies;
/* Appends work to a stream; `device_memory`: it touches some. */
cudaError_t emulated_enqueue(cudaStream_t stream, bool device_memory, std::function<void()> work);
cudaError_t emulated_error(cudaError_t error); /* keeps it for cudaGetLastError; returns it */
cudaError_t emulated_sticky();                 /* the error that every call returns from now on, or cudaSuccess */
void emulated_wait_for_all_streams();

/* ---- memory.cc ---- */
void emulated_reach(bool open); /* takes device memory in and out of reach, where it is guarded */
bool emulated_device_memory(const void *at, size_t bytes); /* all of it lies in one allocation of the device */

/* ---- bytes.cc, which sanitizers see ---- */
void emulated_copy_bytes(void *to, const void *from, size_t bytes);
void emulated_set_bytes(void *at, int value, size_t bytes);

#endif
