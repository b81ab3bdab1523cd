/* A communicator that does not block: every call may say that it is in progress, and is asked about until it is not. */
#include "tests/nccl/programs/shared/ranks.h"

#include <sched.h>

enum { COUNT = 5000, STEPS = 20 };

static void finish(ncclComm_t communicator, ncclResult_t result, const char *what)
{
    while (result == ncclInProgress) {
        sched_yield();
        ncclResult_t asked = ncclCommGetAsyncError(communicator, &result);
        CHECK(asked == ncclSuccess, "ncclCommGetAsyncError after %s: %s", what, ncclGetErrorString(asked));
    }
    CHECK(result == ncclSuccess, "%s: %s", what, ncclGetErrorString(result));
}

static void reduce_in_group(slc_rank *rank, ncclComm_t communicator, cudaStream_t stream, int32_t *memory[2], int step)
{
    int32_t host[COUNT], size = rank->size;
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < COUNT; i++) host[i] = (rank->rank + 1) * (i + step + k);
        CUDA(cudaMemcpy(memory[k], host, sizeof host, cudaMemcpyHostToDevice));
    }
    NCCL(ncclGroupStart());
    for (int k = 0; k < 2; k++) {
        ncclResult_t result = ncclAllReduce(memory[k], memory[k], COUNT, ncclInt32, ncclSum, communicator, stream);
        CHECK(result == ncclSuccess || result == ncclInProgress, "ncclAllReduce: %s", ncclGetErrorString(result));
    }
    finish(communicator, ncclGroupEnd(), "ncclGroupEnd");
    CUDA(cudaStreamSynchronize(stream));
    for (int k = 0; k < 2; k++) {
        CUDA(cudaMemcpy(host, memory[k], sizeof host, cudaMemcpyDeviceToHost));
        for (int i = 0; i < COUNT; i++)
            CHECK(host[i] == size * (size + 1) / 2 * (i + step + k), "rank %d, step %d: element %d is %d", rank->rank,
                  step, i, host[i]);
        slc_rank_result(rank, host, sizeof host);
    }
}

static void poll_all(slc_rank *rank)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t world = NULL, half = NULL;
    cudaStream_t stream;
    int32_t *memory[2];
    config.blocking = 0;
    finish(world, ncclCommInitRankConfig(&world, rank->size, rank->ids[0], rank->rank, &config), "creation");
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int k = 0; k < 2; k++) CUDA(cudaMalloc((void **)&memory[k], COUNT * sizeof **memory));
    for (int step = 0; step < STEPS; step++) reduce_in_group(rank, world, stream, memory, step);

    ncclResult_t result = ncclCommSplit(world, 1, rank->rank, &half, &config);
    finish(world, result, "ncclCommSplit");
    finish(half, ncclInProgress, "ncclCommSplit");
    reduce_in_group(rank, half, stream, memory, STEPS);

    finish(half, ncclCommFinalize(half), "ncclCommFinalize");
    NCCL(ncclCommDestroy(half));
    finish(world, ncclCommFinalize(world), "ncclCommFinalize");
    NCCL(ncclCommDestroy(world));
    for (int k = 0; k < 2; k++) CUDA(cudaFree(memory[k]));
    CUDA(cudaStreamDestroy(stream));
}

int main(int argc, char **argv)
{
    return slc_ranks_run(&argc, argv, 3, 120, poll_all);
}
