/* The cuts lie between equal numbers of layers. tests/command/measure/lab_pipeline_test.sh covers this file. */
#include "bench/lab/pipeline/sleeping.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"

#include <errno.h>
#include <sluice/plan.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WARM_UP = 2, ELEMENTS = 64, NAME_BYTES = 24 };

typedef struct {
    const slc_sleeping *model;
    sluice_runtime *rt;
    sluice_layer **layers;
    uint32_t layer_count;
    uint64_t slept_cpu_ns;
} run;

static double slot_s(const run *r, uint32_t layer, bool backward)
{
    return (backward ? r->model->backward_s : r->model->forward_s) * (layer ? 1 : r->model->factor);
}

/* Sleeps until so many seconds after now, however long falling asleep takes. */
static void sleep_for(run *r, double seconds)
{
    const uint64_t cpu_ns = slc_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    const uint64_t until_ns = slc_clock_read_ns(CLOCK_MONOTONIC) + (uint64_t)(1e9 * seconds);
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
                                   .tv_nsec = (long)(until_ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) continue;
    r->slept_cpu_ns += slc_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
}

static void name_layer(uint32_t layer, char out[NAME_BYTES])
{
    snprintf(out, NAME_BYTES, "layer.%u", layer);
}

/* Each layer makes an activation that the next one reads forward and backward, and the gradient of what it has read. */
static sluice_status add_layer(run *r, uint32_t l)
{
    char name[NAME_BYTES], next[NAME_BYTES], before[NAME_BYTES];
    const bool last = l + 1 == r->layer_count;
    name_layer(l, name);
    name_layer(last ? l : l + 1, next);
    name_layer(l ? l - 1 : 0, before);
    const sluice_param_desc weight = SLUICE_INIT(sluice_param_desc, .name = "w", .count = ELEMENTS);
    const sluice_activation_desc out =
        SLUICE_INIT(sluice_activation_desc, .name = "out", .bytes = r->model->message_bytes, .last_layer = next,
                    .last = SLUICE_BACKWARD, .last_forward_layer = next);
    const sluice_activation_desc gradient =
        SLUICE_INIT(sluice_activation_desc, .name = "gradient", .bytes = r->model->message_bytes,
                    .first = SLUICE_BACKWARD, .last_layer = before, .last = SLUICE_BACKWARD);
    sluice_param *param;
    sluice_activation *activation;
    sluice_status status = sluice_layer_add(r->rt, name, &r->layers[l]);
    if (!status) status = sluice_param_add(r->layers[l], &weight, &param);
    if (!status) status = sluice_activation_add(r->layers[l], &out, &activation);
    if (!status && l) status = sluice_activation_add(r->layers[l], &gradient, &activation);
    return status ? status : sluice_runtime_layer_times_set(r->rt, l, slot_s(r, l, false), slot_s(r, l, true));
}

static sluice_status open_run(sluice_world *world, uint32_t micro_batches, run *r)
{
    const uint32_t stages = (uint32_t)sluice_world_size(world), pieces = stages * r->model->chunks;
    sluice_config config;
    sluice_config_init(&config);
    char *cuts = calloc(pieces, NAME_BYTES);
    size_t used = 0;
    r->layer_count = pieces * r->model->layers;
    r->layers = calloc(r->layer_count, sizeof *r->layers);
    if (!cuts || !r->layers) {
        free(cuts);
        return slc_error(SLUICE_ERR_MEMORY, "%u layers", r->layer_count);
    }
    for (uint32_t p = 1; p < pieces; p++)
        used += (size_t)snprintf(cuts + used, (size_t)pieces * NAME_BYTES - used, "%slayer.%u", p > 1 ? "," : "",
                                 p * r->model->layers);
    config.micro_batches = micro_batches;
    config.pipeline = stages;
    config.pipeline_chunks = r->model->chunks;
    config.pipeline_schedule = r->model->schedule;
    config.pipeline_cuts = cuts;
    sluice_status status = sluice_runtime_create(world, &config, &r->rt);
    free(cuts);
    for (uint32_t l = 0; !status && l < r->layer_count; l++) status = add_layer(r, l);
    return status ? status : sluice_runtime_commit(r->rt);
}

static sluice_status run_slot(run *r, const sluice_task *task)
{
    const bool backward = task->kind == SLUICE_TASK_BACKWARD;
    uint32_t l = 0;
    while (r->layers[l] != task->layer) l++;
    sluice_status status = backward ? sluice_backward_begin(task->layer) : sluice_forward_begin(task->layer);
    if (status) return status;
    sleep_for(r, slot_s(r, l, backward));
    return backward ? sluice_backward_end(task->layer) : sluice_forward_end(task->layer);
}

static sluice_status run_step(run *r)
{
    sluice_task task = SLUICE_INIT(sluice_task);
    sluice_status status = sluice_step_begin(r->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 0));
    while (!status) {
        status = sluice_step_next(r->rt, &task);
        if (status || task.kind == SLUICE_TASK_END) break;
        status = run_slot(r, &task);
    }
    return status ? status : sluice_step_end(r->rt, NULL);
}

static sluice_status measure_step(run *r, slc_sleeping_row *sum)
{
    sluice_stage_report stage = SLUICE_INIT(sluice_stage_report);
    const uint64_t began_ns = slc_clock_ns(), cpu_ns = slc_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID),
                   slept_ns = r->slept_cpu_ns;
    sluice_status status = run_step(r);
    const uint64_t own_ns = slc_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns - (r->slept_cpu_ns - slept_ns);
    const double step_s = slc_seconds(slc_clock_ns() - began_ns);
    if (!status) status = sluice_runtime_stage(r->rt, &stage);
    if (status) return status;
    sum->step_s += step_s;
    sum->cpu_s += slc_seconds(own_ns);
    sum->idle_share += stage.idle_s / step_s;
    sum->simulated_share += stage.predicted_idle_s / stage.predicted_step_s;
    sum->messages += stage.channel_count;
    return SLUICE_OK;
}

sluice_status slc_sleeping_train(sluice_world *world, const slc_sleeping *model, uint32_t micro_batches,
                                 slc_sleeping_row *out)
{
    run r = {.model = model};
    slc_sleeping_row sum = {0};
    const double steps = model->steps;
    sluice_status status = open_run(world, micro_batches, &r);
    for (uint32_t i = 0; !status && i < WARM_UP; i++) status = run_step(&r);
    for (uint32_t i = 0; !status && i < model->steps; i++) status = measure_step(&r, &sum);
    if (!status)
        *out = (slc_sleeping_row){.idle_share = sum.idle_share / steps,
                                  .simulated_share = sum.simulated_share / steps,
                                  .step_s = sum.step_s / steps,
                                  .cpu_s = sum.cpu_s / steps,
                                  .messages = sum.messages / steps * micro_batches};
    slc_kept_error kept;
    slc_error_keep(&kept);
    sluice_runtime_destroy(r.rt);
    free(r.layers);
    return slc_error_restore(&kept, status);
}
