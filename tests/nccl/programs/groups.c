/* Gradients reduced as llm.c does it: all tensors of a layer in one group, in place, as means, on a stream of their own
 * that waits for the compute stream; then the shards of the parameters gathered, in one group too. */
#include "tests/nccl/programs/shared/ranks.h"
#include "tests/nccl/programs/shared/values.h"

#include <stdlib.h>

enum { LAYERS = 6, TENSORS = 12, STEPS = 5 };

typedef struct {
    slc_rank *rank;
    ncclComm_t communicator;
    cudaStream_t compute, reduce;
    cudaEvent_t computed;
    float *tensors[LAYERS][TENSORS], *host;
    size_t counts[TENSORS]; /* whole multiples of the ranks */
} training;

static uint64_t tensor_seed(int step, int layer, int tensor)
{
    return (uint64_t)((step * LAYERS + layer) * TENSORS + tensor);
}

static void backward(training *t, int step, int layer)
{
    for (int k = 0; k < TENSORS; k++) {
        size_t bytes = t->counts[k] * sizeof(float);
        slc_values_give(t->host, 0, t->counts[k], ncclFloat32, tensor_seed(step, layer, k), t->rank->rank,
                        t->rank->size, ncclAvg);
        CUDA(cudaMemcpyAsync(t->tensors[layer][k], t->host, bytes, cudaMemcpyHostToDevice, t->compute));
        CUDA(cudaStreamSynchronize(t->compute)); /* host memory is used again */
    }
    CUDA(cudaEventRecord(t->computed, t->compute));
    CUDA(cudaStreamWaitEvent(t->reduce, t->computed, 0));
}

static void reduce_layer(training *t, int layer, bool sharded)
{
    NCCL(ncclGroupStart());
    for (int k = 0; k < TENSORS; k++) {
        size_t shard = t->counts[k] / (size_t)t->rank->size;
        float *tensor = t->tensors[layer][k];
        if (sharded)
            NCCL(ncclReduceScatter(tensor, tensor + shard * (size_t)t->rank->rank, shard, ncclFloat32, ncclAvg,
                                   t->communicator, t->reduce));
        else
            NCCL(ncclAllReduce(tensor, tensor, t->counts[k], ncclFloat32, ncclAvg, t->communicator, t->reduce));
    }
    NCCL(ncclGroupEnd());
}

static void gather_shards(training *t)
{
    NCCL(ncclGroupStart());
    for (int layer = 0; layer < LAYERS; layer++)
        for (int k = 0; k < TENSORS; k++) {
            size_t shard = t->counts[k] / (size_t)t->rank->size;
            float *tensor = t->tensors[layer][k];
            NCCL(ncclAllGather(tensor + shard * (size_t)t->rank->rank, tensor, shard, ncclFloat32, t->communicator,
                               t->reduce));
        }
    NCCL(ncclGroupEnd());
}

static void check_step(training *t, int step)
{
    CUDA(cudaStreamSynchronize(t->reduce));
    for (int layer = 0; layer < LAYERS; layer++)
        for (int k = 0; k < TENSORS; k++) {
            size_t count = t->counts[k];
            CUDA(cudaMemcpy(t->host, t->tensors[layer][k], count * sizeof(float), cudaMemcpyDeviceToHost));
            for (size_t i = 0; i < count; i++) {
                float mean = (float)slc_value_reduced(tensor_seed(step, layer, k), t->rank->size, i, ncclAvg);
                CHECK(t->host[i] == mean, "rank %d, step %d, layer %d, tensor %d: element %zu is %g, not %g",
                      t->rank->rank, step, layer, k, i, (double)t->host[i], (double)mean);
            }
            slc_rank_result(t->rank, t->host, count * sizeof(float));
        }
}

static void train(slc_rank *rank)
{
    training t = {.rank = rank};
    NCCL(ncclCommInitRank(&t.communicator, rank->size, rank->ids[0], rank->rank));
    CUDA(cudaStreamCreateWithFlags(&t.compute, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&t.reduce, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&t.computed, 0));
    for (int k = 0; k < TENSORS; k++) t.counts[k] = (size_t)rank->size * (size_t)(k % 2 ? 48 : 1000 + 300 * k);
    t.host = malloc(t.counts[TENSORS - 2] * sizeof(float));
    CHECK(t.host, "no memory");
    for (int layer = 0; layer < LAYERS; layer++)
        for (int k = 0; k < TENSORS; k++) CUDA(cudaMalloc((void **)&t.tensors[layer][k], t.counts[k] * sizeof(float)));
    for (int step = 0; step < STEPS; step++) {
        for (int layer = LAYERS - 1; layer >= 0; layer--) {
            backward(&t, step, layer);
            reduce_layer(&t, layer, step % 2);
        }
        if (step % 2) gather_shards(&t);
        check_step(&t, step);
    }
    for (int layer = 0; layer < LAYERS; layer++)
        for (int k = 0; k < TENSORS; k++) CUDA(cudaFree(t.tensors[layer][k]));
    CUDA(cudaEventDestroy(t.computed));
    CUDA(cudaStreamDestroy(t.compute));
    CUDA(cudaStreamDestroy(t.reduce));
    NCCL(ncclCommDestroy(t.communicator));
    free(t.host);
}

int main(int argc, char **argv)
{
    return slc_ranks_run(&argc, argv, 2, 120, train);
}
