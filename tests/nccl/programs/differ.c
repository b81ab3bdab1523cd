/* Grouped all-reduces of ranks whose settings of the shim differ: the last one's SLUICE_SHIM_FUSE is another. For
 * processes. */
#include "tests/nccl/programs/ranks.h"
#include "tests/nccl/programs/values.h"

#include <stdlib.h>

enum { PIECES = 10, PIECE = 200 };

static void run(slc_rank *rank)
{
    ncclComm_t communicator;
    cudaStream_t stream;
    float *memory, host[PIECES * PIECE];
    if (rank->rank == rank->size - 1 && getenv("SLUICE_SHIM_FUSE")) setenv("SLUICE_SHIM_FUSE", "2KiB", 1);
    NCCL(ncclCommInitRank(&communicator, rank->size, rank->ids[0], rank->rank));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc((void **)&memory, sizeof host));
    slc_values_give(host, 0, PIECES * PIECE, ncclFloat32, 5, rank->rank, rank->size, ncclSum);
    CUDA(cudaMemcpy(memory, host, sizeof host, cudaMemcpyHostToDevice));
    NCCL(ncclGroupStart());
    for (int i = 0; i < PIECES; i++)
        NCCL(ncclAllReduce(memory + i * PIECE, memory + i * PIECE, PIECE, ncclFloat32, ncclSum, communicator, stream));
    NCCL(ncclGroupEnd());
    rank->calls += PIECES;
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemcpy(host, memory, sizeof host, cudaMemcpyDeviceToHost));
    slc_rank_result(rank, host, sizeof host);
    CUDA(cudaFree(memory));
    CUDA(cudaStreamDestroy(stream));
    NCCL(ncclCommDestroy(communicator));
}

int main(int argc, char **argv)
{
    return slc_ranks_run(&argc, argv, 2, 120, run);
}
