/* Trains as PyTorch's DDP does: each layer's gradient is averaged over the ranks as soon as its backward is done, on a
 * stream of its own, while the backward of the layers before it goes on. The host runs ahead of the device by at most
 * two steps. */
#include "tests/nccl/programs/layers.h"

#include <stdlib.h>

enum { AHEAD = 2 };

static slc_layers shape;

typedef struct {
    slc_rank *rank;
    slc_naps naps;
    ncclComm_t communicator;
    cudaStream_t compute, reductions;
    cudaEvent_t ready, reduced, step_end[AHEAD];
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
    for (int i = 0; i < AHEAD; i++) CUDA(cudaEventCreateWithFlags(&t->step_end[i], cudaEventDisableTiming));
    for (int l = 0; l < shape.layers; l++) {
        CUDA(cudaMalloc((void **)&t->gradients[l], shape.elements[l] * sizeof(float)));
        slc_layers_fill(t->gradients[l], shape.elements[l], (float)(rank->rank + l));
    }
}

static void trainer_fini(trainer *t)
{
    slc_naps_fini(&t->naps);
    for (int l = 0; l < shape.layers; l++) CUDA(cudaFree(t->gradients[l]));
    for (int i = 0; i < AHEAD; i++) CUDA(cudaEventDestroy(t->step_end[i]));
    CUDA(cudaEventDestroy(t->ready));
    CUDA(cudaEventDestroy(t->reduced));
    CUDA(cudaStreamDestroy(t->compute));
    CUDA(cudaStreamDestroy(t->reductions));
    NCCL(ncclCommDestroy(t->communicator));
}

static void train_step(trainer *t)
{
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
    double *step_s = calloc((size_t)shape.steps + 1, sizeof *step_s), before_s;
    CHECK(step_s, "no memory");
    trainer_init(&t, rank);
    before_s = slc_layers_now_s();
    for (int s = 0; s < shape.steps; s++) {
        train_step(&t);
        CUDA(cudaEventRecord(t.step_end[s % AHEAD], t.compute));
        if (s + 1 < AHEAD) continue;
        CUDA(cudaEventSynchronize(t.step_end[(s + 1) % AHEAD]));
        step_s[s + 1 - AHEAD] = slc_layers_now_s() - before_s;
        before_s += step_s[s + 1 - AHEAD];
        slc_ranks_alive();
    }
    CUDA(cudaStreamSynchronize(t.compute));
    for (int l = 0; l < shape.layers; l++)
        slc_layers_check(rank, t.gradients[l], shape.elements[l], (float)(rank->size - 1) / 2 + (float)l, l);
    slc_layers_report(rank, &shape, &t.naps, step_s + 1, shape.steps - AHEAD);
    trainer_fini(&t);
    free(step_s);
}

int main(int argc, char **argv)
{
    slc_layers_read(&shape, argc, argv);
    return slc_ranks_run(&argc, argv, 2, 120, train);
}
