/* The operations of a layer are submitted together and waited for, so that nothing runs beside compute.
 * tests/command/measure/overhead_test.sh covers this file. */
#include "bench/lab/overhead/bare.h"

#include "lib/base/hash/fnv.h"
#include "lib/base/ownership.h"
#include "lib/base/status.h"
#include "lib/kernels/norm/norm.h"

#include <stdlib.h>
#include <string.h>

enum { STATES = 2, NON_FINITE_WORD = SLC_NORM_BINS };

typedef struct {
    slc_bare *bare;
    float *value, *gradient, *state[STATES];
} bare_layer;

struct slc_bare {
    slc_comm *comm;
    slc_overhead_model *model;
    slc_overhead_optimizer *optimizer;
    const slc_unit *unit; /* each layer is one, and all are alike */
    slc_segment segment;
    uint32_t ranks, next_operation;
    bare_layer *layers;
    int64_t *agreement, non_finite; /* non_finite: parts of gradients in this step that are not finite */
    uint64_t agreement_words, step;
    double learning_rate;
};

/* The part of a block that this rank owns. */
static slc_part part_of(const slc_bare *bare, uint64_t block)
{
    return slc_part_of_rank(bare->unit->elements, bare->unit->block_elements, block, bare->ranks,
                            (uint32_t)bare->model->rank);
}

/* ---- Calls on the communication thread ---- */

static sluice_status inspect(void *context)
{
    const bare_layer *layer = context;
    slc_bare *bare = layer->bare;
    sluice_status status = SLUICE_OK;
    for (uint64_t b = 0; !status && b < slc_unit_blocks(bare->unit); b++) {
        const slc_part part = part_of(bare, b);
        bool finite = true;
        status =
            slc_all_finite(&bare->optimizer->stream, SLUICE_FP32, part.count, layer->gradient + part.first, &finite);
        bare->non_finite += !finite;
    }
    return status;
}

static sluice_status update(void *context)
{
    const bare_layer *layer = context;
    const slc_bare *bare = layer->bare;
    const sluice_update whole = {.value = layer->value,
                                 .gradient = layer->gradient,
                                 .state = {layer->state[0], layer->state[1]},
                                 .count = bare->unit->elements,
                                 .step = bare->step,
                                 .learning_rate = bare->learning_rate,
                                 .gradient_factor = 1};
    return bare->optimizer->optimizer.update(&whole, bare->optimizer);
}

/* ---- A step ---- */

static sluice_status carry_out(slc_bare *bare, const slc_op *ops, uint32_t count)
{
    bare->next_operation += count;
    sluice_status status = slc_comm_submit(bare->comm, ops, count, NULL);
    return status ? status : slc_comm_wait(bare->comm, bare->next_operation);
}

static sluice_status sum_and_update(slc_bare *bare, bare_layer *layer)
{
    const slc_op ops[] = {{.kind = SLC_ALL_REDUCE,
                           .dtype = SLUICE_FP32,
                           .scale = (float)(1.0 / bare->ranks),
                           .elements = bare->unit->elements,
                           .block_elements = bare->unit->block_elements,
                           .block_count = slc_unit_blocks(bare->unit),
                           .src = layer->gradient,
                           .dst = layer->gradient,
                           .call = inspect,
                           .context = layer,
                           .what = "gradients by hand"},
                          {.kind = SLC_CALL,
                           .wait = {slc_comm_completed(bare->comm)},
                           .wait_value = {bare->next_operation + 1},
                           .call = update,
                           .context = layer,
                           .what = "update by hand"}};
    return carry_out(bare, ops, 2);
}

static sluice_status agree(slc_bare *bare)
{
    const slc_op op = {.kind = SLC_ALL_REDUCE,
                       .dtype = SLUICE_INT64,
                       .elements = bare->agreement_words,
                       .block_elements = bare->agreement_words,
                       .block_count = 1,
                       .src = bare->agreement,
                       .dst = bare->agreement,
                       .what = "agreement by hand"};
    memset(bare->agreement, 0, bare->agreement_words * sizeof *bare->agreement);
    bare->agreement[NON_FINITE_WORD] = bare->non_finite;
    return carry_out(bare, &op, 1);
}

sluice_status slc_bare_step(slc_bare *bare, double learning_rate)
{
    sluice_status status = SLUICE_OK;
    bare->step++;
    bare->learning_rate = learning_rate;
    bare->non_finite = 0;
    for (uint32_t l = 0; l < bare->model->layers; l++) slc_overhead_forward(bare->model, bare->layers[l].value);
    for (uint32_t l = bare->model->layers; !status && l-- > 0;) {
        slc_overhead_backward(bare->model, l, bare->layers[l].value, bare->layers[l].gradient);
        status = sum_and_update(bare, &bare->layers[l]);
    }
    return status ? status : agree(bare);
}

/* ---- Memory ---- */

/* Values, gradients and states of each layer follow each other, then the words of the agreement, then scratch. */
static sluice_status make_memory(slc_bare *bare, const slc_job *job)
{
    const uint64_t arrays = 2 + STATES, elements = bare->unit->elements;
    const uint64_t agreement_bytes = bare->agreement_words * sizeof *bare->agreement;
    const uint64_t layer_bytes = arrays * bare->model->layers * elements * sizeof(float);
    sluice_status status =
        slc_segment_create(bare->optimizer->device, layer_bytes + agreement_bytes + job->scratch_bytes, &bare->segment);
    if (!status) status = slc_segment_populate(&bare->segment);
    if (status) return status;
    for (uint32_t l = 0; l < bare->model->layers; l++) {
        float *at = (float *)bare->segment.base + l * arrays * elements;
        bare->layers[l] = (bare_layer){bare, at, at + elements, {at + 2 * elements, at + 3 * elements}};
    }
    bare->agreement = (int64_t *)(void *)((char *)bare->segment.base + layer_bytes);
    return slc_comm_attach(bare->comm, &bare->segment, (char *)bare->agreement + agreement_bytes, job->scratch_bytes);
}

sluice_status slc_bare_open(sluice_world *world, slc_overhead_model *model, slc_overhead_optimizer *optimizer,
                            const slc_job *job, slc_bare **out)
{
    slc_bare *bare = calloc(1, sizeof *bare);
    bare_layer *layers = calloc(model->layers, sizeof *layers);
    if (!bare || !layers) {
        free(bare), free(layers);
        return slc_error(SLUICE_ERR_MEMORY, "%u layers by hand", model->layers);
    }
    *bare = (slc_bare){.comm = slc_world_comm(world),
                       .model = model,
                       .optimizer = optimizer,
                       .unit = &job->units[0],
                       .ranks = (uint32_t)sluice_world_size(world),
                       .layers = layers,
                       .agreement_words = slc_agreement_words(job)};
    sluice_status status = make_memory(bare, job);
    bare->next_operation = atomic_load(&slc_comm_completed(bare->comm)->value); /* nothing is pending */
    if (!status)
        *out = bare;
    else
        slc_bare_close(bare);
    return status;
}

void slc_bare_close(slc_bare *bare)
{
    if (!bare) return;
    (void)slc_comm_attach(bare->comm, NULL, NULL, 0);
    if (bare->segment.base) slc_segment_destroy(&bare->segment);
    free(bare->layers);
    free(bare);
}

uint64_t slc_bare_hash(const slc_bare *bare)
{
    uint64_t hash = SLC_FNV_START;
    for (uint32_t l = 0; l < bare->model->layers; l++)
        for (uint64_t b = 0; b < slc_unit_blocks(bare->unit); b++) {
            const slc_part part = part_of(bare, b);
            hash = slc_fnv(hash, bare->layers[l].value + part.first, part.count * sizeof(float));
        }
    return hash;
}
