/* `sluice train`: trains a bundled model and shows how it goes. Rank 0 speaks and writes; the other ranks
 * train. With -n N and no launcher it starts itself again, N times, as `sluice run` would.
 * tests/command/train_test.sh covers this file. */
#include "bench/cli/command.h"
#include "bench/cli/error_line.h"
#include "bench/cli/output/result_file.h"
#include "bench/cli/rank_report.h"
#include "bench/launch/self_launch.h"
#include "bench/plan/words/run_plan.h"
#include "bench/launch/stop_signals.h"
#include "bench/train/checkpoint/checkpoint.h"
#include "bench/train/checkpoint/go_on.h"
#include "bench/train/cores.h"
#include "bench/train/deadline.h"
#include "bench/train/options/onebit_options.h"
#include "bench/train/options/options.h"
#include "bench/train/options/paths_check.h"
#include "bench/train/report.h"
#include "bench/train/run.h"
#include "bench/train/start.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/base/text/shell_word.h"

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
    slc_result_file json, csv;
    slc_outcome outcome; /* of all files */
} output;

static sluice_status open_output(output *out, const slc_training_options *options)
{
    if (!out->speaks) return SLUICE_OK;
    sluice_status status = slc_result_file_probe(options->trace);
    if (!status) status = slc_result_file_probe(options->plan_out);
    if (!status) status = slc_result_file_probe(options->profile_out);
    if (!status) status = slc_result_file_open(options->json, &out->json);
    if (!status) status = slc_result_file_open(options->csv, &out->csv);
    if (!status && out->csv.file)
        fputs("step,loss,learning_rate,step_s,exposed_s,gradient_norm,skipped,peak_bytes,bytes_sent,evaluation_loss,"
              "compressed,evaluation_accuracy\n",
              out->csv.file);
    return status;
}

/* A number without a value leaves its column empty. */
static void put_optional(FILE *file, double value)
{
    if (isfinite(value)) fprintf(file, "%.9g", value);
}

/* A full disk does not end the run: its end reports the error. */
static void write_step(slc_result_file *csv, const slc_training_step *step)
{
    FILE *file = csv->file;
    if (!file || !slc_result_file_check(csv)) return;
    errno = 0;
    fprintf(file, "%" PRIu64 ",", step->step);
    put_optional(file, step->loss);
    fprintf(file, ",%.15g,%.6f,%.6f,", step->learning_rate, step->step_s, step->exposed_s);
    put_optional(file, step->gradient_norm);
    fprintf(file, ",%d,%" PRIu64 ",%" PRIu64 ",", step->skipped, step->peak_bytes, step->bytes_sent);
    put_optional(file, step->evaluation_loss);
    fprintf(file, ",%d,", step->compressed);
    put_optional(file, step->accuracy);
    fputc('\n', file);
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

/* Text for people goes to standard error where standard output is a file of results. */
static FILE *for_people(const slc_training_options *o)
{
    const char *const files[] = {o->trace, o->json, o->csv, o->plan_out, o->profile_out};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (slc_is_standard_output(files[i])) return stderr;
    return stdout;
}

/* A reader that leaves before the summary stops no run, for results are files too. SIGPIPE, which stops it, is for the
 * progress line. */
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

static sluice_status begun(sluice_runtime *rt, const slc_training_result *so_far, const slc_training_data *data,
                           void *context)
{
    output *out = context;
    slc_cores_use cores;
    sluice_status status = slc_cores_look(sluice_runtime_world(rt), out->options->threads, &cores);
    if (status || !out->speaks) return status;
    const sigset_t before = hold_sigpipe();
    slc_training_print_start(for_people(out->options), out->options, so_far, data, &cores, rt);
    release_sigpipe(&before);
    out->data = slc_training_data_json(out->options, data);
    return out->data ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "the data as JSON");
}

/* A full disk does not end the run, as with other results. */
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
    sluice_status status = slc_run_plan_show(rt, name, out->options->plan, for_people(out->options), &plan);
    release_sigpipe(&before);
    if (status) return status;
    keep_text(out, out->options->plan_out, plan.plan);
    keep_text(out, out->options->profile_out, plan.profile);
    json_decref(out->plan);
    out->plan = json_incref(plan.json);
    slc_run_plan_free(&plan);
    return SLUICE_OK;
}

static void print_phase(FILE *file, const char *name, const slc_training_phase *phase)
{
    if (!phase->steps) return;
    fprintf(file, "  %-22s steps %" PRIu64 "-%" PRIu64 ": ", name, phase->first, phase->first + phase->steps - 1);
    if (isnan(phase->step_s))
        fputs("too few for a median, ", file);
    else
        fprintf(file, "%.1f ms, exposed %.1f ms, ", phase->step_s * 1e3, phase->exposed_s * 1e3);
    fprintf(file, "%.2f MB sent\n", phase->bytes_sent / 1e6);
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

/* The rank that computes longest may have other medians than the line above, which is rank 0's. */
static void print_prediction(FILE *file, const sluice_prediction *p)
{
    const double predicted_ms = 1e3 * p->predicted.step_s, measured_ms = 1e3 * p->measured.step_s;
    if (!(predicted_ms > 0) || !(measured_ms > 0)) return;
    fprintf(file,
            "predicted %.1f ms, measured %.1f ms (%+.1f %%): compute %+.1f ms, transfers %+.1f ms, waiting %+.1f ms, "
            "outside of slots %+.1f ms",
            predicted_ms, measured_ms, 100 * (measured_ms / predicted_ms - 1), 1e3 * p->miss.compute_s,
            1e3 * p->miss.transfer_s, 1e3 * p->miss.waiting_s, 1e3 * p->miss.outside_s);
    if (p->anew_s > 0) fprintf(file, "; from these steps' own times it would be %.1f ms", 1e3 * p->anew_s);
    fputc('\n', file);
}

/* After Ctrl-C, or when time is over. A save that failed has its own line at the end. */
static void print_stop(FILE *file, const slc_training_options *o, const slc_training_result *r, const char *why)
{
    fprintf(file, "stopped at step %" PRIu64 " of %" PRIu64, r->steps_before + r->step_count, o->steps);
    if (r->out_of_time) fprintf(file, " to be in time (%s)", why);
    if (r->saved && o->go_on)
        fprintf(file, ", saved to %s: the same command goes on\n", o->save);
    else if (r->saved)
        fprintf(file, ", saved to %s: go on with --resume %s\n", o->save, slc_shell_word_of(o->save).text);
    else
        fprintf(file, ", not saved%s\n", o->save ? "" : ": there was no --save");
}

/* Prints the first and the last loss of steps that were not skipped; those of skipped ones need not be finite. */
static void print_losses(FILE *file, const slc_training_result *r)
{
    uint64_t first = 0, last = r->step_count;
    while (first < r->step_count && !isfinite(r->steps[first].loss)) first++;
    while (last > 0 && !isfinite(r->steps[last - 1].loss)) last--;
    if (first < last)
        fprintf(file, ", loss %.4f -> %.4f", r->steps[first].loss, r->steps[last - 1].loss);
    else
        fputs(", no loss that is finite", file);
    if (r->skipped) fprintf(file, ", %" PRIu64 " of the steps skipped, because a gradient was not finite", r->skipped);
}

static void print_summary(FILE *file, const slc_training_options *o, const slc_training_result *r, const char *why)
{
    if (r->step_count == 0) {
        fprintf(file, "nothing to train: %s is at step %" PRIu64 " of %" PRIu64 "\n", o->resume, r->steps_before,
                o->steps);
        return;
    }
    if (r->interrupted) print_stop(file, o, r, why);
    fprintf(file, "trained %s %s", o->model, o->size);
    if (r->memory.pinned_bytes) fprintf(file, " on %s", r->device);
    fprintf(file, ", %" PRIu64 " parameters: %" PRIu64 " steps", r->parameters, r->step_count);
    print_losses(file, r);
    if (isfinite(r->evaluation_loss)) fprintf(file, ", held-out %.4f", r->evaluation_loss);
    if (!isnan(r->accuracy)) fprintf(file, ", accuracy %.2f %%", 100 * r->accuracy);
    const bool images = r->images_per_step > 0;
    if (isnan(r->step_s))
        fprintf(file,
                "\nstep - (its median takes %" PRIu64 " steps: two under the plan do not count, and three must)\n",
                r->steps_wanted);
    else
        fprintf(file, "\nstep %.1f ms (exposed %.1f ms), %.0f %s/s\n", r->step_s * 1e3, r->exposed_s * 1e3,
                images ? r->images_per_s : r->tokens_per_s, images ? "images" : "tokens");
    print_prediction(file, &r->prediction);
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
    if (r->saved && !r->interrupted)
        fprintf(file, "saved to %s: go on with --%s %s --steps N, N more than %" PRIu64 "\n", o->save,
                o->go_on ? "go-on" : "resume", slc_shell_word_of(o->save).text, r->steps_before + r->step_count);
    fprintf(file, "weights sha256 %s\n", r->weights_sha256);
}

static sluice_status write_results(output *out, const sluice_world *world, const slc_training_options *options,
                                   const slc_training_result *result)
{
    print_summary(for_people(options), options, result, out->deadline->why);
    if (!out->json.file) return SLUICE_OK;
    json_t *runs = json_array(), *run = slc_training_run_json(world, options, result);
    json_object_set(run, "data", out->data);
    json_object_set(run, "plan", out->plan);
    json_array_append_new(runs, run);
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

/* A budget that does for ranks of one host may be too small on several, and nobody should have to queue for machines to
 * learn that. Every rank says the same words where hosts have the same number of ranks. */
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
static sluice_status train_in(sluice_world *world, const slc_training_options *options, slc_training_deadline *deadline,
                              int *ended, slc_outcome *files)
{
    sluice_model_config model = SLUICE_INIT(sluice_model_config);
    uint32_t length = 0;
    slc_training_result result = {0};
    output out = {.speaks = sluice_world_rank(world) == 0, .options = options, .deadline = deadline};
    const slc_training_watch watch = {
        .stepped = stepped, .begun = begun, .planned = planned, .context = &out, .stops = &stops, .deadline = deadline};
    if (out.speaks && deadline->unreadable)
        slc_log(SLC_LOG_WARN, "SLURM_JOB_END_TIME=%s is no time in seconds: the run does not know when its job ends",
                deadline->unreadable);
    sluice_status status = open_output(&out, options);
    if (!status) status = slc_training_model(options, &model, &length);
    uint64_t sequences = (uint64_t)sluice_world_size(world) * options->micro_batches * options->batch;
    const bool images = !length;
    slc_training_progress_init(&out.progress, options->steps,
                               sequences * (status || images ? 1 : sluice_model_tokens(&model, length)), images);
    slc_stop_signals_count(&stops);
    if (!status) status = name_estimate(slc_training_run(world, options, &watch, &result), world);
    slc_training_progress_end(&out.progress);
    if (result.interrupted || status == SLUICE_ERR_INTERRUPTED)
        *ended = result.out_of_time ? EXIT_OUT_OF_TIME : EXIT_INTERRUPTED;
    if (!status && out.speaks) status = write_results(&out, world, options, &result);
    char why[2048];
    snprintf(why, sizeof why, "%s", sluice_last_error());
    slc_outcome_add(&out.outcome, slc_outcome_status(&result.outputs));
    json_decref(out.data);
    json_decref(out.plan);
    close_output(&out, status != SLUICE_OK);
    if (out.speaks) *files = out.outcome;
    slc_training_result_free(&result);
    return status ? slc_error(status, "%s", why) : SLUICE_OK;
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
        (!slc_launched() && slc_training_paths_check(&options)))
        return slc_rank_refuse(command);
    if (options.ranks && !slc_launched()) return start_ranks(options.ranks, argv + 1);
    return train_here(&options, &deadline);
}

const sluice_command slc_command_train = {"train", "trains a bundled model on real data", run_train};
