/* The JSON of a training run. tests/command/train/train_test.sh covers this file. */
#include "bench/train/report.h"

#include "bench/cli/environment.h"
#include "bench/train/options/onebit_options.h"
#include "bench/train/options/recipe_json.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* ---- JSON ---- */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* Lists one of a run's figures at each of its points. */
static json_t *course_json(const slc_training_course *course, size_t field)
{
    json_t *all = json_array();
    for (uint64_t i = 0; all && i < course->count; i++) {
        double value;
        memcpy(&value, (const char *)&course->points[i] + field, sizeof value);
        json_array_append_new(all, number(value));
    }
    return all;
}

static json_t *phase_json(const slc_training_phase *phase)
{
    if (!phase->steps) return json_null();
    return json_pack("{s:I, s:I, s:o, s:o, s:o}", "first_step", (json_int_t)phase->first, "steps",
                     (json_int_t)phase->steps, "step_s", number(phase->step_s), "exposed_s", number(phase->exposed_s),
                     "bytes_sent", number(phase->bytes_sent));
}

/* Gives the last step of the warm-up; null: all steps were warm-up. A run that --resume began after it does not know
 * it. */
static json_t *freeze_json(const slc_training_result *r)
{
    bool seen = r->compressed.steps && (r->warm_up.steps || r->compressed.first == 1);
    return seen ? json_integer((json_int_t)r->compressed.first - 1) : json_null();
}

static json_t *categories_json(const sluice_memory_report *memory)
{
    json_t *categories = json_object();
    for (uint32_t i = 0; categories && i < memory->category_count; i++)
        json_object_set_new(categories, memory->categories[i].name,
                            json_integer((json_int_t)memory->categories[i].peak_bytes));
    return categories;
}

static json_t *trials_json(const slc_training_result *r)
{
    json_t *trials = json_array();
    for (uint32_t i = 0; trials && i < r->trial_count; i++) {
        const sluice_plan_trial *trial = &r->trials[i];
        json_array_append_new(trials,
                              json_pack("{s:s, s:f, s:f, s:b}", "plan", trial->name, "predicted_step_s", trial->step_s,
                                        "step_s", trial->measured_step_s, "stays", (int)trial->stays));
    }
    return trials;
}

static json_t *parts_json(const sluice_step_parts *p)
{
    if (!(p->step_s > 0)) return json_null();
    return json_pack("{s:f, s:f, s:f, s:f, s:f}", "step_s", p->step_s, "compute_s", p->compute_s, "waiting_s",
                     p->waiting_s, "outside_s", p->outside_s, "transfer_s", p->transfer_s);
}

static json_t *prediction_json(const sluice_prediction *p)
{
    const bool both = p->predicted.step_s > 0 && p->measured.step_s > 0;
    const sluice_step_miss *m = &p->miss;
    json_t *miss = both ? json_pack("{s:f, s:f, s:f, s:f}", "compute_s", m->compute_s, "transfer_s", m->transfer_s,
                                    "waiting_s", m->waiting_s, "outside_s", m->outside_s)
                        : json_null();
    return json_pack("{s:o, s:o, s:I, s:o, s:o}", "predicted", parts_json(&p->predicted), "measured",
                     parts_json(&p->measured), "steps", (json_int_t)p->steps, "miss", miss, "anew_s",
                     p->anew_s > 0 ? json_real(p->anew_s) : json_null());
}

static json_t *examples_json(const slc_training_data_counts *counts)
{
    if (!counts->examples) return json_null();
    return json_pack("{s:I, s:I, s:I, s:I, s:I}", "taken", (json_int_t)counts->examples, "cut", (json_int_t)counts->cut,
                     "replaced", (json_int_t)counts->replaced, "tokens", (json_int_t)counts->tokens, "places",
                     (json_int_t)counts->places);
}

static json_t *channels_json(const slc_training_stage *stage)
{
    json_t *channels = json_array();
    for (uint32_t c = 0; c < stage->channel_count; c++) {
        const slc_training_channel *channel = &stage->channels[c];
        json_array_append_new(channels, json_pack("{s:s, s:i, s:i, s:b, s:I, s:o}", "what", channel->what, "piece",
                                                  (int)channel->piece, "stage", (int)channel->stage, "receives",
                                                  (int)channel->receives, "bytes", (json_int_t)channel->step_bytes,
                                                  "waited_s", number(channel->waited_s)));
    }
    return channels;
}

static json_t *stage_json(const slc_training_pipeline *pipeline, uint32_t number_of)
{
    const slc_training_stage *stage = &pipeline->stages[number_of];
    json_t *layers = json_array();
    for (uint32_t l = 0; l < pipeline->layer_count; l++)
        if (pipeline->pieces[l] % pipeline->stage_count == number_of)
            json_array_append_new(layers, json_string(pipeline->layers[l]));
    const bool predicted = isfinite(stage->predicted_compute_s);
    json_t *before = predicted ? json_pack("{s:f, s:f, s:f}", "compute_s", stage->predicted_compute_s, "idle_s",
                                           stage->predicted_idle_s, "exposed_s", stage->predicted_exposed_s)
                               : json_null();
    return json_pack("{s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "layers", layers, "planned_bytes",
                     (json_int_t)stage->planned_bytes, "peak_bytes", (json_int_t)stage->peak_bytes, "slots",
                     2 * (json_int_t)pipeline->micro_batches * pipeline->chunks, "compute_s", number(stage->compute_s),
                     "idle_s", number(stage->idle_s), "exposed_s", number(stage->exposed_s), "end_s",
                     number(stage->end_s), "predicted", before, "channels", channels_json(stage));
}

static json_t *pipeline_json(const slc_training_pipeline *pipeline)
{
    if (!pipeline) return json_null();
    json_t *cuts = json_array(), *stages = json_array();
    for (uint32_t l = 1; l < pipeline->layer_count; l++)
        if (pipeline->pieces[l] != pipeline->pieces[l - 1])
            json_array_append_new(cuts, json_string(pipeline->layers[l]));
    for (uint32_t s = 0; s < pipeline->stage_count; s++) json_array_append_new(stages, stage_json(pipeline, s));
    return json_pack("{s:i, s:i, s:s, s:i, s:i, s:o, s:o, s:o, s:o}", "stage_count", (int)pipeline->stage_count,
                     "replicas", (int)pipeline->replicas, "schedule", pipeline->schedule, "chunks",
                     (int)pipeline->chunks, "micro_batches", (int)pipeline->micro_batches, "cuts", cuts,
                     "predicted_step_s", number(pipeline->predicted_step_s), "measured_step_s",
                     number(pipeline->measured_step_s), "stages", stages);
}

static json_t *saves_json(const slc_training_saved *saved)
{
    if (!saved->count) return json_null();
    return json_pack("{s:I, s:f, s:f, s:f}", "count", (json_int_t)saved->count, "held_s", saved->held_s, "whole_s",
                     saved->whole_s, "last_s", saved->last_s);
}

json_t *slc_training_settings_json(const slc_training_options *o)
{
    json_t *settings = json_object();
    if (!slc_training_options_json(o, SLC_REPORTED | SLC_MEASURED, settings) &&
        !json_object_set_new(settings, "onebit", slc_training_onebit_json(o)))
        return settings;
    json_decref(settings);
    return NULL;
}

json_t *slc_training_run_json(const sluice_world *world, const slc_training_options *o, const slc_training_result *r)
{
    const sluice_memory_report *memory = &r->memory;
    json_t *run = json_pack(
        "{s:s, s:s, s:I, s:i, s:s, s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:b, s:I, s:o, s:s, s:s, s:o, s:I, s:I, s:I, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "model", o->model, "size", o->size, "parameters", (json_int_t)r->parameters, "world", sluice_world_size(world),
        "strategy", o->strategy, "schedule", o->schedule, "precision", o->precision, "budget_bytes",
        memory->budget_bytes ? json_integer((json_int_t)memory->budget_bytes) : json_null(), "planned_bytes",
        (json_int_t)memory->planned_bytes, "peak_bytes", (json_int_t)memory->peak_bytes, "dp_bytes",
        (json_int_t)r->dp_bytes, "rss_bytes", (json_int_t)memory->rss_bytes, "rss_commit_bytes",
        (json_int_t)memory->rss_commit_bytes, "memory", categories_json(memory), "predicted_step_s",
        number(r->predicted_step_s), "step_s", number(r->step_s), "step_min_s", number(r->step_min_s), "exposed_s",
        number(r->exposed_s), "tokens_per_s", number(r->tokens_per_s), "losses",
        course_json(&r->course, offsetof(slc_training_point, loss)), "evaluation_loss", number(r->evaluation_loss),
        "interrupted", r->interrupted, "steps_before", (json_int_t)r->steps_before, "weights_sha256",
        *r->weights_sha256 ? json_string(r->weights_sha256) : json_null(), "transport", sluice_world_transport(world),
        "path", sluice_world_path(world), "settings", slc_training_settings_json(o), "activation_sum_bytes",
        (json_int_t)memory->activation_sum_bytes, "activation_packed_bytes",
        (json_int_t)memory->activation_packed_bytes, "activation_bound_bytes",
        (json_int_t)memory->activation_bound_bytes, "optimizer", o->optimizer, "tied", o->tied, "freeze_step",
        freeze_json(r), "warm_up", phase_json(&r->warm_up), "compressed", phase_json(&r->compressed), "elapsed_s",
        course_json(&r->course, offsetof(slc_training_point, elapsed_s)), "train_s", number(r->train_s), "final_loss",
        number(r->final_loss), "learning_rates", course_json(&r->course, offsetof(slc_training_point, learning_rate)));
    if (!run) return NULL;
    json_object_set_new(run, "recipe", slc_training_recipe_json(o));
    json_object_set_new(run, "tokens_seen", course_json(&r->course, offsetof(slc_training_point, tokens)));
    json_object_set_new(run, "skipped_steps", json_integer((json_int_t)r->skipped));
    json_object_set_new(run, "steps_done", json_integer((json_int_t)r->step_count));
    json_object_set_new(run, "losses_every", json_integer((json_int_t)(r->course.every ? r->course.every : 1)));
    json_object_set_new(run, "steps_wanted", json_integer((json_int_t)r->steps_wanted));
    json_object_set_new(run, "step_mean_s", number(r->step_mean_s));
    json_object_set_new(run, "images_per_s", number(r->images_per_s));
    json_object_set_new(run, "evaluation_accuracy", number(r->accuracy));
    json_object_set_new(run, "device", json_string(r->device));
    json_object_set_new(run, "sums", json_string(o->sums));
    json_object_set_new(run, "trials", trials_json(r));
    json_object_set_new(run, "prediction", prediction_json(&r->prediction));
    json_object_set_new(run, "examples", examples_json(&r->examples));
    json_object_set_new(run, "saves", saves_json(&r->saved));
    json_object_set_new(run, "pipeline", pipeline_json(r->pipeline));
    if (memory->pinned_bytes) json_object_set_new(run, "pinned_bytes", json_integer((json_int_t)memory->pinned_bytes));
    return run;
}

sluice_status slc_training_write_json(slc_result_file *file, const sluice_world *world, json_t *runs)
{
    json_t *all = runs ? json_pack("{s:o, s:o}", "runs", runs, "environment", slc_environment_json(world)) : NULL;
    return slc_result_file_put_json(file, all);
}
