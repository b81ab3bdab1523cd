/* The loop over combinations. A combination that does not fit ends at commit, on every rank alike. After any other
 * failure nobody knows what the ranks still have in common: the part ends, and its launcher starts new ones.
 * tests/command/measure/bench_test.sh covers this file. */
#include "bench/sweep/runs.h"

#include "bench/sweep/case_log.h"
#include "bench/sweep/finished.h"
#include "bench/sweep/opening.h"
#include "bench/sweep/figures/table.h"
#include "bench/sweep/steady.h"
#include "bench/train/run.h"
#include "lib/base/clock.h"
#include "lib/base/file/path_error.h"
#include "lib/base/hash/sha256.h"
#include "lib/base/log.h"
#include "lib/base/status.h"

#include <malloc.h>
#include <sluice/plan.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES_MOST = 3 };

typedef struct {
    const slc_bench_sweep *sweep;
    const slc_bench_case *one;
    slc_bench_progress *progress;
    char plan_sha256[65]; /* of the plan that the run kept */
    slc_case_log log;     /* rank 0's */
} watched;

/* A run leaves this beside its figures. */
typedef struct {
    char plan_sha256[65], log[SLC_CASE_LOG_NAME]; /* log: its folder below that of the sweep; "": there is none */
} left_behind;

static sluice_status stepped(const slc_training_step *step, void *context)
{
    watched *w = context;
    if (!w->sweep->out) return SLUICE_OK;
    slc_case_log_step(&w->log, step);
    slc_bench_progress_step(w->progress, w->one, step);
    return SLUICE_OK;
}

/* Writes the SHA-256 of all that a plan has carried out (strategies, recomputation, order, and where buffers lie), so
 * that runs of equal plans are known: its JSON without what is for people, in one spelling. */
static sluice_status digest_plan(sluice_runtime *rt, char hex[65])
{
    char *plan = NULL, *profile = NULL, *text = NULL;
    slc_sha256 hash;
    sluice_status status = sluice_runtime_plan_json(rt, "a sweep", &plan, &profile);
    if (status) return status;
    json_t *all = json_loads(plan, 0, NULL);
    json_object_del(all, "forecast");
    json_object_del(all, "schedule");
    if (all) text = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
    slc_sha256_init(&hash);
    if (text) slc_sha256_add(&hash, text, strlen(text));
    slc_sha256_finish(&hash, hex);
    status = text ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "the digest of a plan");
    free(text);
    json_decref(all);
    free(profile);
    free(plan);
    return status;
}

static sluice_status note_plan(sluice_runtime *rt, void *context)
{
    watched *w = context;
    /* Stages have no one plan. */
    return w->sweep->out && !slc_training_stages(&w->one->training) ? digest_plan(rt, w->plan_sha256) : SLUICE_OK;
}

/* Writes the results so far. A file that cannot be written does not end hours of work; only the writing at the end must
 * succeed. */
static sluice_status keep_for_now(const slc_bench_sweep *sweep)
{
    sluice_status status = slc_path_was_good(slc_bench_save(sweep->results, sweep->options));
    if (status != SLUICE_ERR_IO) return status;
    slc_log(SLC_LOG_WARN, "%s; the sweep goes on and writes them again after the next run", sluice_last_error());
    return SLUICE_OK;
}

static sluice_status show_run(const slc_bench_sweep *sweep, const slc_bench_case *one, const slc_training_result *run,
                              const left_behind *left)
{
    slc_bench_results *results = sweep->results;
    if (!sweep->out || !run->step_count) return SLUICE_OK;
    sluice_status status = slc_bench_results_add(results, sweep->world, one, run, left->plan_sha256, left->log);
    if (status) return status;
    if (one->repeat == sweep->options->repeat)
        slc_bench_table_case(sweep->out, results->runs, json_array_size(results->runs) - 1);
    return keep_for_now(sweep);
}

static sluice_status keep_misfit(const slc_bench_sweep *sweep, const slc_bench_case *one)
{
    if (!sweep->out) return SLUICE_OK;
    sluice_status status = slc_bench_results_add_misfit(sweep->results, one, sluice_last_error());
    return status ? status : keep_for_now(sweep);
}

/* The row of a run that failed; the error stays this thread's last one. */
static sluice_status keep_failure(const slc_bench_sweep *sweep, const slc_bench_case *one, sluice_status why)
{
    slc_kept_error kept;
    if (!sweep->out) return why;
    slc_error_keep(&kept);
    sluice_status status = slc_bench_results_add_failure(sweep->results, one, kept.line);
    if (status) return status;
    slc_bench_table_failure(sweep->out, sweep->results);
    status = keep_for_now(sweep);
    return status ? status : slc_error_restore(&kept, why);
}

/* ---- What the launcher is told ---- */

static void begin_cell(const slc_bench_sweep *sweep, uint64_t number)
{
    const double limit_s = sweep->options->cell_timeout_s;
    if (!sweep->way) return;
    atomic_store(&sweep->way->next, number);
    atomic_store(&sweep->way->limit_at_ns, limit_s > 0 ? slc_clock_ns() + (uint64_t)(limit_s * 1e9) : 0);
    atomic_store(&sweep->way->running, true);
}

static void end_cell(const slc_bench_sweep *sweep, uint64_t number)
{
    if (!sweep->way) return;
    atomic_store(&sweep->way->limit_at_ns, 0);
    atomic_store(&sweep->way->running, false);
    atomic_store(&sweep->way->next, number + 1);
}

/* ---- The runs ---- */

static sluice_status train_case(const slc_bench_sweep *sweep, const slc_bench_case *one, slc_bench_progress *progress,
                                uint32_t attempt, slc_training_result *run, left_behind *left)
{
    watched context = {.sweep = sweep, .one = one, .progress = progress};
    const slc_training_watch watch = {
        .stepped = stepped, .finished = note_plan, .context = &context, .stops = sweep->stops};
    slc_training_options training = one->training;
    if (sweep->out) slc_case_log_begin(&context.log, sweep->options->output, one, attempt);
    sluice_status status = slc_training_run(sweep->world, &training, &watch, run);
    malloc_trim(0); /* so that the next run's resident set does not contain remains of this one */
    if (sweep->out) slc_bench_progress_clear(progress);
    memcpy(left->plan_sha256, context.plan_sha256, sizeof left->plan_sha256);
    memcpy(left->log, context.log.name, sizeof left->log);
    if (!sweep->out) return status;
    slc_kept_error kept;
    slc_error_keep(&kept);
    slc_case_log_end(&context.log);
    return slc_error_restore(&kept, status);
}

/* If the machine was busy, a run of the demo, which has no repetitions, is made again, at most twice, and the fastest
 * counts. Rank 0 decides. On a machine that is busy all the time, the demo makes at most half as many runs again as it
 * has. */
static sluice_status repeat_disturbed(const slc_bench_sweep *sweep, const slc_bench_case *one,
                                      slc_bench_progress *progress, slc_training_result *run, left_behind *left,
                                      bool *interrupted)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t tries = 1; !status && tries < TRIES_MOST; tries++) {
        bool again = slc_bench_is_disturbed(run->step_s, run->step_min_s) && progress->again * 2 < progress->total;
        slc_training_result other;
        left_behind beside;
        status = sluice_world_broadcast(sweep->world, &again, sizeof again, 0);
        if (status || !again) break;
        progress->again++;
        status = train_case(sweep, one, progress, tries, &other, &beside);
        const bool better = !status && !other.interrupted && other.step_s < run->step_s;
        slc_training_result worse = better ? *run : other;
        *interrupted = other.interrupted;
        if (better) *run = other;
        if (better) *left = beside;
        slc_training_result_free(&worse);
        if (*interrupted) break;
    }
    return status;
}

/* *fits becomes false if the planner found, on every rank alike, that the run does not fit. */
static sluice_status run_case(const slc_bench_sweep *sweep, const slc_bench_case *one, slc_bench_progress *progress,
                              bool *fits, bool *interrupted)
{
    slc_training_result run;
    left_behind left;
    sluice_status status = train_case(sweep, one, progress, 0, &run, &left);
    *fits = status != SLUICE_ERR_BUDGET;
    *interrupted = run.interrupted;
    if (!status && sweep->options->demo && !run.interrupted)
        status = repeat_disturbed(sweep, one, progress, &run, &left, interrupted);
    *interrupted = *interrupted || status == SLUICE_ERR_INTERRUPTED;
    if (!*fits)
        status = keep_misfit(sweep, one);
    else if (!status)
        status = show_run(sweep, one, &run, &left);
    else if (!*interrupted)
        status = keep_failure(sweep, one, status);
    slc_training_result_free(&run);
    return slc_error_context(status, "strategy %s, schedule %s, budget %s", one->strategy, one->schedule, one->budget);
}

/* Says between two rounds of repetitions how far the sweep is. */
static void show_round(const slc_bench_sweep *sweep, const slc_bench_progress *progress, uint64_t round)
{
    if (sweep->out && progress->made && round < sweep->options->repeat)
        slc_bench_progress_round(progress, round, sweep->options->repeat);
}

uint64_t slc_bench_sweep_first(const slc_bench_options *options)
{
    return options->done % slc_bench_case_count(options);
}

/* Rank 0 knows which runs there are already, and tells the others. open[i]: run number i is to be made. */
static sluice_status agree_on_open(const slc_bench_sweep *sweep, bool *open, uint64_t count)
{
    sluice_status status = SLUICE_OK;
    slc_bench_case one;
    for (uint64_t i = 0; !status && sweep->out && i < count; i++) {
        slc_cell_state state;
        slc_bench_case_at(sweep->options, 0, i, &one);
        status = slc_bench_cell_state(sweep->results, &one, &state);
        open[i] = !status && state == SLC_CELL_OPEN;
    }
    return status ? status : sluice_world_broadcast(sweep->world, open, count * sizeof *open, 0);
}

static void show_finished(const slc_bench_sweep *sweep, const slc_bench_case *one)
{
    if (sweep->out && one->repeat == sweep->options->repeat)
        slc_bench_table_cell(sweep->out, sweep->results->runs, one);
}

static sluice_status run_open(const slc_bench_sweep *sweep, bool *open, uint64_t count, bool *interrupted)
{
    const slc_bench_options *options = sweep->options;
    const uint64_t cells = count / options->repeat, first = slc_bench_sweep_first(options);
    const uint64_t before = options->done - first; /* runs of the throttles before */
    slc_bench_progress progress;
    slc_bench_case one;
    sluice_status status = SLUICE_OK;
    slc_bench_progress_begin(&progress, options->done, count, options->overall ? options->overall : count);
    for (uint64_t i = first; !status && !*interrupted && i < count; i++) {
        bool fits = true;
        slc_bench_case_at(options, 0, i, &one);
        if (open[i]) {
            begin_cell(sweep, before + i);
            status = run_case(sweep, &one, &progress, &fits, interrupted);
            progress.made++;
        } else {
            show_finished(sweep, &one);
        }
        for (uint64_t later = i; !fits && later < count; later += cells) open[later] = false;
        if (!*interrupted) end_cell(sweep, before + i);
        progress.done++;
        if ((i + 1) % cells == 0) show_round(sweep, &progress, (i + 1) / cells);
    }
    return status;
}

sluice_status slc_bench_sweep_run(const slc_bench_sweep *sweep, bool *interrupted)
{
    const slc_bench_options *options = sweep->options;
    const uint64_t count = slc_bench_case_count(options);
    bool *open = calloc(count, sizeof *open);
    *interrupted = false;
    if (!open) return slc_error(SLUICE_ERR_MEMORY, "%llu runs", (unsigned long long)count);
    sluice_status status = agree_on_open(sweep, open, count);
    if (!status) status = run_open(sweep, open, count, interrupted);
    if (sweep->out && !sweep->way) slc_bench_table_rest(sweep->out, sweep->results, options, 0);
    free(open);
    return status;
}
