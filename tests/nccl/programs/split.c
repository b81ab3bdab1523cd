/* Communicators made of communicators: split by colour and key, with ranks that belong to none, split again, and shrunk
 * without one of the ranks; all used in turn. */
#include "tests/nccl/programs/shared/ranks.h"

enum { COUNT = 100 };

/* The sum of 1 << (rank in the world) over the communicator says who its members are. */
static void check_members(slc_rank *rank, ncclComm_t communicator, int position, int size, uint64_t members)
{
    int said;
    NCCL(ncclCommUserRank(communicator, &said));
    CHECK(said == position, "rank %d is rank %d of the new communicator, not %d", rank->rank, said, position);
    NCCL(ncclCommCount(communicator, &said));
    CHECK(said == size, "rank %d: the new communicator has %d ranks, not %d", rank->rank, said, size);
    uint64_t *memory, host[COUNT];
    cudaStream_t stream;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc((void **)&memory, sizeof host));
    for (int i = 0; i < COUNT; i++) host[i] = (uint64_t)1 << rank->rank;
    CUDA(cudaMemcpy(memory, host, sizeof host, cudaMemcpyHostToDevice));
    NCCL(ncclAllReduce(memory, memory, COUNT, ncclUint64, ncclSum, communicator, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemcpy(host, memory, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++)
        CHECK(host[i] == members, "rank %d: element %d says members %llx, not %llx", rank->rank, i,
              (unsigned long long)host[i], (unsigned long long)members);
    slc_rank_result(rank, host, sizeof host);
    CUDA(cudaFree(memory));
    CUDA(cudaStreamDestroy(stream));
}

/* Splits even and odd ranks apart, in reversed order. */
static void split_by_parity(slc_rank *rank, ncclComm_t world)
{
    ncclComm_t half;
    int odd = rank->rank % 2, size = (rank->size + !odd) / 2;
    uint64_t members = 0;
    for (int r = odd; r < rank->size; r += 2) members |= (uint64_t)1 << r;
    NCCL(ncclCommSplit(world, odd, -rank->rank, &half, NULL));
    check_members(rank, half, size - 1 - rank->rank / 2, size, members);

    ncclComm_t same; /* a communicator that was split can be split again, and outlives its parent */
    NCCL(ncclCommSplit(half, 7, 0, &same, NULL));
    NCCL(ncclCommDestroy(half));
    check_members(rank, same, size - 1 - rank->rank / 2, size, members);
    NCCL(ncclCommDestroy(same));
}

/* Splits so that the last rank belongs to no part. */
static void split_without_last(slc_rank *rank, ncclComm_t world)
{
    ncclComm_t most = (ncclComm_t)&most;
    bool last = rank->rank == rank->size - 1;
    NCCL(ncclCommSplit(world, last ? NCCL_SPLIT_NOCOLOR : 3, 0, &most, NULL));
    if (last) {
        CHECK(!most, "a rank without a colour got a communicator");
        return;
    }
    check_members(rank, most, rank->rank, rank->size - 1, ((uint64_t)1 << (rank->size - 1)) - 1);
    NCCL(ncclCommFinalize(most));
    NCCL(ncclCommDestroy(most));
}

/* Rank 0 is left out by the others, as if it had failed. */
static void shrink_without_first(slc_rank *rank, ncclComm_t world)
{
    int without = 0;
    ncclComm_t rest;
    if (rank->rank == without) return;
    NCCL(ncclCommShrink(world, &without, 1, &rest, NULL, NCCL_SHRINK_DEFAULT));
    check_members(rank, rest, rank->rank - 1, rank->size - 1, (((uint64_t)1 << rank->size) - 1) & ~(uint64_t)1);
    NCCL(ncclCommDestroy(rest));
}

static void split_and_use(slc_rank *rank)
{
    ncclComm_t world;
    NCCL(ncclCommInitRank(&world, rank->size, rank->ids[0], rank->rank));
    for (int round = 0; round < 3; round++) {
        split_by_parity(rank, world);
        split_without_last(rank, world);
        check_members(rank, world, rank->rank, rank->size, ((uint64_t)1 << rank->size) - 1);
    }
    shrink_without_first(rank, world);
    NCCL(ncclCommDestroy(world));
}

int main(int argc, char **argv)
{
    return slc_ranks_run(&argc, argv, 4, 120, split_and_use);
}
