/* Grouped all-reduces of ranks whose settings of the shim differ: the last one's SLUICE_SHIM_FUSE is the argument,
 * which may be no number of bytes. With "no-kernels" that rank's GPU cannot have the shim's kernels. For processes. */
#include "tests/nccl/programs/shared/ranks.h"
#include "tests/nccl/programs/shared/values.h"

#include <stdlib.h>
#include <string.h>

enum { PIECES = 10, PIECE = 200 };
static const char *other;

static void be_different(void)
{
    if (!strcmp(other, "no-kernels"))
        unsetenv("HOSTCUDA_KERNELS");
    else if (getenv("SLUICE_SHIM_FUSE"))
        setenv("SLUICE_SHIM_FUSE", other, 1);
}

static void run(slc_rank *rank)
{
    ncclComm_t communicator;
    cudaStream_t stream;
    float *memory, host[PIECES * PIECE];
    if (rank->rank == rank->size - 1) be_different();
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
    CHECK(argc > 1, "give the last rank's SLUICE_SHIM_FUSE, or no-kernels");
    other = argv[argc - 1];
    return slc_ranks_run(&argc, argv, 2, 120, run);
}
