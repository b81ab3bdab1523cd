/* A rank that has no held-out sequence left evaluates a micro-batch without targets, because all ranks must take part.
 * bench/train/train_run_test.c covers this file. */
#include "bench/train/run/evaluation.h"

#include "bench/train/right_answers.h"
#include "lib/base/status.h"

#include <math.h>
#include <stdlib.h>

/* An evaluation's sums over all ranks. */
typedef struct {
    double losses; /* in units of the targets of a full micro-batch */
    double targets, right;
} held_out_sums;

sluice_status slc_run_evaluation_init(slc_run_evaluation *e)
{
    const sluice_model_config *model = sluice_model_get_config(e->model);
    const uint32_t batch = e->place->batch;
    if (model->head != SLUICE_HEAD_CLASSES || !e->options->eval_batches) return SLUICE_OK;
    e->logits = malloc((size_t)batch * model->classes * sizeof *e->logits);
    return e->logits ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "%u answers of %u classes", batch, model->classes);
}

void slc_run_evaluation_fini(slc_run_evaluation *e)
{
    free(e->logits);
}

bool slc_run_evaluation_due(const slc_run_evaluation *e, uint64_t step)
{
    const slc_training_options *o = e->options;
    return o->eval_batches && o->eval_every && (step + 1) % o->eval_every == 0 && step + 1 < o->steps;
}

/* Returns the targets of a micro-batch of sequences of that length. */
static uint64_t targets_of(const slc_run_evaluation *e, uint32_t length)
{
    return (uint64_t)e->place->batch * sluice_model_targets(sluice_model_get_config(e->model), length);
}

static sluice_status evaluate_batch(slc_run_evaluation *e, uint64_t first, held_out_sums *sums)
{
    const slc_run_place *place = e->place;
    double loss = 0;
    sluice_batch batch;
    sluice_status status = slc_training_data_take(e->data, SLC_DATA_HELD_OUT, first, &batch);
    if (status) return status;
    batch.loss_divisor = (double)targets_of(e, place->length);
    const uint64_t there = targets_of(e, batch.length ? batch.length : place->length);
    status = sluice_model_evaluate(e->model, &batch, &loss, e->logits);
    if (status || !place->has_head) return status;
    sums->losses += loss;
    for (uint64_t i = 0; i < there; i++) sums->targets += batch.targets[i] >= 0;
    if (e->logits)
        sums->right += (double)slc_right_answers(e->logits, batch.targets, place->batch,
                                                 sluice_model_get_config(e->model)->classes);
    return SLUICE_OK;
}

sluice_status slc_run_evaluation_take(slc_run_evaluation *e, double *mean, double *accuracy)
{
    const uint64_t held_out = slc_training_data_get_facts(e->data)->held_out;
    held_out_sums sums = {0};
    sluice_status status = SLUICE_OK;
    for (uint64_t i = 0; !status && i < e->options->eval_batches; i++) {
        if (i * slc_run_place_round(e->place) >= held_out) break;
        status = evaluate_batch(e, slc_run_place_first(e->place, i), &sums);
    }
    double values[3] = {sums.losses, sums.targets, sums.right};
    if (!status) status = sluice_world_all_reduce(e->world, values, 3);
    *mean = values[0] / (values[1] / (double)targets_of(e, e->place->length));
    *accuracy = e->logits ? values[2] / values[1] : NAN;
    return status;
}
