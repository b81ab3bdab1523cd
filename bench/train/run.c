/* The training loop. Ranks agree on the loss and on whether to stop in one small reduction a step, so that all of them
 * leave the loop together.
 * train_run_test.c covers this file. */
#include "bench/train/run.h"

#include "bench/cli/output/result_file.h"
#include "bench/launch/stop_signals.h"
#include "bench/train/checkpoint/checkpoint.h"
#include "bench/train/checkpoint/go_on.h"
#include "bench/train/cores.h"
#include "bench/train/saves.h"
#include "bench/train/data/data.h"
#include "bench/train/data/first_batch.h"
#include "bench/train/data/step_batches.h"
#include "bench/train/words/doubts.h"
#include "bench/train/options/batch_options.h"
#include "bench/train/options/lr_schedule.h"
#include "bench/train/right_answers.h"
#include "bench/train/samples.h"
#include "bench/train/saved_weights.h"
#include "bench/train/summary.h"
#include "bench/train/data/tokenising.h"
#include "lib/base/clock.h"
#include "lib/base/file/path_error.h"
#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/recipe/layer_decay.h"

#include <math.h>
#include <sluice/plan.h>
#include <sluice/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS_MAX = 8 };
static const double SMOOTHING = 0.95; /* the mean of some twenty losses */

typedef struct {
    sluice_world *world;
    slc_training_options *options;
    const slc_training_watch *watch;
    slc_training_result *result;
    uint64_t rank, ranks;
    uint64_t replica, replicas; /* of the model: in a pipeline all stages together are one */
    bool has_head;              /* this rank holds the last layer, or there is no pipeline */
    uint32_t batch, length;

    slc_training_data *data;
    slc_step_batches *step_batches;               /* of a pipeline */
    slc_training_tokenising tokenising, indexing; /* shown by rank 0 */
    sluice_runtime *rt;
    sluice_model *model;

    slc_training_identity identity; /* for checkpoints */
    slc_training_position begun;    /* where this run went on */
    slc_lr_schedule rates;
    double *group_rates; /* --layer-decay: factors on the rate, by group; NULL: all are 1 */
    uint32_t group_count;
    slc_recipe_batch batches;
    uint64_t taken, next; /* micro-batches that this rank has taken in this run; those of the step that comes */
    uint64_t repeats;     /* repeats of the last step; each takes further data */
    uint64_t own_targets; /* of this rank in the step that comes next */
    double targets_each;  /* of a micro-batch of the step that comes, or runs: the mean over all ranks' */
    double loss_divisor;  /* the same; its mean over a group of lengths, so that the targets of all steps weigh alike */
    slc_training_saves saves;
    uint32_t plan; /* number of the plan that was shown; 0: none */
    struct {
        double sum, weight;
    } smooth;                      /* of the latest losses */
    slc_training_samples *samples; /* NULL: none are wanted */
    float *logits;                 /* of an evaluation's micro-batch; NULL: the model does not answer with classes */
} training;

/* ---- Before the first step ---- */

/* Reads all of the data only if a checkpoint saves its hash, or is compared with it. */
static sluice_status look_at_data(training *t)
{
    const slc_training_options *o = t->options;
    const slc_training_data_facts *facts = slc_training_data_get_facts(t->data);
    t->identity = (slc_training_identity){.world = t->world,
                                          .options = o,
                                          .data = facts->fingerprint,
                                          .tokenizer = facts->tokenizer,
                                          .reading = facts->reading};
    sluice_status status = o->save ? slc_training_data_beside(t->data, &t->identity.beside) : SLUICE_OK;
    if (status || !(o->save || o->resume)) return status;
    return slc_training_data_content(t->data, &t->identity.content);
}

/* Checks that all ranks have the same data, because every rank reads the files by itself. */
static sluice_status same_data_everywhere(training *t)
{
    sluice_status status = sluice_world_same(t->world, "--data", t->identity.data);
    if (!status) status = sluice_world_same(t->world, "tokenizer for --data", t->identity.tokenizer);
    if (!status)
        status = sluice_world_same(t->world, "way to read --data (preprocessor_config.json, labels, template)",
                                   t->identity.reading);
    return status ? status : sluice_world_same(t->world, "--data", t->identity.content);
}

/* Shows how far a text is made into tokens, which takes a while if it is long. Ctrl-C ends this at once, since nothing
 * has been trained yet. */
static sluice_status show_tokenising(uint64_t done, uint64_t bytes, void *context)
{
    training *t = context;
    if (t->watch && t->watch->stops && slc_stop_signals_seen(t->watch->stops) > 0)
        return slc_error(SLUICE_ERR_INTERRUPTED, "stopped while the text was made into tokens");
    if (t->rank == 0) slc_training_tokenising_show(&t->tokenising, done, bytes);
    return SLUICE_OK;
}

/* Shows how far the records of a file are found, which takes a while too if the file is large. */
static sluice_status show_indexing(uint64_t done, uint64_t bytes, void *context)
{
    training *t = context;
    if (t->watch && t->watch->stops && slc_stop_signals_seen(t->watch->stops) > 0)
        return slc_error(SLUICE_ERR_INTERRUPTED, "stopped while records were looked for");
    if (t->rank == 0) slc_training_indexing_show(&t->indexing, done, bytes);
    return SLUICE_OK;
}

/* Counts the cores that compute leaves idle. A rank that computes on a GPU has one thread that works. */
static sluice_status count_idle_cores(const training *t, uint64_t *out)
{
    slc_cores_use cores;
    const uint64_t threads = strcmp(t->options->device, "cpu") ? 1 : t->options->threads;
    sluice_status status = slc_cores_look(t->world, threads, &cores);
    if (!status) *out = slc_cores_idle_each(&cores);
    return status;
}

static sluice_status open_data(training *t, sluice_model_config *model)
{
    slc_training_data_watch watch = {show_tokenising, t, show_indexing, t->replicas, 0};
    sluice_status status = count_idle_cores(t, &watch.idle_cores);
    if (!status) status = slc_training_data_open(t->options, model, t->length, &watch, &t->data);
    for (uint32_t i = 0; !status && t->rank == 0 && slc_training_data_note(t->data, i); i++)
        slc_log(SLC_LOG_WARN, "%s", slc_training_data_note(t->data, i));
    return status;
}

/* Returns the fewest steps that have so many micro-batches together. */
static uint64_t steps_with(const training *t, double micro_batches)
{
    uint64_t fewer = 0, enough = (uint64_t)fmin(micro_batches, 0x1p47);
    while (fewer + 1 < enough) {
        const uint64_t middle = fewer + (enough - fewer) / 2;
        if ((double)slc_recipe_batch_before(&t->batches, middle) < micro_batches)
            fewer = middle;
        else
            enough = middle;
    }
    return enough;
}

/* Sets the number of steps if --epochs is given: it follows from the size of the data. */
static void count_steps(training *t)
{
    const slc_training_options *o = t->options;
    const double pass = slc_training_data_passes(t->data, t->replicas * o->batch); /* of a micro-batch of each rank */
    if (o->epochs > 0) t->options->steps = steps_with(t, fmax(1, ceil(o->epochs / pass - 1e-9)));
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
    return (slc_training_samples_of){t->world, t->options, model, t->batch, t->length};
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

static bool pipelined(const training *t)
{
    return t->replicas < t->ranks;
}

/* A pipeline has all micro-batches of a step under way. */
static sluice_status keep_batches(training *t, const sluice_model_config *model)
{
    const uint32_t count = (uint32_t)t->options->micro_batches;
    if (!pipelined(t)) return SLUICE_OK;
    sluice_status status = slc_step_batches_create(model, t->batch, t->length, count, &t->step_batches);
    return status ? status
                  : sluice_runtime_reserve(t->rt, "micro-batches of a step",
                                           slc_step_batches_bytes(model, t->batch, t->length, count));
}

static sluice_status create_runtime(training *t, const sluice_model_config *model)
{
    const sluice_model_options options = {.struct_size = sizeof(sluice_model_options),
                                          .batch = t->batch,
                                          .length = t->length,
                                          .precision = t->options->layer_precision,
                                          .dropout_seed = t->options->seed,
                                          .label_smoothing = t->options->label_smoothing,
                                          .length_step = slc_training_data_get_facts(t->data)->length_step,
                                          .micro_batches = pipelined(t) ? (uint32_t)t->options->micro_batches : 0};
    sluice_config config;
    sluice_status status = slc_training_config(t->options, &config);
    if (!status) status = sluice_runtime_create(t->world, &config, &t->rt);
    if (!status) status = sluice_model_create(t->rt, model, &options, &t->model);
    if (!status) status = reserve_data(t, model);
    if (!status) status = keep_batches(t, model);
    if (!status) status = sluice_runtime_commit(t->rt);
    if (!status && t->options->trace) status = sluice_runtime_record(t->rt);
    if (!status) status = first_weights(t);
    if (!status && t->watch && t->watch->stops) sluice_model_check(t->model, give_up_at_second_stop, t);
    return status;
}

/* Rank 0 alone writes the weights, and all hear what it found. */
static sluice_status check_saved_weights(training *t)
{
    struct {
        int status;
        char line[1000];
    } said = {0};
    if (!t->options->save_weights) return SLUICE_OK;
    if (t->rank == 0) {
        said.status = slc_saved_weights_check(t->options);
        if (!said.status) said.status = slc_saved_weights_check_room(t->options, t->result->parameters);
        if (said.status) snprintf(said.line, sizeof said.line, "%s", sluice_last_error());
    }
    sluice_status status = sluice_world_broadcast(t->world, &said, sizeof said, 0);
    return status || !said.status ? status : slc_error((sluice_status)said.status, "%s", said.line);
}

static sluice_status resume_run(training *t)
{
    const slc_training_options *o = t->options;
    t->identity.model = sluice_model_get_config(t->model);
    t->saves = (slc_training_saves){
        .run = &t->identity, .rt = t->rt, .deadline = t->watch ? t->watch->deadline : NULL, .saved = &t->result->saved};
    sluice_status status = o->resume ? slc_training_resume(&t->identity, t->rt, &t->begun) : SLUICE_OK;
    t->result->steps_before = t->begun.steps;
    return status || !o->save ? status : slc_training_save_check(&t->identity, t->rt);
}

static sluice_status write_first_batch(training *t)
{
    const slc_training_first_batch batch = {.ranks = t->replicas,
                                            .micro_batches = slc_recipe_batch_at(&t->batches, t->begun.steps),
                                            .batch = t->batch,
                                            .length = t->length,
                                            .first = t->begun.sequences,
                                            .steps = t->options->first_batches,
                                            .model = t->identity.model};
    return t->rank == 0 ? slc_training_first_batch_write(t->data, &batch, t->options->first_batch) : SLUICE_OK;
}

/* Returns the sequences of all ranks before step `step`, which counts from 0. A run that goes on after one with another
 * batch counts those that it has seen. */
static uint64_t sequences_before(const training *t, uint64_t step)
{
    const uint64_t micro_batches =
        slc_recipe_batch_before(&t->batches, step) - slc_recipe_batch_before(&t->batches, t->begun.steps);
    return t->begun.sequences + micro_batches * t->replicas * t->batch;
}

/* Returns where the clock of the learning rates stands before step `step`, which counts from 0. */
static double clock_before(const training *t, uint64_t step)
{
    if (!t->rates.tokens) return (double)step;
    return (double)(sequences_before(t, step) * sluice_model_tokens(&t->result->model, t->length));
}

static double rate_of(const training *t, uint64_t step)
{
    const uint64_t sequences = slc_recipe_batch_at(&t->batches, step) * t->replicas * t->batch;
    return slc_recipe_rate_at(&t->rates.rate, clock_before(t, step), clock_before(t, step + 1)) *
           slc_batch_options_rate_factor(t->options, sequences);
}

static void warn_of_warmup(const training *t, double end)
{
    const slc_training_options *o = t->options;
    if (end < t->rates.rate.warmup)
        slc_log(SLC_LOG_WARN, "--warmup %.10g: the run ends after %.10g %s, before the learning rate has come to --lr",
                t->rates.rate.warmup, end, o->lr_over);
    if (o->freeze_step && !t->rates.tokens && o->freeze_step < o->warmup)
        slc_log(SLC_LOG_WARN,
                "--freeze-step %llu lies inside the learning rate's warm-up of %llu steps, in which gradients still "
                "change quickly: the variance that is frozen there is too early; give %llu or more",
                (unsigned long long)o->freeze_step, (unsigned long long)o->warmup, (unsigned long long)o->warmup);
}

/* Makes the schedule of rates. */
static sluice_status begin_rates(training *t)
{
    const slc_training_options *o = t->options;
    sluice_status status = slc_lr_schedule_make(o, t->result->tokens_per_step, &t->rates);
    if (status) return status;
    if (t->begun.steps >= o->steps) return SLUICE_OK;
    if (t->rank == 0) warn_of_warmup(t, clock_before(t, o->steps));
    return slc_lr_schedule_check_last(&t->rates, clock_before(t, o->steps - 1));
}

static sluice_status make_group_rates(training *t, const sluice_model_config *model)
{
    if (t->options->layer_decay == 1) return SLUICE_OK;
    t->group_count = slc_recipe_layer_groups(model->layers);
    t->group_rates = malloc(t->group_count * sizeof *t->group_rates);
    if (!t->group_rates) return slc_error(SLUICE_ERR_MEMORY, "rates of %u layers", t->group_count);
    slc_recipe_layer_rates(t->options->layer_decay, model->layers, t->group_rates);
    return SLUICE_OK;
}

static sluice_status make_room_for_answers(training *t, const sluice_model_config *model)
{
    if (model->head != SLUICE_HEAD_CLASSES || !t->options->eval_batches) return SLUICE_OK;
    t->logits = malloc((size_t)t->batch * model->classes * sizeof *t->logits);
    return t->logits ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "%u answers of %u classes", t->batch, model->classes);
}

static sluice_status begin_run(training *t)
{
    sluice_model_config model = SLUICE_INIT(sluice_model_config);
    slc_training_result *result = t->result;
    sluice_status status = slc_training_go_on_agree(t->options, t->world);
    if (!status) status = slc_training_options_compare(t->options, t->world);
    if (!status) status = slc_training_model(t->options, &model, &t->length);
    if (!status) status = open_data(t, &model);
    if (!status) count_steps(t);
    if (!status) status = look_at_data(t);
    if (!status) status = same_data_everywhere(t);
    result->model = model;
    result->length = t->length;
    if (!status) result->parameters = sluice_model_param_count(&model);
    if (!status) status = check_saved_weights(t);
    if (!status) status = create_runtime(t, &model);
    if (!status) status = resume_run(t);
    if (!status && t->options->first_batch) status = write_first_batch(t);
    if (!status) status = make_room_for_answers(t, &model);
    if (!status) status = make_group_rates(t, &model);
    if (!status) status = open_samples(t);
    if (status) return status;
    result->ranks = t->ranks;
    result->tokens_per_step =
        t->replicas * t->options->micro_batches * t->batch * sluice_model_tokens(&model, t->length);
    result->images_per_step = t->length ? 0 : t->replicas * t->options->micro_batches * t->batch;
    result->dp_bytes = sluice_runtime_dp_bytes(t->rt);
    status = begin_rates(t);
    if (status) return status;
    return t->watch && t->watch->begun ? t->watch->begun(t->rt, result, t->data, t->watch->context) : SLUICE_OK;
}

static void end_run(training *t)
{
    sluice_model_destroy(t->model);
    sluice_runtime_destroy(t->rt);
    slc_training_data_close(t->data);
    json_decref(t->identity.beside);
    slc_step_batches_destroy(t->step_batches);
    free(t->logits);
    free(t->group_rates);
    slc_training_samples_close(t->samples);
}

/* Shows the plan that runs, once; `last`: also one that only served to measure, if no other has been shown. */
static sluice_status show_plan(training *t, bool last)
{
    sluice_plan_report plan = SLUICE_INIT(sluice_plan_report);
    if (!t->watch || !t->watch->planned || pipelined(t)) return SLUICE_OK; /* stages have no one plan */
    sluice_status status = sluice_runtime_plan(t->rt, &plan);
    if (status || plan.number == t->plan || (plan.provisional && !(last && !t->plan))) return status;
    t->plan = plan.number;
    return t->watch->planned(t->rt, t->watch->context);
}

/* ---- Steps ---- */

/* Sequences are numbered so that the global batch does not depend on how it is split. */
static uint64_t first_sequence(const training *t, uint64_t micro_batch)
{
    return (micro_batch * t->replicas + t->replica) * t->batch;
}

/* Takes micro-batch number `index` of this run. */
static sluice_status take_batch(training *t, uint64_t index, sluice_batch *batch)
{
    sluice_status status = slc_training_data_take(t->data, false, t->begun.sequences + first_sequence(t, index), batch);
    batch->loss_divisor = t->loss_divisor;
    return status;
}

static sluice_status micro_batch(training *t, uint64_t index)
{
    sluice_batch batch;
    sluice_status status = take_batch(t, index, &batch);
    if (!status) status = sluice_model_forward(t->model, &batch);
    if (!status) status = sluice_model_backward(t->model, NULL);
    return status;
}

/* Runs the micro-batches of a step, from number `first` on. In a pipeline all steps have equally many. */
static sluice_status run_micro_batches(training *t, uint64_t first, uint64_t count)
{
    sluice_status status = SLUICE_OK;
    sluice_batch batch;
    bool here;
    for (uint64_t m = 0; !status && m < count && !pipelined(t); m++) status = micro_batch(t, first + m);
    for (uint64_t m = 0; !status && m < count && pipelined(t); m++) {
        status = take_batch(t, first + m, &batch);
        if (!status) slc_step_batches_put(t->step_batches, (uint32_t)m, &batch);
    }
    if (status || !pipelined(t)) return status;
    return sluice_model_step(t->model, slc_step_batches_all(t->step_batches), &here);
}

/* Counts this rank's targets of the step that comes next, which has so many micro-batches. In a pipeline those that
 * compute losses count. */
static void count_targets(training *t, uint64_t micro_batches)
{
    t->own_targets = 0;
    t->next = micro_batches;
    for (uint64_t m = 0; t->has_head && m < micro_batches; m++)
        t->own_targets += slc_training_data_targets(t->data, t->begun.sequences + first_sequence(t, t->taken + m));
}

static void take_targets(training *t, double of_all_ranks)
{
    t->targets_each = of_all_ranks / (double)(t->replicas * t->next);
}

/* Adds up the targets of a step that does not follow on another over all ranks. Those of later steps travel with the
 * loss of the step before. */
static sluice_status agree_on_targets(training *t, uint64_t step)
{
    count_targets(t, slc_recipe_batch_at(&t->batches, step));
    double targets = (double)t->own_targets;
    sluice_status status = sluice_world_all_reduce(t->world, &targets, 1);
    take_targets(t, targets);
    return status;
}

/* The step's loss is this rank's mean until agree_on_step has joined those of all ranks. `exchange`: the step leaves
 * equal weights on all ranks. */
static sluice_status run_step(training *t, uint64_t step, bool exchange, slc_training_step *out)
{
    const uint64_t micro_batches = slc_recipe_batch_at(&t->batches, step), first = t->taken;
    const sluice_step_options options = SLUICE_INIT(
        sluice_step_options, .learning_rate = rate_of(t, step), .exchange = exchange, .group_rates = t->group_rates,
        .group_count = t->group_count, .micro_batches = (uint32_t)micro_batches);
    sluice_step_report report = SLUICE_INIT(sluice_step_report);
    *out = (slc_training_step){.step = step + 1,
                               .learning_rate = options.learning_rate,
                               .share = (double)micro_batches / (double)t->options->micro_batches,
                               .evaluation_loss = NAN,
                               .accuracy = NAN};
    const uint64_t seen = t->begun.sequences + (first + micro_batches) * t->replicas * t->batch;
    out->passes = slc_training_data_passes(t->data, seen);
    sluice_plan_report plan = SLUICE_INIT(sluice_plan_report);
    sluice_status status = sluice_runtime_plan(t->rt, &plan);
    out->provisional = plan.provisional;
    const double usual = slc_training_data_usual_targets(t->data, t->begun.sequences + first * t->replicas * t->batch);
    t->loss_divisor = usual > 0 ? usual : t->targets_each;
    const double of_mean = t->targets_each > 0 ? t->loss_divisor / t->targets_each : 1;
    if (!status) status = sluice_step_begin(t->rt, &options);
    if (!status) status = run_micro_batches(t, first, micro_batches);
    t->taken += micro_batches;
    count_targets(t, slc_recipe_batch_at(&t->batches, step + 1)); /* while a device computes */
    if (!status) status = sluice_step_end(t->rt, &report);
    if (!status && t->has_head) status = sluice_model_loss(t->model, &out->loss);
    if (status) return status;
    out->loss *= of_mean; /* of each target */
    out->exposed_s = report.exposed_s;
    out->gradient_norm = report.gradient_norm;
    out->skipped = report.skipped;
    out->compressed = report.compressed;
    out->peak_bytes = report.peak_bytes;
    out->bytes_sent = report.bytes_sent;
    out->plan = report.plan;
    out->planning_s = report.planning_s;
    out->step_s = -report.planning_s; /* the whole is added when the step has ended */
    out->tokens = seen * sluice_model_tokens(t->identity.model, t->length);
    out->predicted_step_s = report.predicted_step_s > 0 ? report.predicted_step_s : NAN;
    return SLUICE_OK;
}

static bool is_late(const training *t)
{
    return t->watch && t->watch->deadline && slc_deadline_after_step(t->watch->deadline, slc_clock_ns());
}

/* Ranks add up sums over micro-batches, which are rounded once less than means. *stop is never reset. A run whose last
 * step is done is not late. */
static sluice_status agree_on_step(training *t, bool last, slc_training_step *step, bool *stop)
{
    const bool asked = t->watch && t->watch->stops && slc_stop_signals_seen(t->watch->stops) > 0;
    const bool late = is_late(t) && !last;
    const double micro_batches = step->share * (double)t->options->micro_batches;
    const slc_training_data_counts counts = slc_training_data_get_counts(t->data);
    const double counts_here = t->has_head;
    double values[] = {
        step->loss * micro_batches,           asked, (double)t->own_targets, late, (double)counts.tokens * counts_here,
        (double)counts.examples * counts_here};
    sluice_status status = sluice_world_all_reduce(t->world, values, sizeof values / sizeof *values);
    if (t->ranks > 1) step->loss = values[0] / ((double)t->replicas * micro_batches);
    if (!*stop) t->result->out_of_time = values[3] > 0 && values[1] == 0;
    *stop |= values[1] > 0 || values[3] > 0;
    take_targets(t, values[2]);
    /* Records are of different lengths; those before this run were as long as its own. */
    if (values[5] > 0) step->tokens = (uint64_t)(values[4] * (1 + (double)t->begun.sequences / values[5]));
    return status;
}

/* An evaluation's sums over all ranks. */
typedef struct {
    double losses; /* in units of the targets of a full micro-batch */
    double targets, right;
} held_out_sums;

static sluice_status evaluate_batch(training *t, uint64_t first, uint64_t most_targets, held_out_sums *sums)
{
    double loss = 0;
    sluice_batch batch;
    sluice_status status = slc_training_data_take(t->data, true, first, &batch);
    if (status) return status;
    batch.loss_divisor = (double)most_targets;
    const uint64_t there =
        (uint64_t)t->batch * sluice_model_targets(t->identity.model, batch.length ? batch.length : t->length);
    status = sluice_model_evaluate(t->model, &batch, &loss, t->logits);
    if (status || !t->has_head) return status;
    sums->losses += loss;
    for (uint64_t i = 0; i < there; i++) sums->targets += batch.targets[i] >= 0;
    if (t->logits)
        sums->right += (double)slc_right_answers(t->logits, batch.targets, t->batch, t->identity.model->classes);
    return SLUICE_OK;
}

/* Computes the mean loss over the targets of held-out windows or images, of which rank r takes every N-th micro-batch,
 * and the share of right answers. Ranks that have no image left keep the others company. */
static sluice_status evaluate(training *t, double *mean, double *accuracy)
{
    const uint64_t round = t->replicas * t->batch,
                   most = (uint64_t)t->batch * sluice_model_targets(t->identity.model, t->length);
    held_out_sums sums = {0};
    sluice_status status = SLUICE_OK;
    for (uint64_t i = 0; !status && i < t->options->eval_batches; i++) {
        if (i * round >= slc_training_data_get_facts(t->data)->held_out) break;
        status = evaluate_batch(t, first_sequence(t, i), most, &sums);
    }
    double values[3] = {sums.losses, sums.targets, sums.right};
    if (!status) status = sluice_world_all_reduce(t->world, values, 3);
    *mean = values[0] / (values[1] / (double)most);
    *accuracy = t->logits ? values[2] / values[1] : NAN;
    return status;
}

static bool evaluate_after(const training *t, uint64_t step)
{
    const slc_training_options *o = t->options;
    return o->eval_batches && o->eval_every && (step + 1) % o->eval_every == 0 && step + 1 < o->steps;
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
                                   t->begun.sequences + t->taken * t->replicas * t->batch};
}

/* Goes on with the save under way, or begins one. */
static sluice_status go_on_saving(training *t, bool begins, bool *last)
{
    const slc_training_position position = position_of(t);
    return begins ? slc_training_saves_begin(&t->saves, &position, *last, last)
                  : slc_training_saves_go_on(&t->saves, &position, false, last);
}

/* Ends the save that is under way after the steps, which have ended with `status`. Where all ranks have found the same
 * fault the state before it is saved all the same. */
static sluice_status end_saving(training *t, sluice_status status)
{
    const slc_training_position position = position_of(t);
    bool stop = false;
    char why[2048];
    if (status && status != SLUICE_ERR_NON_FINITE) return status;
    snprintf(why, sizeof why, "%s", sluice_last_error());
    sluice_status ended = slc_training_saves_go_on(&t->saves, &position, true, &stop);
    return status ? slc_error(status, "%s", why) : ended;
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

/* Counts the steps that a gradient which is not finite makes the run skip. *in_a_row are the latest. */
static sluice_status note_skip(training *t, const slc_training_step *step, uint64_t *in_a_row)
{
    *in_a_row = step->skipped ? *in_a_row + 1 : 0;
    if (!step->skipped) return SLUICE_OK;
    if (!t->result->skipped++ && t->rank == 0)
        slc_log(
            SLC_LOG_WARN,
            "step %llu was skipped, because a gradient is not finite (--nan skip); the last line and the JSON count "
            "such steps, and %llu in a row end the run (--nan-limit)",
            (unsigned long long)step->step, (unsigned long long)t->options->nan_limit);
    if (*in_a_row < t->options->nan_limit) return SLUICE_OK;
    return slc_error(SLUICE_ERR_NON_FINITE,
                     "step %llu: %llu steps in a row were skipped, because a gradient is not finite (--nan-limit); the "
                     "weights are those of step %llu; lower --lr, clip, or --nan stop to learn which layer it is",
                     (unsigned long long)step->step, (unsigned long long)*in_a_row,
                     (unsigned long long)(step->step - *in_a_row));
}

/* Guesses the bytes of a checkpoint: values and two averages in fp32, as the bundled optimizers have them. */
static uint64_t checkpoint_bytes(const training *t)
{
    return 12 * t->result->parameters;
}

/* The latest losses have weights that fall by SMOOTHING from one to the one before; a loss that is not finite has none.
 */
static void smooth_loss(training *t, slc_training_step *step)
{
    if (isfinite(step->loss)) {
        t->smooth.sum = SMOOTHING * t->smooth.sum + step->loss;
        t->smooth.weight = SMOOTHING * t->smooth.weight + 1;
    }
    step->smoothed_loss = t->smooth.sum / t->smooth.weight;
}

static void warn_of_jump(const training *t, const slc_training_step *step)
{
    if (t->rank == 0)
        slc_log(
            SLC_LOG_WARN,
            "step %llu: the loss jumped to %.4g, and the latest ones were about %.4g; if it does not come back, lower "
            "--lr, give it a --warmup, or --clip 1",
            (unsigned long long)step->step, step->loss, step->smoothed_loss);
}

static sluice_status run_steps(training *t)
{
    uint64_t skipped_in_a_row = 0;
    slc_training_loss_watch losses = {0};
    slc_training_result *result = t->result;
    sluice_status status = SLUICE_OK;
    bool stop = false, last = t->begun.steps >= t->options->steps;
    /* An evaluation, a sample or a save is due, and waits while weights differ. */
    bool evaluates = false, samples = false, saves = false;
    if (t->watch && t->watch->deadline)
        slc_deadline_begin(t->watch->deadline, slc_clock_ns(), t->options->save ? checkpoint_bytes(t) : 0);
    if (!last) status = agree_on_targets(t, t->begun.steps);
    for (uint64_t i = t->begun.steps; !status && !last; i++) {
        uint64_t start = slc_clock_ns();
        slc_training_step step;
        last = stop || i + 1 == t->options->steps;
        evaluates |= evaluate_after(t, i);
        samples |= sample_after(t, i, last);
        saves |= save_after(t, i, last);
        status = step_and_agree(t, i, last, last || evaluates || samples || saves, &step, &stop);
        if (status) break;
        const bool readable = weights_are_readable(t);
        if (stop) last |= readable;                    /* else one more step makes them readable */
        if (last) status = sluice_runtime_sync(t->rt); /* no next step follows in which the last one could finish */
        step.step_s += slc_seconds(slc_clock_ns() - start);
        smooth_loss(t, &step);
        if (!status && evaluates && readable && !last && !stop) {
            status = evaluate(t, &step.evaluation_loss, &step.accuracy);
            evaluates = false;
        }
        if (status) break;
        status = slc_training_note(result, &step);
        if (!status && t->watch && t->watch->stepped) status = t->watch->stepped(&step, t->watch->context);
        if (slc_training_loss_jumps(&losses, &step)) warn_of_jump(t, &step);
        if (!status) status = note_skip(t, &step, &skipped_in_a_row);
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

/* ---- After the last step ---- */

/* Gathers the error of a file that cannot be written, so that the other outputs are written all the same. */
static sluice_status without_it(slc_outcome *outputs, sluice_status status)
{
    status = slc_path_was_good(status);
    if (status != SLUICE_ERR_IO) return status;
    slc_outcome_add(outputs, status);
    return SLUICE_OK;
}

static sluice_status try_save_weights(training *t)
{
    const slc_saved_weights saved = {t->world, t->options, t->model, t->data, t->watch ? t->watch->stops : NULL, NULL};
    sluice_status status = slc_saved_weights_write(&saved);
    t->result->weights_saved = !status;
    return without_it(&t->result->outputs, status);
}

static sluice_status write_trace(training *t)
{
    char *text;
    sluice_status status = sluice_runtime_trace(t->rt, &text);
    if (!status && text) status = slc_result_file_write_text(t->options->trace, text);
    free(text);
    return status;
}

/* Adds up what the ranks took of records. */
static sluice_status count_examples(training *t)
{
    const slc_training_data_counts own = slc_training_data_get_counts(t->data);
    double sums[] = {(double)own.examples, (double)own.cut, (double)own.replaced, (double)own.tokens,
                     (double)own.places};
    for (size_t i = 0; !t->has_head && i < sizeof sums / sizeof *sums; i++) sums[i] = 0;
    sluice_status status = sluice_world_all_reduce(t->world, sums, sizeof sums / sizeof *sums);
    t->result->examples = (slc_training_data_counts){.examples = (uint64_t)sums[0],
                                                     .cut = (uint64_t)sums[1],
                                                     .replaced = (uint64_t)sums[2],
                                                     .tokens = (uint64_t)sums[3],
                                                     .places = (uint64_t)sums[4]};
    if (sums[0] > 0) t->result->tokens_per_s *= sums[3] / (sums[0] * t->length); /* not of padding */
    return status;
}

/* Stages need different memory: the result has that of the one that needs most. */
static sluice_status take_largest_memory(training *t, sluice_memory_report *memory)
{
    const uint64_t mine[2] = {memory->planned_bytes, memory->peak_bytes};
    uint64_t(*all)[2] = pipelined(t) ? malloc(t->ranks * sizeof *all) : NULL;
    if (!pipelined(t)) return SLUICE_OK;
    sluice_status status = all ? sluice_world_all_gather(t->world, mine, sizeof mine, all)
                               : slc_error(SLUICE_ERR_MEMORY, "memory of %llu ranks", (unsigned long long)t->ranks);
    for (uint64_t r = 0; !status && r < t->ranks; r++) {
        if (all[r][1] <= memory->peak_bytes) continue;
        memory->planned_bytes = all[r][0];
        memory->peak_bytes = all[r][1];
    }
    free(all);
    return status;
}

static sluice_status finish_run(training *t)
{
    slc_training_result *result = t->result;
    const slc_training_options *o = t->options;
    slc_outcome_add(&result->outputs, slc_outcome_status(&t->saves.unsaved));
    sluice_status status = slc_training_summarise(result);
    if (!status) status = count_examples(t);
    result->prediction = SLUICE_INIT(sluice_prediction);
    if (!status) status = sluice_runtime_prediction(t->rt, &result->prediction);
    if (!status && o->save_weights) status = try_save_weights(t);
    if (!status && o->eval_batches && !result->interrupted)
        status = evaluate(t, &result->evaluation_loss, &result->accuracy);
    if (!status && !o->no_hash) status = sluice_runtime_weights_sha256(t->rt, result->weights_sha256);
    result->device = sluice_runtime_device(t->rt);
    result->memory = SLUICE_INIT(sluice_memory_report);
    if (!status) status = sluice_runtime_memory(t->rt, &result->memory);
    if (!status) status = take_largest_memory(t, &result->memory);
    for (uint32_t n = sluice_runtime_trial_count(t->rt); !status && result->trial_count < n; result->trial_count++) {
        sluice_plan_trial *trial = &result->trials[result->trial_count];
        *trial = SLUICE_INIT(sluice_plan_trial);
        status = sluice_runtime_trial(t->rt, result->trial_count, trial);
    }
    if (!status && o->trace) status = without_it(&result->outputs, write_trace(t));
    if (!status && t->watch && t->watch->finished) status = t->watch->finished(t->rt, t->watch->context);
    return status;
}

static void share_ranks(training *t)
{
    t->replicas = slc_training_replicas(t->options, t->ranks);
    t->replica = t->rank % t->replicas;
    t->has_head = t->rank >= t->ranks - t->replicas;
}

sluice_status slc_training_run(sluice_world *world, slc_training_options *options, const slc_training_watch *watch,
                               slc_training_result *out)
{
    slc_training_result_init(out);
    training t = {.world = world,
                  .options = options,
                  .watch = watch,
                  .result = out,
                  .rank = (uint64_t)sluice_world_rank(world),
                  .ranks = (uint64_t)sluice_world_size(world),
                  .batch = (uint32_t)options->batch,
                  .batches = slc_batch_options_growth(options)};
    share_ranks(&t);
    sluice_status status = begin_run(&t);
    if (!status) status = show_plan(&t, false);
    if (!status) status = run_steps(&t);
    if (!status) status = finish_run(&t);
    char why[2048]; /* destroying a runtime in the middle of a step sets an error of its own */
    snprintf(why, sizeof why, "%s", sluice_last_error());
    end_run(&t);
    return status ? slc_error(status, "%s", why) : SLUICE_OK;
}
