/* `sluice train`: trains a bundled model and shows how it goes. Rank 0 speaks and writes; the other ranks
 * train. With -n N and no launcher it starts itself again, N times, as `sluice run` would.
 * tests/command/train/train_test.sh covers this file. */
#include "bench/cli/command.h"
#include "bench/cli/error_line.h"
#include "bench/cli/output/result_file.h"
#include "bench/cli/rank_report.h"
#include "bench/estimate/pace.h"
#include "bench/launch/self_launch.h"
#include "bench/plan/words/run_plan.h"
#include "bench/launch/stop_signals.h"
#include "bench/train/checkpoint/checkpoint.h"
#include "bench/train/checkpoint/go_on.h"
#include "bench/train/cores.h"
#include "bench/train/data/tokenising.h"
#include "bench/train/deadline.h"
#include "bench/train/words/doubts.h"
#include "bench/train/words/ending.h"
#include "bench/train/options/people.h"
#include "bench/train/log/run_log.h"
#include "bench/train/words/progress.h"
#include "bench/cli/environment.h"
#include "bench/train/options/options.h"
#include "bench/train/options/paths_check.h"
#include "bench/train/report.h"
#include "bench/train/run.h"
#include "bench/train/saved_weights.h"
#include "bench/train/words/start.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/status.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static volatile sig_atomic_t stops;
static const char command[] = "sluice train";

/* ---- Rank 0's output ---- */

typedef struct {
    bool speaks;
    const slc_training_options *options;
    slc_training_deadline *deadline;
    json_t *data, *plan; /* for the JSON of results */
    slc_training_progress progress;
    slc_training_log *log;
    slc_result_file json;
    slc_outcome outcome; /* of all files */
} output;

static sluice_status open_output(output *out, const slc_training_options *options)
{
    if (!out->speaks) return SLUICE_OK;
    sluice_status status = slc_result_file_probe(options->trace);
    if (!status) status = slc_result_file_probe(options->plan_out);
    if (!status) status = slc_result_file_probe(options->profile_out);
    if (!status) status = slc_result_file_open(options->json, &out->json);
    return status ? status : slc_training_log_open(options, &out->log);
}

static sluice_status stepped(const slc_training_step *step, void *context)
{
    output *out = context;
    if (!out->speaks) return SLUICE_OK;
    slc_training_log_step(out->log, step); /* before it is shown: what was seen is kept */
    slc_training_progress_show(&out->progress, step);
    return SLUICE_OK;
}

/* Prints a sample. The line of the step stays above it. */
static sluice_status sampled(const slc_training_step *step, const char *text, void *context)
{
    output *out = context;
    if (!out->speaks) return SLUICE_OK;
    slc_training_progress_end(&out->progress);
    fprintf(out->progress.out, "sample %" PRIu64 ": ", step->step);
    for (const char *c = text; *c; c++) /* a line stays one */
        fputs(*c == '\n' ? "\\n" : (const char[]){*c, 0}, out->progress.out);
    fputc('\n', out->progress.out);
    slc_training_log_sample(out->log, step->step, text);
    return SLUICE_OK;
}

/* Blocks SIGPIPE, so that a reader that leaves before the summary does not stop the run, which also writes files. The
 * signal stops the run only while the progress line is written. */
static sigset_t hold_sigpipe(void)
{
    sigset_t pipe, before;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    return before;
}

static void release_sigpipe(const sigset_t *before)
{
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    while (sigtimedwait(&pipe, NULL, &(struct timespec){0}) > 0) continue;
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* Returns the content of run.json for a run that begins, without the options. */
static json_t *about_run(const output *out, const sluice_runtime *rt, const slc_training_result *so_far)
{
    const sluice_world *world = sluice_runtime_world(rt);
    return json_pack("{s:s, s:s, s:I, s:i, s:I, s:o, s:O, s:o}", "model", out->options->model, "size",
                     out->options->size, "parameters", (json_int_t)so_far->parameters, "world",
                     sluice_world_size(world), "tokens_per_step", (json_int_t)so_far->tokens_per_step, "settings",
                     slc_training_settings_json(out->options), "data", out->data, "environment",
                     slc_environment_json(world));
}

/* A run that is long enough learns what its matrix products could reach on this processor, which takes a tenth of a
 * second. */
static void find_peak(output *out, const slc_training_result *so_far)
{
    static const double WORTH = 4e12; /* FLOPs of the whole run: about a minute of one core */
    const slc_training_options *o = out->options;
    const double flops =
        (double)o->micro_batches * slc_pace_model_flops(&so_far->model, (uint32_t)o->batch, so_far->length);
    const double left = (double)o->steps - (double)so_far->steps_before;
    double peak = 0;
    if (strcmp(o->device, "cpu") || flops * left < WORTH) return;
    const sluice_dtype dtype = !strcmp(o->precision, "bf16") ? SLUICE_BF16 : SLUICE_FP32;
    if (!slc_pace_measure_products(dtype, (uint32_t)o->threads, &peak)) out->progress.peak_step_s = flops / peak;
}

static sluice_status begun(sluice_runtime *rt, const slc_training_result *so_far, const slc_training_data *data,
                           void *context)
{
    output *out = context;
    slc_cores_use cores;
    sluice_status status = slc_cores_look(sluice_runtime_world(rt), out->options->threads, &cores);
    if (status || !out->speaks) return status;
    slc_training_doubt_rate(out->options);
    const sigset_t before = hold_sigpipe();
    slc_training_print_start(slc_training_people(out->options), out->options, so_far, data, &cores, rt);
    release_sigpipe(&before);
    slc_training_progress_init(&out->progress, out->options->steps, so_far->images_per_step);
    out->progress.language = slc_training_speaks(out->options);
    out->progress.verbose = out->options->verbose;
    find_peak(out, so_far);
    out->data = slc_training_data_json(out->options, data);
    if (!out->data) return slc_error(SLUICE_ERR_MEMORY, "the data as JSON");
    return slc_training_log_begin(out->log, so_far->steps_before, about_run(out, rt, so_far));
}

/* Writes a text to a file. As with other results, a full disk does not end the run. */
static void keep_text(output *out, const char *path, const char *text)
{
    if (path) slc_outcome_add(&out->outcome, slc_result_file_write_text(path, text));
}

static sluice_status planned(sluice_runtime *rt, void *context)
{
    output *out = context;
    slc_run_plan plan;
    char name[256];
    if (!out->speaks) return SLUICE_OK;
    slc_training_progress_end(&out->progress);
    slc_training_name(out->options, name, sizeof name);
    const sigset_t before = hold_sigpipe();
    sluice_status status = slc_run_plan_show(rt, name, out->options->plan, slc_training_people(out->options), &plan);
    release_sigpipe(&before);
    if (status) return status;
    keep_text(out, out->options->plan_out, plan.plan);
    keep_text(out, out->options->profile_out, plan.profile);
    json_decref(out->plan);
    out->plan = json_incref(plan.json);
    slc_run_plan_free(&plan);
    return SLUICE_OK;
}

/* The evaluation behind the last step. */
static void log_end(output *out, const slc_training_options *o, const slc_training_result *r)
{
    const slc_training_step end = {
        .step = r->steps_before + r->step_count, .evaluation_loss = r->evaluation_loss, .accuracy = r->accuracy};
    if (o->log && r->step_count && !isnan(r->evaluation_loss)) slc_training_log_end(out->log, &end);
}

static sluice_status write_results(output *out, const sluice_world *world, const slc_training_options *options,
                                   const slc_training_result *result)
{
    log_end(out, options, result);
    slc_training_print_end(slc_training_people(options), options, result, out->deadline->why);
    if (!out->json.file) return SLUICE_OK;
    json_t *runs = json_array(), *run = slc_training_run_json(world, options, result);
    json_object_set(run, "data", out->data);
    json_object_set(run, "plan", out->plan);
    json_array_append_new(runs, run);
    return slc_training_write_json(&out->json, world, runs);
}

/* Closes the outputs. If the run failed its log stays, and no summary is written. */
static void close_output(output *out, bool failed)
{
    if (failed) slc_result_file_abandon(&out->json);
    slc_outcome_add(&out->outcome, slc_result_file_commit(&out->json));
    slc_outcome_add(&out->outcome, slc_training_log_close(&out->log));
}

/* ---- Training ---- */

/* Adds advice to the error of a budget that is too small. A budget that is enough for ranks of one host may be too
 * small on several, and nobody should have to queue for machines to learn that. Every rank says the same words if hosts
 * have the same number of ranks. */
static sluice_status name_estimate(sluice_status status, const sluice_world *world)
{
    const int ranks = sluice_world_size(world), local = sluice_world_local_size(world);
    char why[2048];
    if (status != SLUICE_ERR_BUDGET || local == ranks) return status;
    snprintf(why, sizeof why, "%s", sluice_last_error());
    return slc_error(status,
                     "%s; ranks that send messages need memory for them: `sluice estimate -n %d --ranks-a-host %d "
                     "--throttle 10gbit,20us`, with the options of this run, says beforehand what fits",
                     why, ranks, ranks % local ? 1 : local);
}

/* *ended is 0, or the exit code of a run that ended before its last step. *files gets the errors of the files that rank
 * 0 writes; none of them ends the run. Paths that are wrong are found before the first step, so these are not. */
static sluice_status train_in(sluice_world *world, slc_training_options *options, slc_training_deadline *deadline,
                              int *ended, slc_outcome *files)
{
    slc_training_result result = {0};
    output out = {.speaks = sluice_world_rank(world) == 0, .options = options, .deadline = deadline};
    const slc_training_watch watch = {.stepped = stepped,
                                      .sampled = sampled,
                                      .begun = begun,
                                      .planned = planned,
                                      .context = &out,
                                      .stops = &stops,
                                      .deadline = deadline};
    if (out.speaks && deadline->unreadable)
        slc_log(SLC_LOG_WARN, "SLURM_JOB_END_TIME=%s is no time in seconds: the run does not know when its job ends",
                deadline->unreadable);
    sluice_status status = open_output(&out, options);
    slc_stop_signals_count(&stops);
    if (!status) status = name_estimate(slc_training_run(world, options, &watch, &result), world);
    slc_training_progress_end(&out.progress);
    if (result.interrupted || status == SLUICE_ERR_INTERRUPTED)
        *ended = result.out_of_time ? EXIT_OUT_OF_TIME : EXIT_INTERRUPTED;
    if (!status && out.speaks) status = write_results(&out, world, options, &result);
    slc_kept_error kept;
    slc_error_keep(&kept);
    slc_outcome_add(&out.outcome, slc_outcome_status(&result.outputs));
    json_decref(out.data);
    json_decref(out.plan);
    close_output(&out, status != SLUICE_OK);
    if (out.speaks) *files = out.outcome;
    slc_training_result_free(&result);
    return slc_error_restore(&kept, status);
}

static int train_here(slc_training_options *options, slc_training_deadline *deadline)
{
    sluice_world_config config;
    sluice_world *world = NULL;
    slc_outcome files = {0};
    int code = 0, ended = 0;
    sluice_status status = slc_stop_signals_take();
    if (!status) status = slc_training_resume_freeze(options);
    if (!status) status = slc_training_world(options, &config);
    if (status) return slc_rank_refuse(command);
    status = sluice_world_create(&config, &world);
    if (status) return slc_rank_fail(command, NULL);
    status = train_in(world, options, deadline, &ended, &files);
    if (!status) status = sluice_world_barrier(world); /* no rank leaves while another still writes */
    if (files.status) {
        slc_print_error(command, files.why);
        code = EXIT_FAILED;
    }
    if (status)
        code = slc_rank_fail(command, world);
    else
        sluice_world_destroy(world);
    if (ended == EXIT_OUT_OF_TIME && code) return code; /* what was to be saved in time is not */
    return ended ? ended : code;
}

/* ---- The command ---- */

static int start_ranks(uint64_t ranks, char *const *args)
{
    int exit_code;
    return slc_launch_self((int)ranks, "train", args, NULL, &exit_code) ? slc_fail(command) : exit_code;
}

/* The progress of looking through the data before there are ranks. Signals to stop wait meanwhile, so that no half
 * index stays beside the data. */
typedef struct {
    sigset_t stops;
    slc_training_tokenising shown;
} looking;

static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { STOP_SIGNALS = sizeof stop_signals / sizeof *stop_signals };

static sluice_status show_looking(uint64_t done, uint64_t bytes, void *context)
{
    looking *l = context;
    sigset_t pending;
    sigpending(&pending);
    for (size_t i = 0; i < STOP_SIGNALS; i++)
        if (sigismember(&l->stops, stop_signals[i]) && sigismember(&pending, stop_signals[i]))
            return slc_error(SLUICE_ERR_INTERRUPTED, "stopped while records were looked for");
    slc_training_indexing_show(&l->shown, done, bytes);
    return SLUICE_OK;
}

/* Reports mistakes in the data once, before ranks start. A rank that is alone looks at the first lines only, and finds
 * later mistakes when it opens the data. */
static sluice_status look_at_data(const slc_training_options *o)
{
    looking l = {0};
    const slc_training_data_watch watch = {.context = &l, .indexed = show_looking, .ranks = o->ranks};
    sluice_model_config model = SLUICE_INIT(sluice_model_config);
    sigset_t before;
    uint32_t length;
    slc_data_type type;
    sluice_status status = slc_training_model(o, &model, &length);
    if (status || model.image_size) return status;
    if (!o->ranks) return slc_training_data_look(o, &type);
    sigemptyset(&l.stops);
    for (size_t i = 0; i < STOP_SIGNALS; i++)
        if (!slc_signal_is_ignored(stop_signals[i])) sigaddset(&l.stops, stop_signals[i]);
    pthread_sigmask(SIG_BLOCK, &l.stops, &before);
    status = slc_training_data_check(o, &model, length, &watch);
    pthread_sigmask(SIG_SETMASK, &before, NULL); /* a signal that came ends the process here */
    return status;
}

static int run_train(int argc, char **argv)
{
    const uint64_t begun_ns = slc_clock_ns();
    slc_training_options options;
    slc_training_deadline deadline;
    const slc_command_line line = {
        .shared = slc_training_command_line(NULL),
        .doc =
            "Trains a bundled model on real data, on this rank or on every rank of a launcher's job.\v"
            "Examples:\n"
            "  sluice train --data book.txt\n"
            "  sluice train -n 2 --size mini --budget 60% --steps 200\n"
            "  sluice train --weights gpt2/ --data book.txt --precision bf16 --save-weights tuned/\n"
            "  sluice train --steps 200 --save run/ --save-every 50\n"
            "  sluice train --steps 9000 --go-on run/ --save-every 500 --stop-after 50min\n"
            "  sluice run -n 4 -- sluice train --data book.txt --batch 8 --micro-batches 2\n\n"
            "Ctrl-C stops all ranks after the step and writes what there is, with --save a checkpoint too (exit code "
            "130); a second one gives up the step. A run that leaves before its time is over (--stop-after) has exit "
            "code "
            "75.\n"
            "More: docs/models.md",
    };
    slc_command_line_parse(&line, argc, argv, &options);
    if (slc_training_go_on(&options) || slc_training_resume_model(&options) || slc_training_options_check(&options) ||
        slc_deadline_find(&options, begun_ns, time(NULL), &deadline) ||
        (!slc_launched() && (slc_training_paths_check(&options) || look_at_data(&options) ||
                             slc_training_log_check(&options) || slc_saved_weights_check(&options))))
        return slc_rank_refuse(command);
    if (options.ranks && !slc_launched()) {
        slc_training_doubt_ranks(&options);
        return start_ranks(options.ranks, argv + 1);
    }
    return train_here(&options, &deadline);
}

const sluice_command slc_command_train = {"train", "trains a bundled model on real data", run_train};
