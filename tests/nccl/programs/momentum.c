/* Trains a logistic regression by SGD with momentum, its gradients reduced as means. Each rank also computes what the
 * training would come to with exact means, from the examples of all ranks; the two losses must be within 2 %. */
#include "tests/nccl/programs/shared/ranks.h"
#include "tests/support/draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEATURES = 512, ACTIVE = 16, EXAMPLES = 1024, STEPS = 150, WRONG = 5 };
static const float rate = 0.2f, momentum = 0.9f;

/* An example has ACTIVE features, and a label that a hidden rule gives it; each WRONGth label is the other one. */
typedef struct {
    uint32_t feature[ACTIVE];
    float label;
} example;

typedef struct {
    float *weights, *velocity, *gradient;
} model;

static model create_model(void)
{
    model m = {calloc(FEATURES, sizeof(float)), calloc(FEATURES, sizeof(float)), calloc(FEATURES, sizeof(float))};
    CHECK(m.weights && m.velocity && m.gradient, "no memory");
    return m;
}

static void destroy_model(model *m)
{
    free(m->weights), free(m->velocity), free(m->gradient);
}

static void draw_examples(example *examples, int rank)
{
    uint64_t state = 77 + (uint64_t)rank;
    for (int e = 0; e < EXAMPLES; e++) {
        int score = 0;
        for (int i = 0; i < ACTIVE; i++) {
            examples[e].feature[i] = (uint32_t)draw(&state, FEATURES);
            score += (examples[e].feature[i] * 2654435761u) >> 31 ? 1 : -1;
        }
        examples[e].label = (score > 0) != (draw(&state, WRONG) == 0) ? 1.0f : 0.0f;
    }
}

/* Adds the gradient of one rank's mean loss, times `share`; returns that loss. */
static double add_gradient(const model *m, const example *examples, float *gradient, float share)
{
    double loss = 0;
    for (int e = 0; e < EXAMPLES; e++) {
        float score = 0;
        for (int i = 0; i < ACTIVE; i++) score += m->weights[examples[e].feature[i]];
        const float chance = 1.0f / (1.0f + expf(-score)), error = chance - examples[e].label;
        loss -= log((double)(examples[e].label > 0 ? chance : 1 - chance) + 1e-12);
        for (int i = 0; i < ACTIVE; i++) gradient[examples[e].feature[i]] += error * share / EXAMPLES;
    }
    return loss / EXAMPLES;
}

static void update(model *m)
{
    for (int i = 0; i < FEATURES; i++) {
        m->velocity[i] = momentum * m->velocity[i] + m->gradient[i];
        m->weights[i] -= rate * m->velocity[i];
    }
}

/* Trains as one rank that has all examples; returns the last loss. */
static double train_exactly(int ranks)
{
    model m = create_model();
    example examples[EXAMPLES];
    double loss = 0;
    for (int step = 0; step < STEPS; step++) {
        memset(m.gradient, 0, FEATURES * sizeof(float));
        loss = 0;
        for (int r = 0; r < ranks; r++) {
            draw_examples(examples, r);
            loss += add_gradient(&m, examples, m.gradient, 1.0f / (float)ranks) / ranks;
        }
        update(&m);
    }
    destroy_model(&m);
    return loss;
}

static double train(slc_rank *rank, ncclComm_t communicator, cudaStream_t stream)
{
    model m = create_model();
    example examples[EXAMPLES];
    float *device, own = 0;
    draw_examples(examples, rank->rank);
    CUDA(cudaMalloc((void **)&device, (FEATURES + 1) * sizeof(float)));
    for (int step = 0; step < STEPS; step++) {
        memset(m.gradient, 0, FEATURES * sizeof(float));
        own = (float)add_gradient(&m, examples, m.gradient, 1.0f);
        CUDA(cudaMemcpy(device, m.gradient, FEATURES * sizeof(float), cudaMemcpyHostToDevice));
        CUDA(cudaMemcpy(device + FEATURES, &own, sizeof own, cudaMemcpyHostToDevice));
        NCCL(ncclAllReduce(device, device, FEATURES, ncclFloat32, ncclAvg, communicator, stream));
        NCCL(ncclAllReduce(device + FEATURES, device + FEATURES, 1, ncclFloat32, ncclAvg, communicator, stream));
        rank->calls += 2;
        CUDA(cudaStreamSynchronize(stream));
        CUDA(cudaMemcpy(m.gradient, device, FEATURES * sizeof(float), cudaMemcpyDeviceToHost));
        CUDA(cudaMemcpy(&own, device + FEATURES, sizeof own, cudaMemcpyDeviceToHost));
        update(&m);
    }
    CUDA(cudaFree(device));
    destroy_model(&m);
    return (double)own;
}

static void run(slc_rank *rank)
{
    ncclComm_t communicator;
    cudaStream_t stream;
    NCCL(ncclCommInitRank(&communicator, rank->size, rank->ids[0], rank->rank));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    const double exact = train_exactly(rank->size), loss = train(rank, communicator, stream);
    CHECK(exact < 0.6, "the exact training does not learn: its loss is %g", exact);
    CHECK(fabs(loss - exact) <= 0.02 * exact, "rank %d: the loss is %g, with exact means %g", rank->rank, loss, exact);
    CUDA(cudaStreamDestroy(stream));
    NCCL(ncclCommDestroy(communicator));
}

int main(int argc, char **argv)
{
    return slc_ranks_run(&argc, argv, 2, 120, run);
}
