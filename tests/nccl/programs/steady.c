/* Repeats a step of grouped and of large all-reduces, and counts from the third one on what the shim allocates: calls
 * of malloc and its like out of libsluice_nccl.so, and device memory. Neither may happen. */
#include "tests/nccl/programs/shared/ranks.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 300, PIECE = 500, LARGE = 100000, STEPS = 8, WARM = 3 };

static _Atomic unsigned allocations;
static _Thread_local bool counting;

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they have their own */
static void count_allocation(const void *caller)
{
    Dl_info info;
    if (!counting) return;
    counting = false;
    if (dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libsluice_nccl")) allocations++;
    counting = true;
}

void *malloc(size_t bytes)
{
    count_allocation(__builtin_return_address(0));
    return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes)
{
    count_allocation(__builtin_return_address(0));
    return __libc_calloc(count, bytes);
}
void *realloc(void *memory, size_t bytes)
{
    count_allocation(__builtin_return_address(0));
    return __libc_realloc(memory, bytes);
}
#endif

/* The shim keeps a list for each thread that is inside a group at the same time: in the first steps all of them are. */
static void meet(const slc_rank *rank, int step)
{
    static _Atomic int arrived;
    arrived++;
    while (arrived < (step + 1) * rank->size) sched_yield();
}

static void run(slc_rank *rank)
{
    ncclComm_t communicator;
    cudaStream_t stream;
    float *memory;
    size_t before = 0, after, total;
    NCCL(ncclCommInitRank(&communicator, rank->size, rank->ids[0], rank->rank));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc((void **)&memory, (PIECES * PIECE + LARGE) * sizeof(float)));
    CUDA(cudaMemset(memory, 0, (PIECES * PIECE + LARGE) * sizeof(float)));
    for (int step = 0; step < STEPS; step++) {
        if (step == WARM) CUDA(cudaMemGetInfo(&before, &total));
        counting = step >= WARM;
        NCCL(ncclGroupStart());
        for (int i = 0; i < PIECES; i++)
            NCCL(ncclAllReduce(memory + i * PIECE, memory + i * PIECE, PIECE, ncclFloat32, ncclSum, communicator,
                               stream));
        if (step < WARM) meet(rank, step);
        NCCL(ncclGroupEnd());
        NCCL(ncclAllReduce(memory + PIECES * PIECE, memory + PIECES * PIECE, LARGE, ncclFloat32, ncclSum, communicator,
                           stream));
        counting = false;
        rank->calls += PIECES + 1;
        CUDA(cudaStreamSynchronize(stream));
    }
    CUDA(cudaMemGetInfo(&after, &total));
    CHECK(after == before, "%zu bytes of device memory were allocated", before - after);
    CHECK(!allocations, "the shim allocated %u times", (unsigned)allocations);
    CUDA(cudaFree(memory));
    CUDA(cudaStreamDestroy(stream));
    NCCL(ncclCommDestroy(communicator));
}

int main(int argc, char **argv)
{
    return slc_ranks_run(&argc, argv, 2, 120, run);
}
