/* Groups of what is not alike. Not on all ranks: rank 0 alone has memory from ncclMemAlloc, and a buffer that it
 * registers. Not in its operator: sums between maxima, and an operator that is destroyed before the group that uses it
 * ends, as PyTorch does. */
#include "tests/nccl/programs/shared/ranks.h"

enum { BUFFERS = 4, COUNT = 300, BYTES = COUNT * sizeof(float), ROUNDS = 3 };

typedef struct {
    slc_rank *rank;
    ncclComm_t communicator;
    cudaStream_t stream;
    float *memory[BUFFERS];
} unalike;

static float value(int rank, int buffer, int element)
{
    return (float)((rank + 1) * (element % 50) + buffer);
}

static void fill(unalike *u)
{
    float host[COUNT];
    for (int b = 0; b < BUFFERS; b++) {
        for (int i = 0; i < COUNT; i++) host[i] = value(u->rank->rank, b, i);
        CUDA(cudaMemcpy(u->memory[b], host, BYTES, cudaMemcpyHostToDevice));
    }
}

static void check(unalike *u, float last_factor)
{
    float host[COUNT];
    CUDA(cudaStreamSynchronize(u->stream));
    for (int b = 0; b < BUFFERS; b++) {
        const float factor = b == BUFFERS - 1 ? last_factor : 1.0f;
        CUDA(cudaMemcpy(host, u->memory[b], BYTES, cudaMemcpyDeviceToHost));
        slc_rank_result(u->rank, host, BYTES);
        for (int i = 0; i < COUNT; i++) {
            float sum = 0;
            for (int r = 0; r < u->rank->size; r++) sum += factor * value(r, b, i);
            CHECK(host[i] == sum, "rank %d, buffer %d: element %d is %g", u->rank->rank, b, i, (double)host[i]);
        }
    }
}

static void reduce(unalike *u, int buffer, ncclRedOp_t op)
{
    float *at = u->memory[buffer];
    NCCL(ncclAllReduce(at, at, COUNT, ncclFloat32, op, u->communicator, u->stream));
    u->rank->calls++;
}

/* Reduces one group, in which an operator halves the last buffer on its way. */
static void reduce_with_operator(unalike *u)
{
    ncclRedOp_t op;
    float half = 0.5f;
    fill(u);
    NCCL(ncclGroupStart());
    for (int b = 0; b < BUFFERS - 1; b++) reduce(u, b, ncclSum);
    NCCL(ncclRedOpCreatePreMulSum(&op, &half, ncclFloat32, ncclScalarHostImmediate, u->communicator));
    reduce(u, BUFFERS - 1, op);
    NCCL(ncclRedOpDestroy(op, u->communicator));
    NCCL(ncclGroupEnd());
    check(u, half);
}

/* Reduces sums and maxima by turns, in one group. */
static void reduce_sums_and_maxima(unalike *u)
{
    float host[COUNT];
    fill(u);
    NCCL(ncclGroupStart());
    for (int b = 0; b < BUFFERS; b++) reduce(u, b, b % 2 ? ncclMax : ncclSum);
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(u->stream));
    for (int b = 0; b < BUFFERS; b++) {
        CUDA(cudaMemcpy(host, u->memory[b], BYTES, cudaMemcpyDeviceToHost));
        slc_rank_result(u->rank, host, BYTES);
        for (int i = 0; i < COUNT; i++) {
            float sum = 0;
            for (int r = 0; r < u->rank->size; r++) sum += value(r, b, i);
            const float expected = b % 2 ? value(u->rank->size - 1, b, i) : sum; /* the last rank has the largest */
            CHECK(host[i] == expected, "rank %d, buffer %d: element %d is %g, not %g", u->rank->rank, b, i,
                  (double)host[i], (double)expected);
        }
    }
}

static void run(slc_rank *rank)
{
    unalike u = {.rank = rank};
    void *handle = NULL;
    const bool own = rank->rank == 0;
    NCCL(ncclCommInitRank(&u.communicator, rank->size, rank->ids[0], rank->rank));
    CUDA(cudaStreamCreateWithFlags(&u.stream, cudaStreamNonBlocking));
    for (int b = 0; b < BUFFERS; b++) {
        if (own && b == 0)
            NCCL(ncclMemAlloc((void **)&u.memory[b], BYTES));
        else
            CUDA(cudaMalloc((void **)&u.memory[b], BYTES));
    }
    if (own) NCCL(ncclCommRegister(u.communicator, u.memory[1], BYTES, &handle));
    for (int round = 0; round < ROUNDS; round++) {
        fill(&u);
        NCCL(ncclGroupStart());
        for (int b = 0; b < BUFFERS; b++) reduce(&u, b, ncclSum);
        NCCL(ncclGroupEnd());
        check(&u, 1);
        reduce_with_operator(&u);
        reduce_sums_and_maxima(&u);
    }
    if (own) NCCL(ncclCommDeregister(u.communicator, handle));
    NCCL(ncclCommDestroy(u.communicator));
    for (int b = 0; b < BUFFERS; b++) {
        if (own && b == 0)
            NCCL(ncclMemFree(u.memory[b]));
        else
            CUDA(cudaFree(u.memory[b]));
    }
    CUDA(cudaStreamDestroy(u.stream));
}

int main(int argc, char **argv)
{
    return slc_ranks_run(&argc, argv, 2, 120, run);
}
