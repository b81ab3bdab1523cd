/* Progress and JSON of a training run. tests/command/train_test.sh covers this file. */
#include "bench/train/report.h"

#include "bench/cli/environment.h"
#include "bench/cli/output/terminal.h"
#include "bench/train/options/onebit_options.h"
#include "lib/base/clock.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* ---- JSON ---- */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *losses_json(const slc_training_result *result)
{
    json_t *losses = json_array();
    for (uint64_t i = 0; losses && i < result->step_count; i++)
        json_array_append_new(losses, number(result->steps[i].loss));
    return losses;
}

static json_t *rates_json(const slc_training_result *result)
{
    json_t *rates = json_array();
    for (uint64_t i = 0; rates && i < result->step_count; i++)
        json_array_append_new(rates, number(result->steps[i].learning_rate));
    return rates;
}

/* Gives the seconds of training up to the end of each step, so that losses can be drawn against time. */
static json_t *elapsed_json(const slc_training_result *result)
{
    json_t *elapsed = json_array();
    double sum_s = 0;
    for (uint64_t i = 0; elapsed && i < result->step_count; i++)
        json_array_append_new(elapsed, number(sum_s += result->steps[i].step_s));
    return elapsed;
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

json_t *slc_training_settings_json(const slc_training_options *o)
{
    json_t *settings = json_object();
    slc_training_options_json(o, SLC_REPORTED | SLC_MEASURED, settings);
    json_object_set_new(settings, "onebit", slc_training_onebit_json(o));
    return settings;
}

json_t *slc_training_run_json(const sluice_world *world, const slc_training_options *o, const slc_training_result *r)
{
    const sluice_memory_report *memory = &r->memory;
    json_t *run = json_pack(
        "{s:s, s:s, s:I, s:i, s:s, s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:b, s:I, s:s, s:s, s:s, s:o, s:I, s:I, s:I, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "model", o->model, "size", o->size, "parameters", (json_int_t)r->parameters, "world", sluice_world_size(world),
        "strategy", o->strategy, "schedule", o->schedule, "precision", o->precision, "budget_bytes",
        memory->budget_bytes ? json_integer((json_int_t)memory->budget_bytes) : json_null(), "planned_bytes",
        (json_int_t)memory->planned_bytes, "peak_bytes", (json_int_t)memory->peak_bytes, "dp_bytes",
        (json_int_t)r->dp_bytes, "rss_bytes", (json_int_t)memory->rss_bytes, "rss_commit_bytes",
        (json_int_t)memory->rss_commit_bytes, "memory", categories_json(memory), "predicted_step_s",
        number(r->predicted_step_s), "step_s", number(r->step_s), "step_min_s", number(r->step_min_s), "exposed_s",
        number(r->exposed_s), "tokens_per_s", number(r->tokens_per_s), "losses", losses_json(r), "evaluation_loss",
        number(r->evaluation_loss), "interrupted", r->interrupted, "steps_before", (json_int_t)r->steps_before,
        "weights_sha256", r->weights_sha256, "transport", sluice_world_transport(world), "path",
        sluice_world_path(world), "settings", slc_training_settings_json(o), "activation_sum_bytes",
        (json_int_t)memory->activation_sum_bytes, "activation_packed_bytes",
        (json_int_t)memory->activation_packed_bytes, "activation_bound_bytes",
        (json_int_t)memory->activation_bound_bytes, "optimizer", o->optimizer, "tied", o->tied, "freeze_step",
        freeze_json(r), "warm_up", phase_json(&r->warm_up), "compressed", phase_json(&r->compressed), "elapsed_s",
        elapsed_json(r), "train_s", number(r->train_s), "final_loss", number(r->final_loss), "learning_rates",
        rates_json(r));
    if (!run) return NULL;
    json_object_set_new(run, "skipped_steps", json_integer((json_int_t)r->skipped));
    json_object_set_new(run, "steps_wanted", json_integer((json_int_t)r->steps_wanted));
    json_object_set_new(run, "images_per_s", number(r->images_per_s));
    json_object_set_new(run, "evaluation_accuracy", number(r->accuracy));
    json_object_set_new(run, "device", json_string(r->device));
    json_object_set_new(run, "sums", json_string(o->sums));
    json_object_set_new(run, "trials", trials_json(r));
    json_object_set_new(run, "prediction", prediction_json(&r->prediction));
    if (memory->pinned_bytes) json_object_set_new(run, "pinned_bytes", json_integer((json_int_t)memory->pinned_bytes));
    return run;
}

sluice_status slc_training_write_json(slc_result_file *file, const sluice_world *world, json_t *runs)
{
    json_t *all = runs ? json_pack("{s:o, s:o}", "runs", runs, "environment", slc_environment_json(world)) : NULL;
    return slc_result_file_put_json(file, all);
}

/* ---- Progress ---- */

static const uint64_t TERMINAL_NS = 100000000, PLAIN_NS = 2000000000;

void slc_training_progress_init(slc_training_progress *progress, uint64_t steps, uint64_t per_step, bool images)
{
    *progress = (slc_training_progress){.out = stderr,
                                        .terminal = isatty(STDERR_FILENO),
                                        .steps = steps,
                                        .per_step = per_step,
                                        .images = images,
                                        .start_ns = slc_clock_ns()};
}

static void format_left(double seconds, char *text, size_t bytes)
{
    uint64_t s = (uint64_t)(seconds + 0.5);
    if (s >= 3600)
        snprintf(text, bytes, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(text, bytes, "%" PRIu64 ":%02" PRIu64, s / 60, s % 60);
}

void slc_training_progress_show(slc_training_progress *progress, const slc_training_step *step)
{
    uint64_t now = slc_clock_ns(), every = progress->terminal ? TERMINAL_NS : PLAIN_NS;
    if (!progress->shown_ns) progress->before = step->step - 1;
    bool edge = !progress->shown_ns || step->step == progress->steps || !isnan(step->evaluation_loss);
    if (!edge && now - progress->shown_ns < every) return;
    progress->shown_ns = now;
    char left[32], loss[32] = "not finite", evaluation[48] = "", accuracy[32] = "";
    if (isfinite(step->loss)) snprintf(loss, sizeof loss, "%.4f", step->loss);
    double mean_s = slc_seconds(now - progress->start_ns) / (double)(step->step - progress->before);
    format_left(mean_s * (double)(progress->steps - step->step), left, sizeof left);
    if (!isnan(step->evaluation_loss))
        snprintf(evaluation, sizeof evaluation, "  held-out %.4f", step->evaluation_loss);
    if (!isnan(step->accuracy)) snprintf(accuracy, sizeof accuracy, ", accuracy %.2f %%", 100 * step->accuracy);
    char line[512];
    snprintf(line, sizeof line,
             "step %" PRIu64 "/%" PRIu64 "  loss %s%s%s  %.0f %s/s  exposed %.1f ms  memory %.1f MiB  left %s%s",
             step->step, progress->steps, loss, evaluation, accuracy, (double)progress->per_step / step->step_s,
             progress->images ? "images" : "tokens", step->exposed_s * 1e3, (double)step->peak_bytes / 0x1p20, left,
             step->skipped ? "  skipped" : "");
    if (progress->terminal)
        slc_terminal_rewrite(progress->out, line);
    else
        fprintf(progress->out, "%s\n", line);
    fflush(progress->out);
    progress->line_open = progress->terminal;
}

void slc_training_progress_end(slc_training_progress *progress)
{
    if (progress->line_open) fputc('\n', progress->out);
    progress->line_open = false;
}
