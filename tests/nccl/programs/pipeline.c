/* A pipeline of stages: each rank passes activations on to the next rank and gradients back, sends and receives
 * alone at its ends and in groups in its middle, where both directions move at a time. */
#include "tests/nccl/programs/shared/ranks.h"

#include <stdlib.h>

enum { COUNT = 3000, MICRO_BATCHES = 8, STEPS = 3 };

typedef struct {
    slc_rank *rank;
    ncclComm_t communicator;
    cudaStream_t stream;
    int32_t *activation, *gradient, *host;
} stage;

/* Adds `more` to what a stage got, on the host: stages compute nothing else. */
static void compute(stage *s, int32_t *memory, int32_t more)
{
    CUDA(cudaStreamSynchronize(s->stream));
    CUDA(cudaMemcpy(s->host, memory, COUNT * sizeof *s->host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++) s->host[i] += more;
    CUDA(cudaMemcpy(memory, s->host, COUNT * sizeof *s->host, cudaMemcpyHostToDevice));
}

static void check_values(stage *s, const int32_t *memory, int32_t first, const char *what)
{
    CUDA(cudaStreamSynchronize(s->stream));
    CUDA(cudaMemcpy(s->host, memory, COUNT * sizeof *s->host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++)
        CHECK(s->host[i] == first + i, "rank %d: %s %d is %d, not %d", s->rank->rank, what, i, s->host[i], first + i);
    slc_rank_result(s->rank, s->host, COUNT * sizeof *s->host);
}

static void begin_at_first(stage *s, int32_t *memory, int32_t first)
{
    for (int i = 0; i < COUNT; i++) s->host[i] = first + i;
    CUDA(cudaMemcpy(memory, s->host, COUNT * sizeof *s->host, cudaMemcpyHostToDevice));
}

/* All micro-batches forward, then all backward, each stage adding its number and one. */
static void all_forward_all_backward(stage *s, int step)
{
    int me = s->rank->rank, last = s->rank->size - 1;
    int32_t sum = (int32_t)((last + 1) * (last + 2) / 2);
    for (int m = 0; m < MICRO_BATCHES; m++) {
        int32_t first = (step * MICRO_BATCHES + m) * 100;
        if (me == 0)
            begin_at_first(s, s->activation, first);
        else
            NCCL(ncclRecv(s->activation, COUNT, ncclInt32, me - 1, s->communicator, s->stream));
        compute(s, s->activation, me + 1);
        if (me < last)
            NCCL(ncclSend(s->activation, COUNT, ncclInt32, me + 1, s->communicator, s->stream));
        else
            check_values(s, s->activation, first + sum, "activation");
        CUDA(cudaStreamSynchronize(s->stream));
    }
    for (int m = 0; m < MICRO_BATCHES; m++) {
        if (me == last)
            begin_at_first(s, s->gradient, -m);
        else
            NCCL(ncclRecv(s->gradient, COUNT, ncclInt32, me + 1, s->communicator, s->stream));
        compute(s, s->gradient, me + 1);
        if (me > 0)
            NCCL(ncclSend(s->gradient, COUNT, ncclInt32, me - 1, s->communicator, s->stream));
        else
            check_values(s, s->gradient, -m + sum, "gradient");
        CUDA(cudaStreamSynchronize(s->stream));
    }
}

/* A ring in both directions at a time: without a group nobody could begin. */
static void exchange_with_neighbours(stage *s, int step)
{
    int me = s->rank->rank, size = s->rank->size, next = (me + 1) % size, previous = (me + size - 1) % size;
    int32_t *got[2];
    for (int k = 0; k < 2; k++) CUDA(cudaMalloc((void **)&got[k], COUNT * sizeof *got[k]));
    begin_at_first(s, s->activation, 1000 * me + step);
    begin_at_first(s, s->gradient, -1000 * me - step);
    NCCL(ncclGroupStart());
    NCCL(ncclSend(s->activation, COUNT, ncclInt32, next, s->communicator, s->stream));
    NCCL(ncclSend(s->gradient, COUNT, ncclInt32, previous, s->communicator, s->stream));
    NCCL(ncclRecv(got[0], COUNT, ncclInt32, previous, s->communicator, s->stream));
    NCCL(ncclRecv(got[1], COUNT, ncclInt32, next, s->communicator, s->stream));
    NCCL(ncclGroupEnd());
    check_values(s, got[0], 1000 * previous + step, "activation of the previous rank");
    check_values(s, got[1], -1000 * next - step, "gradient of the next rank");
    for (int k = 0; k < 2; k++) CUDA(cudaFree(got[k]));
}

static void run_stage(slc_rank *rank)
{
    stage s = {.rank = rank, .host = malloc(COUNT * sizeof *s.host)};
    CHECK(s.host, "no memory");
    NCCL(ncclCommInitRank(&s.communicator, rank->size, rank->ids[0], rank->rank));
    CUDA(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc((void **)&s.activation, COUNT * sizeof *s.activation));
    CUDA(cudaMalloc((void **)&s.gradient, COUNT * sizeof *s.gradient));
    for (int step = 0; step < STEPS; step++) {
        all_forward_all_backward(&s, step);
        exchange_with_neighbours(&s, step);
    }
    CUDA(cudaFree(s.activation));
    CUDA(cudaFree(s.gradient));
    CUDA(cudaStreamDestroy(s.stream));
    NCCL(ncclCommDestroy(s.communicator));
    free(s.host);
}

int main(int argc, char **argv)
{
    return slc_ranks_run(&argc, argv, 3, 120, run_stage);
}
