/* Every operation of NCCL on every data type and operator, out of place and in place, one after another. */
#include "tests/nccl/programs/shared/ranks.h"
#include "tests/nccl/programs/shared/values.h"

#include <stdlib.h>

enum { COUNT = 777, BYTES = COUNT * 8 * 4 };

typedef struct {
    slc_rank *rank;
    ncclComm_t communicator;
    cudaStream_t stream;
    char *send, *receive, *expected; /* BYTES each */
    uint64_t seed;                   /* the operation's number */
} place;

static const ncclDataType_t dtypes[] = {ncclInt8,    ncclUint8,    ncclInt32,      ncclUint32,
                                        ncclInt64,   ncclUint64,   ncclFloat16,    ncclFloat32,
                                        ncclFloat64, ncclBfloat16, ncclFloat8e4m3, ncclFloat8e5m2};
static const ncclRedOp_t redops[] = {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg};

/* Compares a result with what it must be, and takes it into the rank's hash. */
static void check_result(place *p, const void *result, size_t count, ncclDataType_t dtype, const char *what)
{
    CUDA(cudaStreamSynchronize(p->stream));
    char *host = malloc(BYTES);
    CHECK(host, "no memory");
    CUDA(cudaMemcpy(host, result, count * slc_dtype_bytes(dtype), cudaMemcpyDeviceToHost));
    size_t at = slc_values_differ(host, p->expected, count, dtype);
    CHECK(at == count, "rank %d: %s of data type %d: element %zu of %zu is wrong", p->rank->rank, what, (int)dtype, at,
          count);
    slc_rank_result(p->rank, host, count * slc_dtype_bytes(dtype));
    free(host);
    p->seed++;
}

/* Puts rank `rank`'s values of operation p->seed at `memory`. */
static void give(place *p, void *memory, size_t count, ncclDataType_t dtype, ncclRedOp_t redop)
{
    char *host = malloc(BYTES);
    CHECK(host, "no memory");
    slc_values_give(host, 0, count, dtype, p->seed, p->rank->rank, p->rank->size, redop);
    CUDA(cudaMemcpy(memory, host, count * slc_dtype_bytes(dtype), cudaMemcpyHostToDevice));
    CUDA(cudaStreamSynchronize(NULL)); /* a copy from memory that is not pinned may return before it has arrived */
    free(host);
}

static void expect_reduced(place *p, size_t first, size_t count, ncclDataType_t dtype, ncclRedOp_t redop)
{
    for (size_t i = 0; i < count; i++)
        slc_value_write(p->expected, i, dtype, slc_value_reduced(p->seed, p->rank->size, first + i, redop));
}

static void reduce_everywhere(place *p, ncclDataType_t dtype, ncclRedOp_t redop)
{
    size_t bytes = slc_dtype_bytes(dtype), size = (size_t)p->rank->size, mine = COUNT * (size_t)p->rank->rank;
    for (int in_place = 0; in_place < 2; in_place++) {
        char *receive = in_place ? p->send : p->receive;
        give(p, p->send, COUNT, dtype, redop);
        expect_reduced(p, 0, COUNT, dtype, redop);
        NCCL(ncclAllReduce(p->send, receive, COUNT, dtype, redop, p->communicator, p->stream));
        check_result(p, receive, COUNT, dtype, "all-reduce");

        give(p, p->send, COUNT * size, dtype, redop);
        expect_reduced(p, mine, COUNT, dtype, redop);
        receive = in_place ? p->send + mine * bytes : p->receive;
        NCCL(ncclReduceScatter(p->send, receive, COUNT, dtype, redop, p->communicator, p->stream));
        check_result(p, receive, COUNT, dtype, "reduce-scatter");

        int root = (int)(p->seed % size);
        give(p, p->send, COUNT, dtype, redop);
        expect_reduced(p, 0, COUNT, dtype, redop);
        receive = in_place ? p->send : p->receive;
        NCCL(ncclReduce(p->send, receive, COUNT, dtype, redop, root, p->communicator, p->stream));
        CUDA(cudaStreamSynchronize(p->stream));
        if (p->rank->rank == root)
            check_result(p, receive, COUNT, dtype, "reduce");
        else
            p->seed++;
    }
}

/* Sums numbers that an operator of the program multiplies by 2 first; the 2 lies in host memory or in the device's. */
static void reduce_multiplied(place *p, ncclDataType_t dtype)
{
    for (int on_device = 0; on_device < 2; on_device++) {
        uint64_t factor;
        slc_value_write(&factor, 0, dtype, 2);
        void *scalar = &factor;
        if (on_device) {
            CUDA(cudaMalloc(&scalar, sizeof factor));
            CUDA(cudaMemcpy(scalar, &factor, sizeof factor, cudaMemcpyHostToDevice));
        }
        ncclRedOp_t twice;
        NCCL(ncclRedOpCreatePreMulSum(&twice, scalar, dtype, on_device ? ncclScalarDevice : ncclScalarHostImmediate,
                                      p->communicator));
        reduce_everywhere(p, dtype, twice);
        NCCL(ncclRedOpDestroy(twice, p->communicator));
        if (on_device) CUDA(cudaFree(scalar));
    }
}

static void expect_rank(place *p, int from, size_t first, size_t at, size_t count, ncclDataType_t dtype)
{
    size_t bytes = slc_dtype_bytes(dtype);
    slc_values_give(p->expected + at * bytes, first, count, dtype, p->seed, from, p->rank->size, ncclMax);
}

static void spread(place *p, ncclDataType_t dtype)
{
    size_t bytes = slc_dtype_bytes(dtype), size = (size_t)p->rank->size, mine = COUNT * (size_t)p->rank->rank;
    for (int in_place = 0; in_place < 2; in_place++) {
        char *send = in_place ? p->receive + mine * bytes : p->send;
        give(p, send, COUNT, dtype, ncclMax);
        for (size_t r = 0; r < size; r++) expect_rank(p, (int)r, 0, COUNT * r, COUNT, dtype);
        NCCL(ncclAllGather(send, p->receive, COUNT, dtype, p->communicator, p->stream));
        check_result(p, p->receive, COUNT * size, dtype, "all-gather");

        int root = (int)(p->seed % size);
        send = in_place ? p->receive : p->send;
        give(p, send, COUNT, dtype, ncclMax);
        expect_rank(p, root, 0, 0, COUNT, dtype);
        if (in_place && root)
            NCCL(ncclBcast(send, COUNT, dtype, root, p->communicator, p->stream));
        else
            NCCL(ncclBroadcast(send, p->receive, COUNT, dtype, root, p->communicator, p->stream));
        check_result(p, p->receive, COUNT, dtype, "broadcast");
    }
}

static void exchange(place *p, ncclDataType_t dtype)
{
    size_t size = (size_t)p->rank->size, mine = COUNT * (size_t)p->rank->rank;
    give(p, p->send, COUNT * size, dtype, ncclMax);
    for (size_t r = 0; r < size; r++) expect_rank(p, (int)r, mine, COUNT * r, COUNT, dtype);
    NCCL(ncclAlltoAll(p->send, p->receive, COUNT, dtype, p->communicator, p->stream));
    check_result(p, p->receive, COUNT * size, dtype, "all-to-all");

    int root = (int)(p->seed % size);
    give(p, p->send, COUNT, dtype, ncclMax);
    for (size_t r = 0; r < size; r++) expect_rank(p, (int)r, 0, COUNT * r, COUNT, dtype);
    NCCL(ncclGather(p->send, p->receive, COUNT, dtype, root, p->communicator, p->stream));
    CUDA(cudaStreamSynchronize(p->stream));
    if (p->rank->rank == root)
        check_result(p, p->receive, COUNT * size, dtype, "gather");
    else
        p->seed++;

    root = (int)(p->seed % size);
    give(p, p->send, COUNT * size, dtype, ncclMax);
    expect_rank(p, root, mine, 0, COUNT, dtype);
    NCCL(ncclScatter(p->send, p->receive, COUNT, dtype, root, p->communicator, p->stream));
    check_result(p, p->receive, COUNT, dtype, "scatter");
}

static void all_operations(slc_rank *rank)
{
    place p = {.rank = rank, .seed = 1, .expected = malloc(BYTES)};
    CHECK(p.expected && rank->size <= 4, "the program is for at most 4 ranks");
    NCCL(ncclCommInitRank(&p.communicator, rank->size, rank->ids[0], rank->rank));
    int size, number;
    NCCL(ncclCommCount(p.communicator, &size));
    NCCL(ncclCommUserRank(p.communicator, &number));
    CHECK(size == rank->size && number == rank->rank, "NCCL says rank %d of %d", number, size);
    CUDA(cudaStreamCreateWithFlags(&p.stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc((void **)&p.send, BYTES));
    CUDA(cudaMalloc((void **)&p.receive, BYTES));
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++) {
        for (size_t o = 0; o < sizeof redops / sizeof *redops; o++) reduce_everywhere(&p, dtypes[t], redops[o]);
        reduce_multiplied(&p, dtypes[t]);
        spread(&p, dtypes[t]);
        exchange(&p, dtypes[t]);
    }
    CUDA(cudaFree(p.send));
    CUDA(cudaFree(p.receive));
    CUDA(cudaStreamDestroy(p.stream));
    NCCL(ncclCommDestroy(p.communicator));
    free(p.expected);
}

int main(int argc, char **argv)
{
    return slc_ranks_run(&argc, argv, 2, 120, all_operations);
}
