/* Trains as PyTorch's FSDP does: each rank keeps a part of each layer's values. They are gathered for the forward, and
 * again for the backward but for the last layer, which still has them; the next layer's are gathered while a layer
 * computes. Each layer's gradient is reduced and scattered when its backward is done. Gathers, reductions and compute
 * have a stream each. Two layers' whole values are in memory at a time. Gradients never change: each layer has its own,
 * so that its compute is a nap and nothing else. */
#include "tests/nccl/programs/shared/layers.h"

#include <stdlib.h>

enum { BUFFERS = 2 };

static slc_layers shape;

typedef struct {
    slc_rank *rank;
    slc_naps naps;
    ncclComm_t communicator;
    cudaStream_t compute, gathers, reductions;
    cudaEvent_t event, gathered[LAYERS_MAX];
    float *shards[LAYERS_MAX], *gradients[LAYERS_MAX], *values[BUFFERS];
} trainer;

static size_t shard_elements(const trainer *t, int layer)
{
    return shape.elements[layer] / (size_t)t->rank->size;
}

static void create_events(cudaEvent_t *events, int count)
{
    for (int i = 0; i < count; i++) CUDA(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming));
}

static void trainer_init(trainer *t, slc_rank *rank)
{
    size_t most = 0;
    *t = (trainer){.rank = rank};
    slc_naps_init(&t->naps, &shape);
    NCCL(ncclCommInitRank(&t->communicator, rank->size, rank->ids[0], rank->rank));
    CUDA(cudaStreamCreateWithFlags(&t->compute, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&t->gathers, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&t->reductions, cudaStreamNonBlocking));
    create_events(&t->event, 1);
    create_events(t->gathered, shape.layers);
    for (int l = 0; l < shape.layers; l++) {
        if (shape.elements[l] > most) most = shape.elements[l];
        CUDA(cudaMalloc((void **)&t->shards[l], shard_elements(t, l) * sizeof(float)));
        CUDA(cudaMalloc((void **)&t->gradients[l], shape.elements[l] * sizeof(float)));
        slc_layers_fill(t->shards[l], shard_elements(t, l), 0);
        slc_layers_fill(t->gradients[l], shape.elements[l], (float)(rank->rank + l));
    }
    for (int i = 0; i < BUFFERS; i++) CUDA(cudaMalloc((void **)&t->values[i], most * sizeof(float)));
}

static void destroy_events(cudaEvent_t *events, int count)
{
    for (int i = 0; i < count; i++) CUDA(cudaEventDestroy(events[i]));
}

static void trainer_fini(trainer *t)
{
    slc_naps_fini(&t->naps);
    for (int l = 0; l < shape.layers; l++) {
        CUDA(cudaFree(t->shards[l]));
        CUDA(cudaFree(t->gradients[l]));
    }
    for (int i = 0; i < BUFFERS; i++) CUDA(cudaFree(t->values[i]));
    destroy_events(&t->event, 1);
    destroy_events(t->gathered, shape.layers);
    CUDA(cudaStreamDestroy(t->compute));
    CUDA(cudaStreamDestroy(t->gathers));
    CUDA(cudaStreamDestroy(t->reductions));
    NCCL(ncclCommDestroy(t->communicator));
}

/* The layer that had the buffer before has been computed by now, or is in the compute stream. */
static void gather(trainer *t, int layer)
{
    slc_layers_follow(t->gathers, t->compute, t->event);
    NCCL(ncclAllGather(t->shards[layer], t->values[layer % BUFFERS], shard_elements(t, layer), ncclFloat32,
                       t->communicator, t->gathers));
    CUDA(cudaEventRecord(t->gathered[layer], t->gathers));
    t->rank->calls++;
}

static void forward(trainer *t)
{
    gather(t, 0);
    for (int l = 0; l < shape.layers; l++) {
        if (shape.prefetch && l + 1 < shape.layers) gather(t, l + 1);
        if (!shape.prefetch && l) gather(t, l);
        CUDA(cudaStreamWaitEvent(t->compute, t->gathered[l], 0));
        slc_layers_nap(t->compute, &t->naps.forward[l]);
    }
}

static void backward_layer(trainer *t, int layer)
{
    slc_layers_nap(t->compute, &t->naps.backward[layer]);
    slc_layers_follow(t->reductions, t->compute, t->event);
    NCCL(ncclReduceScatter(t->gradients[layer], t->shards[layer], shard_elements(t, layer), ncclFloat32, ncclAvg,
                           t->communicator, t->reductions));
    t->rank->calls++;
}

static void backward(trainer *t)
{
    for (int l = shape.layers; l-- > 0;) {
        bool kept = l + 1 == shape.layers;
        if (shape.prefetch && l) gather(t, l - 1);
        if (!shape.prefetch && !kept) gather(t, l);
        if (!kept) CUDA(cudaStreamWaitEvent(t->compute, t->gathered[l], 0));
        backward_layer(t, l);
    }
    slc_layers_follow(t->compute, t->reductions, t->event);
}

/* Each part is now the average of the ranks' gradients, and so is each gathered value. */
static void check_values(trainer *t)
{
    for (int l = 0; l < shape.layers; l++) {
        float value = (float)(t->rank->size - 1) / 2 + (float)l;
        gather(t, l);
        CUDA(cudaStreamSynchronize(t->gathers));
        slc_layers_check(t->rank, t->shards[l], shard_elements(t, l), value, l);
        slc_layers_check(t->rank, t->values[l % BUFFERS], shape.elements[l], value, l);
    }
}

static void train_step(void *context)
{
    trainer *t = context;
    forward(t);
    backward(t);
    slc_layers_nap(t->compute, &t->naps.optimizer);
}

static void train(slc_rank *rank)
{
    trainer t;
    for (int l = 0; l < shape.layers; l++)
        CHECK(shape.elements[l] % (size_t)rank->size == 0, "-n %d: layer %d cannot be cut into equal parts", rank->size,
              l);
    trainer_init(&t, rank);
    double *step_s = slc_layers_train(&shape, t.compute, train_step, &t);
    check_values(&t);
    slc_layers_report(rank, &shape, &t.naps, step_s);
    trainer_fini(&t);
    free(step_s);
}

int main(int argc, char **argv)
{
    slc_layers_read(&shape, argc, argv);
    return slc_ranks_run(&argc, argv, 2, 120, train);
}
