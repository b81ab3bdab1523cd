/* Memory that NCCL knows: its own allocations, registered buffers and windows; and communicators made of several names
 * and with a configuration. */
#include "tests/nccl/programs/shared/ranks.h"

enum { COUNT = 16384, BYTES = COUNT * sizeof(float) };

static void reduce_and_check(slc_rank *rank, ncclComm_t communicator, float *memory, float factor)
{
    static _Thread_local float host[COUNT];
    for (int i = 0; i < COUNT; i++) host[i] = factor * (float)((rank->rank + 1) * (i % 1000));
    CUDA(cudaMemcpy(memory, host, sizeof host, cudaMemcpyHostToDevice));
    NCCL(ncclGroupStart());
    for (float *half = memory; half < memory + COUNT; half += COUNT / 2)
        NCCL(ncclAllReduce(half, half, COUNT / 2, ncclFloat32, ncclSum, communicator, NULL));
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(NULL));
    CUDA(cudaMemcpy(host, memory, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++)
        CHECK(host[i] == factor * (float)(rank->size * (rank->size + 1) / 2 * (i % 1000)), "rank %d: element %d is %g",
              rank->rank, i, (double)host[i]);
    slc_rank_result(rank, host, sizeof host);
}

static void use_known_memory(slc_rank *rank)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t communicator;
    ncclWindow_t window;
    void *allocated, *registered, *handle;
    config.commName = "memory";
    config.minCTAs = 1;
    NCCL(ncclCommInitRankConfig(&communicator, rank->size, rank->ids[0], rank->rank, &config));
    NCCL(ncclMemAlloc(&allocated, BYTES));
    reduce_and_check(rank, communicator, allocated, 1);
    NCCL(ncclCommWindowRegister(communicator, allocated, BYTES, &window, NCCL_WIN_COLL_SYMMETRIC));
    reduce_and_check(rank, communicator, allocated, 2);
    NCCL(ncclCommWindowDeregister(communicator, window));

    CUDA(cudaMalloc(&registered, BYTES));
    NCCL(ncclCommRegister(communicator, registered, BYTES, &handle));
    reduce_and_check(rank, communicator, registered, 3);
    NCCL(ncclCommDeregister(communicator, handle));
    NCCL(ncclCommFinalize(communicator));
    NCCL(ncclCommDestroy(communicator));

    ncclConfig_t again = NCCL_CONFIG_INITIALIZER;
    NCCL(ncclCommInitRankScalable(&communicator, rank->size, rank->rank, 2, &rank->ids[1], &again));
    reduce_and_check(rank, communicator, registered, 4);
    NCCL(ncclCommDestroy(communicator));
    NCCL(ncclMemFree(allocated));
    CUDA(cudaFree(registered));
}

int main(int argc, char **argv)
{
    return slc_ranks_run(&argc, argv, 2, 120, use_known_memory);
}
