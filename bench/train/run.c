/* The training loop. Ranks agree on the loss and on whether to stop in one small reduction a step, so that all of them
 * leave the loop together.
 * train_run_test.c covers this file. */
#include "bench/train/run.h"

#include "bench/launch/stop_signals.h"
#include "bench/train/checkpoint/checkpoint.h"
#include "bench/train/checkpoint/go_on.h"
#include "bench/train/cut_probe.h"
#include "bench/train/data/first_batch.h"
#include "bench/train/log/observer.h"
#include "bench/train/options/depth_options.h"
#include "bench/train/options/length_options.h"
#include "bench/train/run/depth.h"
#include "bench/train/run/evaluation.h"
#include "bench/train/run/feed.h"
#include "bench/train/run/finish.h"
#include "bench/train/run/losses.h"
#include "bench/train/run/place.h"
#include "bench/train/run/rates.h"
#include "bench/train/run/samples.h"
#include "bench/train/run/saves.h"
#include "bench/train/run/shared_data.h"
#include "bench/train/saved_weights.h"
#include "bench/train/stages.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/status.h"

#include <math.h>
#include <sluice/plan.h>
#include <sluice/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS_MAX = 8 };

typedef struct {
    sluice_world *world;
    slc_training_options *options;
    const slc_training_watch *watch;
    slc_training_result *result;
    slc_run_place place;

    slc_training_data *data;
    sluice_runtime *rt;
    sluice_model *model;

    slc_training_identity identity; /* for checkpoints */
    slc_training_position begun;    /* where this run went on */
    slc_run_rates rates;
    slc_training_depth depth;
    slc_run_feed feed;
    slc_run_evaluation evaluation;
    slc_training_saves saves;
    slc_stage_notes *stages;       /* NULL: there is no pipeline */
    slc_training_samples *samples; /* NULL: none are wanted */
    uint64_t tokens;               /* that all ranks have seen, before this run too */
    uint64_t repeats;              /* repeats of the last step; each takes further data */
    uint32_t plan;                 /* number of the plan that was shown; 0: none */
    slc_run_losses losses;
    slc_training_observer *observer; /* NULL: nothing is observed */
} training;

/* ---- Before the first step ---- */

/* Sets the number of steps if --epochs is given: it follows from the size of the data. */
static void count_steps(training *t)
{
    const double pass = slc_training_data_passes(t->data, slc_run_place_round(&t->place));
    if (t->options->epochs > 0) t->options->steps = slc_run_rates_count_steps(&t->rates, pass);
}

static sluice_status give_up_at_second_stop(void *context)
{
    const training *t = context;
    if (slc_stop_signals_seen(t->watch->stops) < 2) return SLUICE_OK;
    return slc_error(SLUICE_ERR_INTERRUPTED, "stopped in the middle of a step");
}

/* Names what the weights do not have, with commas between. */
static sluice_status list_new_parameters(training *t)
{
    const char *name;
    size_t bytes = 1, used = 0;
    for (uint32_t i = 0; (name = sluice_model_new_param(t->model, i)); i++) bytes += strlen(name) + 2;
    if (bytes == 1) return SLUICE_OK;
    char *names = malloc(bytes);
    if (!names) return slc_error(SLUICE_ERR_MEMORY, "names of new parameters");
    for (uint32_t i = 0; (name = sluice_model_new_param(t->model, i)); i++)
        used += (size_t)snprintf(names + used, bytes - used, "%s%s", i ? ", " : "", name);
    t->result->new_parameters = names;
    return SLUICE_OK;
}

/* Gives the model its first values, then loads the weights. A part of the head that the file does not have keeps its
 * first values. */
static sluice_status first_weights(training *t)
{
    const slc_training_options *o = t->options;
    sluice_status status = o->weights ? sluice_model_load(t->model, o->weights, true) : SLUICE_OK;
    if (!status && !o->resume)
        status = o->weights ? sluice_model_init_new(t->model, o->seed) : sluice_model_init(t->model, o->seed);
    if (status == SLUICE_ERR_NON_FINITE) status = SLUICE_ERR_FORMAT; /* the user's file is wrong, not this training */
    return status ? status : list_new_parameters(t);
}

static slc_training_samples_of samples_of(const training *t, const sluice_model_config *model)
{
    const slc_run_place *p = &t->place;
    const int chooser = slc_run_place_pipelined(p) ? (int)(p->ranks - p->replicas) : 0;
    return (slc_training_samples_of){t->world, t->options, model, p->batch, p->length, chooser};
}

/* Reserves memory of the budget for the data if the host trains. A GPU's budget is of its own memory, and the data are
 * in the host's. */
static sluice_status reserve_data(const training *t, const sluice_model_config *model)
{
    if (strcmp(t->options->device, "cpu")) return SLUICE_OK;
    const slc_training_samples_of samples = samples_of(t, model);
    const uint64_t sample_bytes = slc_training_samples_bytes(&samples);
    sluice_status status = sluice_runtime_reserve(t->rt, "training data", slc_training_data_get_facts(t->data)->bytes);
    return status || !sample_bytes ? status : sluice_runtime_reserve(t->rt, "samples", sample_bytes);
}

/* Opens the samples with the model's own configuration, which lives as long as the model. */
static sluice_status open_samples(training *t)
{
    const slc_training_samples_of samples = samples_of(t, sluice_model_get_config(t->model));
    return slc_training_samples_open(&samples, &t->samples);
}

static sluice_status open_observer(training *t)
{
    const slc_training_observed of = {
        .world = t->world, .options = t->options, .rt = t->rt, .model = t->model, .steps_before = t->begun.steps};
    return slc_training_observer_open(&of, &t->observer);
}

/* A pipeline has all micro-batches of a step under way. */
static sluice_status keep_batches(training *t, const sluice_model_config *model)
{
    const slc_run_place *place = &t->place;
    const uint32_t count = (uint32_t)t->options->micro_batches;
    if (!slc_run_place_pipelined(place)) return SLUICE_OK;
    sluice_status status = slc_step_batches_create(model, place->batch, place->length, count, &t->feed.step_batches);
    return status ? status
                  : sluice_runtime_reserve(t->rt, "micro-batches of a step",
                                           slc_step_batches_bytes(model, place->batch, place->length, count));
}

static sluice_status create_runtime(training *t, const sluice_model_config *model)
{
    sluice_model_options options = {.struct_size = sizeof(sluice_model_options),
                                    .batch = t->place.batch,
                                    .length = t->place.length,
                                    .precision = t->options->layer_precision,
                                    .dropout_seed = t->options->seed,
                                    .label_smoothing = t->options->label_smoothing,
                                    .length_step = slc_training_data_get_facts(t->data)->length_step,
                                    .micro_batches =
                                        slc_run_place_pipelined(&t->place) ? (uint32_t)t->options->micro_batches : 0,
                                    .observe = t->options->observe > 0,
                                    .scales_branches = slc_depth_options_drop_layers(t->options)};
    const slc_cut_probe probe = {t->world, t->options, model, &options, t->data};
    slc_cut_times times = {0};
    sluice_config config;
    uint32_t shapes[SLUICE_SHAPES_MOST];
    slc_length_options_set_model(t->options, shapes, &options);
    sluice_status status = slc_cut_probe_pays(t->options) ? slc_cut_probe_measure(&probe, &times) : SLUICE_OK;
    if (!status) status = slc_training_config(t->options, &config);
    if (!status) status = sluice_runtime_create(t->world, &config, &t->rt);
    if (!status) status = sluice_model_create(t->rt, model, &options, &t->model);
    if (!status) status = slc_cut_times_tell(&times, t->rt);
    t->result->cuts_measured = times.layer_count > 0;
    slc_cut_times_fini(&times);
    if (!status) status = reserve_data(t, model);
    if (!status) status = keep_batches(t, model);
    if (!status) status = sluice_runtime_commit(t->rt);
    if (!status) status = slc_stage_notes_create(t->rt, &t->stages);
    if (!status && t->options->trace) status = sluice_runtime_record(t->rt);
    if (!status) status = first_weights(t);
    if (!status && t->watch && t->watch->stops) sluice_model_check(t->model, give_up_at_second_stop, t);
    return status;
}

/* Rank 0 alone writes the weights, and all hear what it found. */
static sluice_status check_saved_weights(training *t)
{
    sluice_status status = SLUICE_OK;
    if (!t->options->save_weights) return SLUICE_OK;
    if (t->place.rank == 0) {
        status = slc_saved_weights_check(t->options);
        if (!status) status = slc_saved_weights_check_room(t->options, t->result->parameters);
    }
    return sluice_world_share(t->world, status, NULL, 0, 0);
}

static sluice_status resume_run(training *t)
{
    const slc_training_options *o = t->options;
    t->identity.model = sluice_model_get_config(t->model);
    t->saves = (slc_training_saves){
        .run = &t->identity, .rt = t->rt, .deadline = t->watch ? t->watch->deadline : NULL, .saved = &t->result->saved};
    sluice_status status = o->resume ? slc_training_resume(&t->identity, t->rt, &t->begun) : SLUICE_OK;
    t->result->steps_before = t->begun.steps;
    t->tokens = t->begun.tokens ? t->begun.tokens : t->begun.sequences * t->rates.sizes.whole;
    return status || !o->save ? status : slc_training_save_check(&t->identity, t->rt);
}

static sluice_status write_first_batch(training *t)
{
    const slc_recipe_step size = slc_recipe_step_at(&t->rates.sizes, t->begun.steps);
    const slc_training_first_batch batch = {.ranks = t->place.replicas,
                                            .micro_batches = size.micro_batches,
                                            .batch = t->place.batch,
                                            .length = t->place.length,
                                            .first = t->begun.sequences,
                                            .steps = t->options->first_batches,
                                            .model = t->identity.model};
    slc_training_data_set_shape(t->data, size.length, size.pieces);
    return t->place.rank == 0 ? slc_training_first_batch_write(t->data, &batch, t->options->first_batch) : SLUICE_OK;
}

static void begin_feed(training *t)
{
    t->feed.world = t->world;
    t->feed.place = &t->place;
    t->feed.data = t->data;
    t->feed.model = t->model;
    t->feed.begun = t->begun.sequences;
}

static sluice_status begin_evaluation(training *t)
{
    t->evaluation = (slc_run_evaluation){t->world, t->options, &t->place, t->data, t->model, NULL};
    return slc_run_evaluation_init(&t->evaluation);
}

/* Fills what the result says of the run before its first step. */
static void describe_run(training *t)
{
    const slc_run_place *place = &t->place;
    slc_training_result *result = t->result;
    const uint64_t sequences = t->options->micro_batches * slc_run_place_round(place);
    result->ranks = place->ranks;
    result->tokens_per_step = sequences * sluice_model_tokens(&result->model, place->length);
    result->images_per_step = place->length ? 0 : sequences;
    result->dp_bytes = sluice_runtime_dp_bytes(t->rt);
}

static sluice_status begin_run(training *t)
{
    sluice_model_config model = SLUICE_INIT(sluice_model_config);
    slc_training_result *result = t->result;
    sluice_status status = slc_training_go_on_agree(t->options, t->world);
    if (!status) status = slc_training_options_compare(t->options, t->world);
    if (!status) status = slc_training_model(t->options, &model, &t->place.length);
    if (!status) status = slc_run_data_open(t->world, t->options, &t->place, t->watch, &model, &t->data);
    if (!status) slc_run_rates_set_model(&t->rates, &model);
    if (!status) count_steps(t);
    if (!status) status = slc_run_data_identify(t->world, t->options, t->data, &t->identity);
    result->model = model;
    result->length = t->place.length;
    if (!status) result->parameters = sluice_model_param_count(&model);
    if (!status) status = check_saved_weights(t);
    if (!status) status = create_runtime(t, &model);
    if (!status) status = resume_run(t);
    if (!status && t->options->first_batch) status = write_first_batch(t);
    if (!status) status = slc_training_depth_begin(t->options, t->model, &t->depth);
    if (!status) status = begin_evaluation(t);
    if (!status) status = open_samples(t);
    if (!status) status = open_observer(t);
    if (status) return status;
    begin_feed(t);
    describe_run(t);
    status = slc_run_rates_begin(&t->rates, &model, &t->begun, slc_training_data_least_length(t->data) > 0,
                                 result->tokens_per_step);
    if (status) return status;
    return t->watch && t->watch->begun ? t->watch->begun(t->rt, result, t->data, t->watch->context) : SLUICE_OK;
}

static void end_run(training *t)
{
    sluice_model_destroy(t->model);
    sluice_runtime_destroy(t->rt);
    slc_training_data_close(t->data);
    json_decref(t->identity.beside);
    slc_step_batches_destroy(t->feed.step_batches);
    slc_stage_notes_destroy(t->stages);
    slc_run_evaluation_fini(&t->evaluation);
    slc_run_rates_fini(&t->rates);
    slc_training_depth_end(&t->depth);
    slc_training_samples_close(t->samples);
    slc_training_observer_close(t->observer);
}

/* Shows the plan that runs, once. With `last`, a plan that only served to measure is shown too, if no other has
 * been. */
static sluice_status show_plan(training *t, bool last)
{
    sluice_plan_report plan = SLUICE_INIT(sluice_plan_report);
    if (!t->watch || !t->watch->planned || slc_run_place_pipelined(&t->place))
        return SLUICE_OK; /* stages have no one plan */
    sluice_status status = sluice_runtime_plan(t->rt, &plan);
    if (status || plan.number <= t->plan || (plan.provisional && !(last && !t->plan))) return status;
    t->plan = plan.number;
    return t->watch->planned(t->rt, t->watch->context);
}

/* ---- Steps ---- */

/* Copies what the runtime says of a step that has ended. */
static void take_report(slc_training_step *out, const sluice_step_report *report)
{
    out->exposed_s = report->exposed_s;
    out->gradient_norm = report->gradient_norm;
    out->skipped = report->skipped;
    out->compressed = report->compressed;
    out->peak_bytes = report->peak_bytes;
    out->bytes_sent = report->bytes_sent;
    out->plan = report->plan;
    out->planning_s = report->planning_s;
    out->step_s = -report->planning_s; /* the whole is added when the step has ended */
    out->predicted_step_s = report->predicted_step_s > 0 ? report->predicted_step_s : NAN;
}

/* The step's loss is this rank's mean until agree_on_step has joined those of all ranks. `exchange`: the step leaves
 * equal weights on all ranks. */
static sluice_status run_step(training *t, uint64_t step, bool exchange, slc_training_step *out)
{
    const slc_recipe_step size = slc_recipe_step_at(&t->rates.sizes, step),
                          next = slc_recipe_step_at(&t->rates.sizes, step + 1);
    sluice_status status = slc_training_depth_take(&t->depth, step, exchange);
    const sluice_step_options options =
        SLUICE_INIT(sluice_step_options, .learning_rate = slc_run_rates_at(&t->rates, step), .exchange = exchange,
                    .group_rates = t->rates.group, .group_count = t->rates.group_count,
                    .micro_batches = (uint32_t)size.micro_batches, .layers_left_out = t->depth.left_out,
                    .layer_left_out_count = t->depth.left_out_count, .layers_drawn = t->depth.drawn,
                    .layer_probabilities = t->depth.keeps, .layer_drawn_count = t->depth.on ? t->depth.layers : 0,
                    .shape = sluice_model_shape(t->model, size.length),
                    .extent = (double)size.length / (double)t->rates.sizes.whole);
    sluice_step_report report = SLUICE_INIT(sluice_step_report);
    *out =
        (slc_training_step){.step = step + 1,
                            .learning_rate = options.learning_rate,
                            .share = (double)size.tokens / ((double)t->options->micro_batches * t->rates.sizes.whole),
                            .evaluation_loss = NAN,
                            .accuracy = NAN};
    const uint64_t seen = slc_run_feed_sequences(&t->feed, t->feed.taken + size.micro_batches);
    out->tokens = t->tokens + size.tokens * slc_run_place_round(&t->place);
    out->passes =
        slc_training_data_passes(t->data, slc_run_rates_vary(&t->rates) ? out->tokens / t->rates.sizes.whole : seen);
    sluice_plan_report plan = SLUICE_INIT(sluice_plan_report);
    if (!status) status = sluice_runtime_plan(t->rt, &plan);
    out->provisional = plan.provisional;
    const double of_mean = slc_run_feed_set_divisor(&t->feed);
    if (!status) status = sluice_step_begin(t->rt, &options);
    if (!status) status = slc_run_feed_step(&t->feed);
    slc_run_feed_count(&t->feed, &next); /* while a device computes */
    if (!status) status = sluice_step_end(t->rt, &report);
    if (!status) status = slc_stage_notes_add(t->stages, t->rt, report.plan);
    if (!status && t->place.has_head) status = sluice_model_loss(t->model, &out->loss);
    if (status) return status;
    out->loss *= of_mean; /* of each target */
    take_report(out, &report);
    return SLUICE_OK;
}

static bool is_late(const training *t)
{
    return t->watch && t->watch->deadline && slc_deadline_after_step(t->watch->deadline, slc_clock_ns());
}

/* Joins what the ranks know of a step. They add up sums over micro-batches, which are rounded once less than means.
 * *stop is never reset. A run whose last step is done is not late. */
static sluice_status agree_on_step(training *t, bool last, slc_training_step *step, bool *stop)
{
    const bool asked = t->watch && t->watch->stops && slc_stop_signals_seen(t->watch->stops) > 0;
    const bool late = is_late(t) && !last;
    const double micro_batches = (double)slc_recipe_batch_at(&t->rates.sizes.batch, step->step - 1);
    const slc_training_data_counts counts = slc_training_data_get_counts(t->data);
    const double counts_here = t->place.has_head;
    double values[] = {step->loss * micro_batches,          asked,
                       (double)t->feed.own_targets,         late,
                       (double)counts.tokens * counts_here, (double)counts.examples * counts_here};
    sluice_status status = sluice_world_all_reduce(t->world, values, sizeof values / sizeof *values);
    if (t->place.ranks > 1) step->loss = values[0] / ((double)t->place.replicas * micro_batches);
    if (!*stop) t->result->out_of_time = values[3] > 0 && values[1] == 0;
    *stop |= values[1] > 0 || values[3] > 0;
    slc_run_feed_take_targets(&t->feed, values[2]);
    /* Records have different lengths. An early checkpoint does not say how many tokens the records before this run had;
     * they are taken to be as long as this run's. */
    if (values[5] > 0 && (t->begun.tokens || !t->begun.sequences))
        step->tokens = t->begun.tokens + (uint64_t)values[4];
    else if (values[5] > 0)
        step->tokens = (uint64_t)(values[4] * (1 + (double)t->begun.sequences / values[5]));
    t->tokens = step->tokens;
    return status;
}

static bool sample_after(const training *t, uint64_t step, bool last)
{
    const uint64_t every = t->options->sample_every;
    return every && (last || (step + 1) % every == 0);
}

static sluice_status take_sample(training *t, const slc_training_step *step)
{
    const char *text;
    sluice_status status = slc_training_sample(t->samples, t->model, &text);
    if (status || !t->watch || !t->watch->sampled) return status;
    return t->watch->sampled(step, text, t->watch->context);
}

static slc_training_position position_of(const training *t)
{
    return (slc_training_position){t->begun.steps + t->result->step_count,
                                   slc_run_feed_sequences(&t->feed, t->feed.taken), t->tokens};
}

/* Goes on with the save under way, or begins one. */
static sluice_status go_on_saving(training *t, bool begins, bool *last)
{
    const slc_training_position position = position_of(t);
    return begins ? slc_training_saves_begin(&t->saves, &position, *last, last)
                  : slc_training_saves_go_on(&t->saves, &position, last);
}

/* Ends the save that is under way after the steps, which have ended with `status`. If the run failed because numbers
 * were not finite, which all ranks find alike, the save is completed all the same. */
static sluice_status end_saving(training *t, sluice_status status)
{
    const slc_training_position position = position_of(t);
    bool stop = false;
    slc_kept_error kept;
    if (status && status != SLUICE_ERR_NON_FINITE) return status;
    slc_error_keep(&kept);
    sluice_status ended = slc_training_saves_end(&t->saves, &position, &stop);
    return status ? slc_error_restore(&kept, status) : ended;
}

static bool save_after(const training *t, uint64_t step, bool last)
{
    const slc_training_options *o = t->options;
    return o->save && (last || (o->save_every && (step + 1) % o->save_every == 0));
}

/* Between exchanges 0/1 Adam lets each rank have its own weights, which nobody can evaluate or save. A step that
 * --nan skip leaves out does not exchange weights either. */
static bool weights_are_readable(const training *t)
{
    bool readable;
    sluice_runtime_replicas_equal(t->rt, &readable);
    return readable;
}

static sluice_status agree_on_targets(training *t, uint64_t step)
{
    const slc_recipe_step size = slc_recipe_step_at(&t->rates.sizes, step);
    return slc_run_feed_agree(&t->feed, &size);
}

/* Runs a step and agrees on its loss. The last step must leave equal weights on all ranks, so it is tried again with
 * further data if it is skipped. */
static sluice_status step_and_agree(training *t, uint64_t i, bool last, bool exchange, slc_training_step *step,
                                    bool *stop)
{
    for (;; t->repeats++) {
        sluice_status status = run_step(t, i, exchange, step);
        if (!status) status = agree_on_step(t, last, step, stop);
        if (status || !last || weights_are_readable(t)) return status;
        if (t->repeats == REPEATS_MAX)
            return slc_error(SLUICE_ERR_NON_FINITE,
                             "step %llu, the last, was skipped %d times because a gradient is not finite, so ranks "
                             "still hold the different weights of local steps, which nobody can evaluate or save; "
                             "lower --lr, or clip, and go on from an earlier checkpoint",
                             (unsigned long long)i + 1, REPEATS_MAX + 1);
        status = agree_on_targets(t, i);
        if (status) return status;
    }
}

/* Guesses the bytes of a checkpoint: values and two averages in fp32, as the bundled optimizers have them. */
static uint64_t checkpoint_bytes(const training *t)
{
    return 12 * t->result->parameters;
}

static sluice_status run_steps(training *t)
{
    slc_training_result *result = t->result;
    sluice_status status = SLUICE_OK;
    bool stop = false, last = t->begun.steps >= t->options->steps;
    /* True while an evaluation, a sample or a save is due; it waits while the ranks' weights differ. */
    bool evaluates = false, samples = false, saves = false;
    if (t->watch && t->watch->deadline)
        slc_deadline_begin(t->watch->deadline, slc_clock_ns(), t->options->save ? checkpoint_bytes(t) : 0);
    if (!last) status = agree_on_targets(t, t->begun.steps);
    for (uint64_t i = t->begun.steps; !status && !last; i++) {
        uint64_t start = slc_clock_ns();
        slc_training_step step;
        last = stop || i + 1 == t->options->steps;
        evaluates |= slc_run_evaluation_due(&t->evaluation, i);
        samples |= sample_after(t, i, last);
        saves |= save_after(t, i, last);
        status = slc_training_observer_begin(t->observer, i + 1);
        if (!status) status = step_and_agree(t, i, last, last || evaluates || samples || saves, &step, &stop);
        if (status) break;
        const bool readable = weights_are_readable(t);
        if (stop) last |= readable;                    /* else one more step makes them readable */
        if (last) status = sluice_runtime_sync(t->rt); /* no next step follows in which the last one could finish */
        step.step_s += slc_seconds(slc_clock_ns() - start);
        slc_run_losses_smooth(&t->losses, &step);
        if (!status) status = slc_training_observer_end(t->observer, i + 1);
        if (!status && evaluates && readable && !last && !stop) {
            status = slc_run_evaluation_take(&t->evaluation, &step.evaluation_loss, &step.accuracy);
            evaluates = false;
        }
        if (status) break;
        status = slc_training_note(result, &step);
        if (!status && t->watch && t->watch->stepped) status = t->watch->stepped(&step, t->watch->context);
        if (!status) status = slc_run_losses_note(&t->losses, t->options, &t->place, &step, result);
        if (!status) status = show_plan(t, last);
        if (!status && samples && readable && !stop) {
            status = take_sample(t, &step);
            samples = false;
        }
        saves |= save_after(t, i, last);
        if (!status) status = go_on_saving(t, saves && readable, &last);
        saves &= !readable;
    }
    result->interrupted = stop;
    return end_saving(t, status);
}

static sluice_status finish_run(training *t)
{
    const slc_run_ended ended = {t->world, t->options, t->watch,  &t->place,      t->rt,
                                 t->model, t->data,    t->stages, &t->evaluation, t->observer};
    slc_outcome_add(&t->result->outputs, slc_outcome_status(&t->saves.unsaved));
    return slc_run_finish(&ended, t->result);
}

static slc_run_place find_place(const sluice_world *world, const slc_training_options *options)
{
    const uint64_t rank = (uint64_t)sluice_world_rank(world), ranks = (uint64_t)sluice_world_size(world);
    const uint64_t replicas = slc_training_replicas(options, ranks);
    return (slc_run_place){.rank = rank,
                           .ranks = ranks,
                           .replica = rank % replicas,
                           .replicas = replicas,
                           .has_head = rank >= ranks - replicas,
                           .batch = (uint32_t)options->batch};
}

sluice_status slc_training_run(sluice_world *world, slc_training_options *options, const slc_training_watch *watch,
                               slc_training_result *out)
{
    slc_training_result_init(out);
    training t = {
        .world = world, .options = options, .watch = watch, .result = out, .place = find_place(world, options)};
    slc_run_rates_init(&t.rates, options, &t.place);
    sluice_status status = begin_run(&t);
    if (!status) status = show_plan(&t, false);
    if (!status) status = run_steps(&t);
    if (!status) status = finish_run(&t);
    slc_kept_error kept; /* destroying a runtime in the middle of a step sets an error of its own */
    slc_error_keep(&kept);
    end_run(&t);
    return slc_error_restore(&kept, status);
}
