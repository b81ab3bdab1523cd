/* Times groups of all-reduces: `grouped_times COUNT BYTES STEPS` prints the median of a step's microseconds. The ranks
 * are two devices of one thread. Uses NCCL and CUDA alone; nccl_fuse.py runs it with the shim and without. */
#include "tests/nccl/programs/shared/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RANKS = 2, STEPS_MOST = 1000 };

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    const size_t count = argc == 4 ? strtoul(argv[1], NULL, 0) : 0, bytes = argc == 4 ? strtoul(argv[2], NULL, 0) : 0;
    const int steps = argc == 4 ? atoi(argv[3]) : 0;
    static double times[STEPS_MOST];
    ncclComm_t communicators[RANKS];
    cudaStream_t streams[RANKS];
    char *memory[RANKS];
    CHECK(count && bytes && bytes % 4 == 0 && steps > 0 && steps <= STEPS_MOST,
          "usage: grouped_times COUNT BYTES STEPS, with at most %d steps", STEPS_MOST);
    NCCL(ncclCommInitAll(communicators, RANKS, NULL));
    for (int r = 0; r < RANKS; r++) {
        CUDA(cudaSetDevice(r));
        CUDA(cudaStreamCreateWithFlags(&streams[r], cudaStreamNonBlocking));
        CUDA(cudaMalloc((void **)&memory[r], count * bytes));
        CUDA(cudaMemset(memory[r], 0, count * bytes));
    }
    for (int step = -2; step < steps; step++) {
        const double begin = now_us();
        NCCL(ncclGroupStart());
        for (size_t i = 0; i < count; i++)
            for (int r = 0; r < RANKS; r++)
                NCCL(ncclAllReduce(memory[r] + i * bytes, memory[r] + i * bytes, bytes / 4, ncclFloat32, ncclSum,
                                   communicators[r], streams[r]));
        NCCL(ncclGroupEnd());
        for (int r = 0; r < RANKS; r++) CUDA(cudaStreamSynchronize(streams[r]));
        if (step >= 0) times[step] = now_us() - begin;
    }
    qsort(times, (size_t)steps, sizeof *times, by_size);
    printf("%.3f\n", times[steps / 2]);
    for (int r = 0; r < RANKS; r++) NCCL(ncclCommDestroy(communicators[r]));
    return 0;
}
