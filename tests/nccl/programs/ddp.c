/* Trains as PyTorch's DDP does: each layer's gradient is averaged over the ranks as soon as its backward is done, on a
 * stream of its own, while the backward of the layers before it goes on. */
#include "tests/nccl/programs/shared/layers.h"

#include <stdlib.h>

static slc_layers shape;

typedef struct {
    slc_rank *rank;
    slc_naps naps;
    ncclComm_t communicator;
    cudaStream_t compute, reductions;
    cudaEvent_t ready, reduced;
    float *gradients[LAYERS_MAX];
} trainer;

static void trainer_init(trainer *t, slc_rank *rank)
{
    *t = (trainer){.rank = rank};
    slc_naps_init(&t->naps, &shape);
    NCCL(ncclCommInitRank(&t->communicator, rank->size, rank->ids[0], rank->rank));
    CUDA(cudaStreamCreateWithFlags(&t->compute, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&t->reductions, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&t->ready, cudaEventDisableTiming));
    CUDA(cudaEventCreateWithFlags(&t->reduced, cudaEventDisableTiming));
    for (int l = 0; l < shape.layers; l++) {
        CUDA(cudaMalloc((void **)&t->gradients[l], shape.elements[l] * sizeof(float)));
        slc_layers_fill(t->gradients[l], shape.elements[l], (float)(rank->rank + l));
    }
}

static void trainer_fini(trainer *t)
{
    slc_naps_fini(&t->naps);
    for (int l = 0; l < shape.layers; l++) CUDA(cudaFree(t->gradients[l]));
    CUDA(cudaEventDestroy(t->ready));
    CUDA(cudaEventDestroy(t->reduced));
    CUDA(cudaStreamDestroy(t->compute));
    CUDA(cudaStreamDestroy(t->reductions));
    NCCL(ncclCommDestroy(t->communicator));
}

static void train_step(void *context)
{
    trainer *t = context;
    for (int l = 0; l < shape.layers; l++) slc_layers_nap(t->compute, &t->naps.forward[l]);
    for (int l = shape.layers; l-- > 0;) {
        slc_layers_nap(t->compute, &t->naps.backward[l]);
        slc_layers_follow(t->reductions, t->compute, t->ready);
        NCCL(ncclAllReduce(t->gradients[l], t->gradients[l], shape.elements[l], ncclFloat32, ncclAvg, t->communicator,
                           t->reductions));
        t->rank->calls++;
    }
    slc_layers_follow(t->compute, t->reductions, t->reduced);
    slc_layers_nap(t->compute, &t->naps.optimizer);
}

/* An average of averages changes nothing, so the gradients keep what the first step made of them. */
static void train(slc_rank *rank)
{
    trainer t;
    trainer_init(&t, rank);
    double *step_s = slc_layers_train(&shape, t.compute, train_step, &t);
    for (int l = 0; l < shape.layers; l++)
        slc_layers_check(rank, t.gradients[l], shape.elements[l], (float)(rank->size - 1) / 2 + (float)l, l);
    slc_layers_report(rank, &shape, &t.naps, step_s);
    trainer_fini(&t);
    free(step_s);
}

int main(int argc, char **argv)
{
    slc_layers_read(&shape, argc, argv);
    return slc_ranks_run(&argc, argv, 2, 120, train);
}
