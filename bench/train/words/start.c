/* The lines before the first step: what is trained, on what, where, and within what.
 * tests/command/train/train_test.sh covers this file. */
#include "bench/train/words/start.h"

#include "bench/train/cut_probe.h"
#include "bench/train/options/batch_options.h"
#include "bench/train/options/depth_options.h"
#include "bench/train/options/length_options.h"
#include "bench/train/options/lr_schedule.h"
#include "bench/train/saved_weights.h"

#include <inttypes.h>
#include <sluice/plan.h>
#include <stdio.h>
#include <string.h>

/* A number with commas: 12,345,678. */
typedef struct {
    char text[32];
} grouped;

static grouped group(uint64_t number)
{
    grouped out;
    char digits[24];
    const size_t count = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, number);
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (i && (count - i) % 3 == 0) out.text[used++] = ',';
        out.text[used++] = digits[i];
    }
    out.text[used] = 0;
    return out;
}

void slc_training_name(const slc_training_options *o, char *out, size_t size)
{
    int used = snprintf(out, size, "%s %s, batch %" PRIu64, o->model, o->size, o->batch);
    if (o->context && used > 0 && (size_t)used < size)
        snprintf(out + used, size - (size_t)used, ", context %" PRIu64, o->context);
}

static void print_data(FILE *out, const slc_training_options *o, const slc_training_data *data)
{
    const slc_training_data_about *about = &slc_training_data_get_facts(data)->about;
    fprintf(out, "data       ");
    for (uint64_t i = 0; i < o->data_count && i < 3; i++) fprintf(out, "%s%s", i ? ", " : "", o->data[i]);
    if (o->data_count > 3) fprintf(out, " and %" PRIu64 " more", o->data_count - 3);
    if (!o->data_count) fprintf(out, "%s (no --data is given)", about->own_path);
    fprintf(out, ": ");
    if (about->files) fprintf(out, "%s file%s, ", group(about->files).text, about->files == 1 ? "" : "s");
    fprintf(out, "%s %s to train on, ", group(about->train).text, about->what);
    fprintf(out, "%s held out\n", group(about->held_out).text);
    if (about->tokenizer) fprintf(out, "tokenizer  %s\n", about->tokenizer);
}

/* Names the parameters that begin anew; none does after --resume, because they have the checkpoint's values. */
static void print_new(FILE *out, const slc_training_options *o, const slc_training_result *r)
{
    if (r->new_parameters && !o->resume)
        fprintf(out, "new        %s: %s lacks them, or has them for other classes\n", r->new_parameters, o->weights);
}

static void print_ranks(FILE *out, const slc_training_options *o, const sluice_runtime *rt)
{
    const sluice_world *world = sluice_runtime_world(rt);
    const int size = sluice_world_size(world), local = sluice_world_local_size(world);
    const bool device = !strcmp(sluice_world_path(world), "device");
    fprintf(out, "ranks      %d", size);
    if (device)
        fprintf(out, ", by collectives on the GPUs' memory (%s), sums %s", sluice_world_transport(world), o->sums);
    else if (size > 1 && local == size)
        fprintf(out, " that share this host's memory");
    if (!device && size > 1 && local < size && local > 1) fprintf(out, ", of which %d share this host's memory", local);
    if (!device && size > 1 && local < size) fprintf(out, ", by messages (%s)", sluice_world_transport(world));
    fprintf(out, ", %" PRIu64 " thread%s%s, on %s", o->threads, o->threads == 1 ? "" : "s", size > 1 ? " each" : "",
            sluice_runtime_device(rt));
    if (*o->throttle) fprintf(out, "; the network is slowed down to %s", o->throttle);
    fputc('\n', out);
}

static void print_cores(FILE *out, const slc_cores_use *cores)
{
    char words[200];
    slc_cores_words(cores, words, sizeof words);
    if (*words) fprintf(out, "cores      %s\n", words);
}

static void print_training(FILE *out, const slc_training_options *o, const slc_training_result *r, bool images)
{
    slc_lr_schedule rates;
    char words[200] = "", lengths[200], rule[80], depth[80];
    /* The run has made the same schedule before, so there is no error here. */
    if (!slc_lr_schedule_make(o, r->tokens_per_step, &rates)) slc_lr_schedule_words(&rates, words, sizeof words);
    const bool usual = o->weights && !slc_training_option_given(o, "lr");
    slc_batch_options_rule_words(o, rule, sizeof rule);
    fprintf(out, "training   %s, learning rate %s%s%s; ", o->optimizer, words, rule,
            usual ? " (the default with --weights)" : "");
    if (r->steps_before >= o->steps) fprintf(out, "no steps are left of --steps %" PRIu64, o->steps);
    if (r->steps_before && r->steps_before < o->steps)
        fprintf(out, "steps %" PRIu64 " to %" PRIu64, r->steps_before + 1, o->steps);
    if (!r->steps_before) fprintf(out, "%" PRIu64 " step%s", o->steps, o->steps == 1 ? "" : "s");
    slc_batch_options_words(o, words, sizeof words);
    slc_length_options_words(o, lengths, sizeof lengths);
    slc_depth_options_words(o, r->model.layers, depth, sizeof depth);
    fprintf(out, " of %s%s %s%s%s%s\n", *words || *lengths ? "up to " : "", group(r->tokens_per_step).text,
            images ? "patches" : "tokens", words, lengths, depth);
}

/* Says what config.json of the weights would drop and this run does not. */
static void print_drops(FILE *out, const slc_training_options *o)
{
    static const char *const options[] = {"dropout", "drop-path"};
    for (int i = 0; i < 2; i++) {
        const double asked = slc_saved_weights_drops(o, options[i]);
        if (asked > 0 && !slc_training_option_given(o, options[i]))
            fprintf(out,
                    "%-10s 0, as every run that does not ask for it; config.json of %s has %.3g and keeps it; "
                    "--%s %.3g takes it\n",
                    options[i], o->weights, asked, options[i], asked);
    }
}

static void print_budget(FILE *out, const slc_training_options *o, const slc_training_result *r,
                         const sluice_plan_report *plan)
{
    const double dp_mib = (double)r->dp_bytes / 0x1p20, mib = (double)plan->budget_bytes / 0x1p20;
    if (slc_training_stages(o) && plan->budget_bytes)
        fprintf(out, "budget     %.1f MiB a rank\n", mib);
    else if (slc_training_stages(o))
        fprintf(out, "budget     none (--budget)\n");
    else if (!plan->budget_bytes)
        fprintf(out, "budget     none (--budget); to keep everything on every rank (dp) takes %.1f MiB a rank\n",
                dp_mib);
    else if (strchr(o->budget, '%'))
        fprintf(out, "budget     %.1f MiB a rank = %s of the %.1f MiB that dp takes at least\n", mib, o->budget,
                dp_mib);
    else
        fprintf(out, "budget     %.1f MiB a rank; to keep everything on every rank (dp) takes %.1f MiB\n", mib, dp_mib);
}

/* Prints the first layer of each piece but the first. */
static void print_cuts(FILE *out, const sluice_runtime *rt)
{
    const char *name;
    uint32_t piece, before = 0;
    for (uint32_t l = 0; !sluice_runtime_piece(rt, l, &name, &piece); l++) {
        if (piece > before) fprintf(out, "%s%s", before ? "," : "", name);
        before = piece;
    }
}

static const char *say_auto(const slc_training_options *o, const slc_training_result *r)
{
    if (r->cuts_measured) return "measured times";
    return slc_cut_probe_pays(o) ? "sizes, as a step that measures does not fit the budget"
                                 : "sizes, as the run is short";
}

static void print_pipeline(FILE *out, const slc_training_options *o, const slc_training_result *r,
                           const sluice_runtime *rt)
{
    const uint64_t stages = slc_training_stages(o);
    sluice_stage_report stage = SLUICE_INIT(sluice_stage_report);
    if (!stages || sluice_runtime_stage(rt, &stage)) return;
    fprintf(out, "pipeline   %" PRIu64 " stages of %u replica%s, schedule %s, cuts ", stages,
            sluice_runtime_replicas(rt), sluice_runtime_replicas(rt) == 1 ? "" : "s", stage.schedule);
    print_cuts(out, rt);
    if (o->plan)
        fputs(" (as the plan says)", out);
    else if (!strcmp(o->pipeline_cuts, "auto"))
        fprintf(out, " (auto: by %s)", say_auto(o, r));
    fputc('\n', out);
}

void slc_training_print_start(FILE *out, const slc_training_options *o, const slc_training_result *r,
                              const slc_training_data *data, const slc_cores_use *cores, const sluice_runtime *rt)
{
    sluice_plan_report plan = SLUICE_INIT(sluice_plan_report);
    fprintf(out, "model      %s %s: %s parameters, %s\n", o->model, o->size, group(r->parameters).text, o->precision);
    print_new(out, o, r);
    print_data(out, o, data);
    print_ranks(out, o, rt);
    if (!strcmp(o->device, "cpu")) print_cores(out, cores);
    print_drops(out, o);
    print_training(out, o, r, !strcmp(slc_training_data_get_facts(data)->about.what, "images"));
    print_pipeline(out, o, r, rt);
    if (!sluice_runtime_plan(rt, &plan)) print_budget(out, o, r, &plan);
    if (plan.provisional && r->steps_before + 3 <= o->steps)
        fprintf(out, "plan       follows after step %" PRIu64 ", when times are measured\n", r->steps_before + 3);
    fflush(out);
}

json_t *slc_training_data_json(const slc_training_options *o, const slc_training_data *data)
{
    const slc_training_data_about *about = &slc_training_data_get_facts(data)->about;
    json_t *paths = json_array();
    for (uint64_t i = 0; i < o->data_count; i++) json_array_append_new(paths, json_string(o->data[i]));
    if (!o->data_count) json_array_append_new(paths, json_string(about->own_path));
    return json_pack("{s:o, s:I, s:s, s:I, s:I, s:s?}", "paths", paths, "files", (json_int_t)about->files, "of",
                     about->what, "train", (json_int_t)about->train, "held_out", (json_int_t)about->held_out,
                     "tokenizer", about->tokenizer);
}
