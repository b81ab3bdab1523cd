/* `sluice train`: trains a bundled model and shows how it goes. Rank 0 speaks and writes; the other ranks
 * train. With -n N and no launcher it starts itself again, N times, as `sluice run` would. */
#include "bench/cli/command.h"
#include "bench/cli/result_file.h"
#include "bench/cli/parse.h"
#include "bench/launch/self_launch.h"
#include "bench/launch/stop_signals.h"
#include "bench/train/checkpoint.h"
#include "bench/train/lr_schedule.h"
#include "bench/train/onebit_options.h"
#include "bench/train/options.h"
#include "bench/train/report.h"
#include "bench/train/run.h"
#include "lib/base/status.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static volatile sig_atomic_t stops;

/* ---- Rank 0's output ---- */

typedef struct {
    bool speaks;
    slc_training_progress progress;
    slc_result_file json, csv;
    slc_outcome outcome; /* of all files */
} output;

static sluice_status open_output(output *out, const slc_training_options *options)
{
    if (!out->speaks) return SLUICE_OK;
    slc_result_file trace;
    sluice_status status =
        slc_result_file_open(options->trace, &trace); /* only to find out whether it can be written */
    if (!status) slc_result_file_abandon(&trace);
    if (!status) status = slc_result_file_open(options->json, &out->json);
    if (!status) status = slc_result_file_open(options->csv, &out->csv);
    if (!status && out->csv.file)
        fputs("step,loss,learning_rate,step_s,exposed_s,gradient_norm,skipped,peak_bytes,bytes_sent,evaluation_loss,"
              "compressed\n",
              out->csv.file);
    return status;
}

/* A number without a value leaves its column empty. */
static void put_optional(FILE *file, double value)
{
    if (!isnan(value)) fprintf(file, "%.9g", value);
}

/* A full disk does not end the run: its end reports the error. */
static void write_step(slc_result_file *csv, const slc_training_step *step)
{
    FILE *file = csv->file;
    if (!file || !slc_result_file_check(csv)) return;
    errno = 0;
    fprintf(file, "%" PRIu64 ",%.9g,%.15g,%.6f,%.6f,", step->step, step->loss, step->learning_rate, step->step_s,
            step->exposed_s);
    put_optional(file, step->gradient_norm);
    fprintf(file, ",%d,%" PRIu64 ",%" PRIu64 ",", step->skipped, step->peak_bytes, step->bytes_sent);
    put_optional(file, step->evaluation_loss);
    fprintf(file, ",%d\n", step->compressed);
    if (!slc_result_file_check(csv))
        fprintf(stderr, "sluice train: cannot write %s: %s; the run goes on\n", csv->path, strerror(csv->why));
}

static sluice_status stepped(const slc_training_step *step, void *context)
{
    output *out = context;
    if (!out->speaks) return SLUICE_OK;
    slc_training_progress_show(&out->progress, step);
    write_step(&out->csv, step);
    return SLUICE_OK;
}

static void print_phase(FILE *file, const char *name, const slc_training_phase *phase)
{
    if (!phase->steps) return;
    fprintf(file, "  %-22s steps %" PRIu64 "-%" PRIu64 ": %.1f ms, exposed %.1f ms, %.2f MB sent\n", name, phase->first,
            phase->first + phase->steps - 1, phase->step_s * 1e3, phase->exposed_s * 1e3, phase->bytes_sent / 1e6);
}

/* With a compressed optimizer, prints the step of each phase. */
static void print_phases(FILE *file, const slc_training_options *o, const slc_training_result *r)
{
    if (!slc_training_is_compressed(o->optimizer)) return;
    print_phase(file, "warm-up", &r->warm_up);
    print_phase(file, "compressed", &r->compressed);
    if (r->ranks == 1)
        fprintf(file, "  nothing was compressed: one rank has nobody to exchange with\n");
    else if (!r->compressed.steps)
        fprintf(file, "  nothing was compressed: all steps were warm-up (--freeze-step)\n");
}

/* A rate that never changes is known from --lr. */
static void print_rates(FILE *file, const slc_training_options *o, const slc_training_result *r)
{
    slc_lr_schedule rates;
    char words[200];
    if (slc_lr_schedule_make(o, r->tokens_per_step, &rates)) return; /* the run has made the same before */
    slc_lr_schedule_words(&rates, words, sizeof words);
    if (rates.kind != SLC_LR_CONSTANT || rates.warmup > 0) fprintf(file, "learning rate: %s\n", words);
}

static void print_summary(FILE *file, const slc_training_options *o, const slc_training_result *r)
{
    if (r->step_count == 0) {
        fprintf(file, "nothing to train: %s is at step %" PRIu64 " of %" PRIu64 "\n", o->resume, r->steps_before,
                o->steps);
        return;
    }
    fprintf(file, "%s %s %s", r->interrupted ? "stopped:" : "trained", o->model, o->size);
    if (r->memory.pinned_bytes) fprintf(file, " on %s", r->device);
    fprintf(file, ", %" PRIu64 " parameters: %" PRIu64 " steps, loss %.4f -> %.4f", r->parameters, r->step_count,
            r->steps[0].loss, r->steps[r->step_count - 1].loss);
    if (!isnan(r->evaluation_loss)) fprintf(file, ", held-out %.4f", r->evaluation_loss);
    fprintf(file, "\nstep %.1f ms (exposed %.1f ms), %.0f tokens/s\n", r->step_s * 1e3, r->exposed_s * 1e3,
            r->tokens_per_s);
    print_rates(file, o, r);
    print_phases(file, o, r);
    fprintf(file, "activations and workspaces: %.1f MiB packed, %.1f MiB side by side, %.1f MiB live at most\n",
            (double)r->memory.activation_packed_bytes / 0x1p20, (double)r->memory.activation_sum_bytes / 0x1p20,
            (double)r->memory.activation_bound_bytes / 0x1p20);
    fprintf(file, "memory: peak %.1f MiB, planned %.1f MiB, resident set %.1f MiB",
            (double)r->memory.peak_bytes / 0x1p20, (double)r->memory.planned_bytes / 0x1p20,
            (double)r->memory.rss_bytes / 0x1p20);
    if (r->memory.pinned_bytes) fprintf(file, ", pinned for copies %.1f MiB", (double)r->memory.pinned_bytes / 0x1p20);
    fputc('\n', file);
    for (uint32_t i = 0; i < r->memory.category_count; i++)
        fprintf(file, "  %-22s %10.1f MiB\n", r->memory.categories[i].name,
                (double)r->memory.categories[i].peak_bytes / 0x1p20);
    if (r->saved)
        fprintf(file, "saved to %s: go on with --resume %s --steps N, N more than %" PRIu64 "\n", o->save, o->save,
                r->steps_before + r->step_count);
    fprintf(file, "weights sha256 %s\n", r->weights_sha256);
}

static sluice_status write_results(output *out, const sluice_world *world, const slc_training_options *options,
                                   const slc_training_result *result)
{
    bool to_stdout = slc_is_standard_output(options->trace) || out->json.file == stdout || out->csv.file == stdout;
    print_summary(to_stdout ? stderr : stdout, options, result);
    if (!out->json.file) return SLUICE_OK;
    json_t *runs = json_array();
    json_array_append_new(runs, slc_training_run_json(world, options, result));
    return slc_training_write_json(&out->json, world, runs);
}

/* The metrics of a run that failed stay; a summary of it is not written. */
static void close_output(output *out, bool failed)
{
    if (failed) slc_result_file_abandon(&out->json);
    slc_outcome_add(&out->outcome, slc_result_file_commit(&out->json));
    slc_outcome_add(&out->outcome, slc_result_file_commit(&out->csv));
}

/* ---- Training ---- */

/* *files gets the errors of the files that rank 0 writes; none of them ends the run. */
static sluice_status train_in(sluice_world *world, const slc_training_options *options, bool *interrupted,
                              slc_outcome *files)
{
    sluice_model_config model = SLUICE_INIT(sluice_model_config);
    uint32_t length = 0;
    slc_training_result result = {0};
    output out = {.speaks = sluice_world_rank(world) == 0};
    const slc_training_watch watch = {.stepped = stepped, .context = &out, .stops = &stops};
    sluice_status status = open_output(&out, options);
    if (!status) status = slc_training_model(options, &model, &length);
    uint64_t sequences = (uint64_t)sluice_world_size(world) * options->micro_batches * options->batch;
    slc_training_progress_init(&out.progress, options->steps,
                               status ? 0 : sequences * sluice_model_tokens(&model, length));
    slc_stop_signals_count(&stops);
    if (!status) status = slc_training_run(world, options, &watch, &result);
    slc_training_progress_end(&out.progress);
    *interrupted = result.interrupted || status == SLUICE_ERR_INTERRUPTED;
    if (!status && out.speaks) status = write_results(&out, world, options, &result);
    char why[2048];
    snprintf(why, sizeof why, "%s", sluice_last_error());
    out.outcome = result.outputs;
    close_output(&out, status != SLUICE_OK);
    if (out.speaks) *files = out.outcome;
    slc_training_result_free(&result);
    return status ? slc_error(status, "%s", why) : SLUICE_OK;
}

/* Does every rank find the same error? Then only one prints it. */
static bool known_to_all(sluice_status status)
{
    return status == SLUICE_ERR_BUDGET || status == SLUICE_ERR_NON_FINITE;
}

static int train_here(slc_training_options *options)
{
    sluice_world_config config;
    sluice_world *world = NULL;
    slc_outcome files = {0};
    bool interrupted = false;
    sluice_status status = slc_stop_signals_take();
    if (!status) status = slc_training_resume_freeze(options);
    if (!status) status = slc_training_world(options, &config);
    if (!status) status = sluice_world_create(&config, &world);
    if (!status) status = train_in(world, options, &interrupted, &files);
    if (!status) status = sluice_world_barrier(world); /* no rank leaves while another still writes */
    if (status && !(world && sluice_world_rank(world) && known_to_all(status))) slc_fail("sluice train");
    if (files.status) fprintf(stderr, "sluice train: %s\n", files.why);
    sluice_world_destroy(world);
    return interrupted ? EXIT_INTERRUPTED : status || files.status ? EXIT_FAILED : 0;
}

/* ---- The command ---- */

static int start_ranks(uint64_t ranks, char *const *args)
{
    int exit_code;
    return slc_launch_self((int)ranks, "train", args, NULL, &exit_code) ? slc_fail("sluice train") : exit_code;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    (void)text;
    if (key == ARGP_KEY_INIT) {
        state->child_inputs[0] = state->input;
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

static int run_train(int argc, char **argv)
{
    slc_training_options options;
    const struct argp_child children[] = {{slc_training_argp(NULL), 0, NULL, 0}, {0}};
    const struct argp parser = {
        .parser = parse_option,
        .children = children,
        .doc =
            "Trains a bundled model on real data, on this rank or on every rank of a launcher's job.\v"
            "Examples:\n"
            "  sluice train --data book.txt\n"
            "  sluice train -n 2 --size mini --budget 60% --steps 200\n"
            "  sluice train --weights gpt2/ --data book.txt --precision bf16 --save-weights tuned/\n"
            "  sluice train --steps 200 --save run/ --save-every 50\n"
            "  sluice train --steps 400 --save run/ --resume run/\n"
            "  sluice run -n 4 -- sluice train --data book.txt --batch 8 --micro-batches 2\n\n"
            "Ctrl-C stops all ranks after the step and writes what there is, with --save a checkpoint too (exit code "
            "130); a second one gives up the step.\n"
            "More: docs/models.md",
    };
    slc_parse(&parser, argc, argv, 0, &options);
    if (slc_training_resume_model(&options) || slc_training_options_check(&options)) {
        slc_fail("sluice train");
        return EXIT_USAGE;
    }
    if (options.ranks && !slc_launched()) return start_ranks(options.ranks, argv + 1);
    return train_here(&options);
}

const sluice_command slc_command_train = {"train", "trains a bundled model on real data", run_train};
