/* bench/train/train_run_test.c covers this file. */
#include "bench/train/run/feed.h"

uint64_t slc_run_feed_sequences(const slc_run_feed *f, uint64_t micro_batches)
{
    return f->begun + micro_batches * slc_run_place_round(f->place);
}

/* Takes micro-batch number `index` of this run. */
static sluice_status take_batch(slc_run_feed *f, uint64_t index, sluice_batch *batch)
{
    const uint64_t first = f->begun + slc_run_place_first(f->place, index);
    sluice_status status = slc_training_data_take(f->data, SLC_DATA_TRAIN, first, batch);
    batch->loss_divisor = f->loss_divisor;
    return status;
}

static sluice_status micro_batch(slc_run_feed *f, uint64_t index)
{
    sluice_batch batch;
    sluice_status status = take_batch(f, index, &batch);
    if (!status) status = sluice_model_forward(f->model, &batch);
    if (!status) status = sluice_model_backward(f->model, NULL);
    return status;
}

static sluice_status pipelined_step(slc_run_feed *f, uint64_t first, uint64_t count)
{
    sluice_batch batch;
    bool here;
    sluice_status status = SLUICE_OK;
    for (uint64_t m = 0; !status && m < count; m++) {
        status = take_batch(f, first + m, &batch);
        if (!status) slc_step_batches_put(f->step_batches, (uint32_t)m, &batch);
    }
    return status ? status : sluice_model_step(f->model, slc_step_batches_all(f->step_batches), &here);
}

sluice_status slc_run_feed_step(slc_run_feed *f)
{
    const uint64_t first = f->taken, count = f->next;
    sluice_status status = SLUICE_OK;
    f->taken += count;
    if (f->step_batches) return pipelined_step(f, first, count);
    for (uint64_t m = 0; !status && m < count; m++) status = micro_batch(f, first + m);
    return status;
}

/* Counts the targets of the micro-batches that were fed. In a pipeline those of the ranks count that compute losses. */
void slc_run_feed_count(slc_run_feed *f, const slc_recipe_step *size)
{
    f->own_targets = 0;
    f->next = size->micro_batches;
    slc_training_data_set_shape(f->data, size->length, size->pieces);
    for (uint64_t m = 0; f->place->has_head && m < f->next; m++)
        f->own_targets += slc_training_data_targets(f->data, f->begun + slc_run_place_first(f->place, f->taken + m));
}

void slc_run_feed_take_targets(slc_run_feed *f, double of_all_ranks)
{
    f->targets_each = of_all_ranks / (double)(f->place->replicas * f->next);
}

sluice_status slc_run_feed_agree(slc_run_feed *f, const slc_recipe_step *size)
{
    slc_run_feed_count(f, size);
    double targets = (double)f->own_targets;
    sluice_status status = sluice_world_all_reduce(f->world, &targets, 1);
    slc_run_feed_take_targets(f, targets);
    return status;
}

double slc_run_feed_set_divisor(slc_run_feed *f)
{
    const double usual = slc_training_data_usual_targets(f->data, slc_run_feed_sequences(f, f->taken));
    f->loss_divisor = usual > 0 ? usual : f->targets_each;
    return f->targets_each > 0 ? f->loss_divisor / f->targets_each : 1;
}
