/* Tests may ask this of the emulated CUDA runtime, beyond CUDA itself.
 *
 * Environment: SLUICE_EMULATED_SEED draws the order of threads and blocks and the delays of streams; 0, the default, is
 * ascending order without delays. SLUICE_EMULATED_GUARD=1 takes device memory out of reach while no operation runs, so
 * that an access from the host faults. SLUICE_EMULATED_MEMORY is the device's memory in bytes (1 GiB),
 * SLUICE_EMULATED_DEVICES the number of devices (1), SLUICE_EMULATED_CAPABILITY ten times the compute capability (90),
 * SLUICE_EMULATED_DRIVER the newest CUDA version that the driver knows (13000), SLUICE_EMULATED_GRID the most blocks of
 * a grid along y and along z (65535).
 *
 * A kernel's first launch waits for all streams, as lazy loading does. If it waits for a collective and that does not
 * end within SLUICE_EMULATED_PATIENCE seconds (20), the program is stopped. With SLUICE_EMULATED_LOADED=1 it is stopped
 * at once if a kernel is launched for the first time after the process has begun a collective, with 2 if that happens
 * while one is in a stream and has not ended.
 *
 * A program that does what a GPU would not bear is stopped with one line on standard error and exit code 99: threads
 * that wait for each other for ever, a mask with lanes that have ended, different __syncthreads in one block, a
 * misaligned ldmatrix or cp.async, cp.async copies that nobody waited for, copies from or to host memory that is not
 * pinned, an operation of a warp whose lanes come to it at different places of the source. */
#pragma once

#include <stdint.h>

#include <cuda_runtime_api.h>

#if defined(__cplusplus)
extern "C" {
#endif

enum { EMULATED_EXIT_CODE = 99 };

typedef struct {
    uint64_t allocations; /* calls of cudaMalloc, cudaFree, cudaHostAlloc and cudaFreeHost, streams and events made */
    uint64_t waits;       /* calls with which the host waited: synchronisations, and cudaFree, which waits too */
    uint64_t launches, copies;
    uint64_t collectives, calls; /* collectives launched, each of which may be a group of so many calls of NCCL's */
} emulated_counts;

/* Counts since the process began, of all threads. */
emulated_counts emulated_count(void);

/* Launches since the process began, of all kernels whose names, as their launch writes them, contain `part`. Not there
 * in tests/nccl/bed/hostcuda. */
uint64_t emulated_count_kernel(const char *part);

/* cudaLaunchHostFunc for a function that waits for other ranks and uses device memory, as a collective's kernel does;
 * `what` is for messages, and is copied; `calls` is counted. */
cudaError_t emulated_launch_collective(cudaStream_t stream, void (*run)(void *argument), void *argument,
                                       const char *what, uint64_t calls);

/* The `operation`th operation from now on, of all streams, fails with this cudaError_t instead of being done; so does
 * all that comes after it, and every call returns the error from then on, as a GPU does. */
void emulated_fail(uint64_t operation, int error);

#if defined(__cplusplus)
}
#endif
