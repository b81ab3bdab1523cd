/* The loop over combinations. A combination that does not fit ends at commit, on every rank alike; any other failure
 * ends the sweep. */
#include "bench/sweep/runs.h"

#include "bench/sweep/table.h"
#include "bench/train/run.h"
#include "lib/base/file/path_error.h"
#include "lib/base/log.h"
#include "lib/base/status.h"

#include <malloc.h>
#include <stdlib.h>

typedef struct {
    const slc_bench_sweep *sweep;
    const slc_bench_case *one;
    slc_bench_progress *progress;
} watched;

static sluice_status stepped(const slc_training_step *step, void *context)
{
    const watched *w = context;
    if (w->sweep->out) slc_bench_progress_step(w->progress, w->one, step);
    return SLUICE_OK;
}

/* A file that cannot be written does not end hours of work; only the writing at the end must succeed. */
static sluice_status keep_for_now(const slc_bench_sweep *sweep)
{
    sluice_status status = slc_path_was_good(sweep->keep(sweep->results, sweep->options));
    if (status != SLUICE_ERR_IO) return status;
    slc_log(SLC_LOG_WARN, "%s; the sweep goes on and writes them again after the next run", sluice_last_error());
    return SLUICE_OK;
}

static sluice_status show_run(const slc_bench_sweep *sweep, const slc_bench_case *one, const slc_training_result *run)
{
    slc_bench_results *results = sweep->results;
    if (!sweep->out || !run->step_count) return SLUICE_OK;
    sluice_status status = slc_bench_results_add(results, sweep->world, one, run);
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

/* *fits: false where the planner found, on every rank alike, that it does not. */
static sluice_status run_case(const slc_bench_sweep *sweep, const slc_bench_case *one, slc_bench_progress *progress,
                              bool *fits, bool *interrupted)
{
    slc_training_result run;
    watched context = {sweep, one, progress};
    const slc_training_watch watch = {.stepped = stepped, .context = &context, .stops = sweep->stops};
    sluice_status status = slc_training_run(sweep->world, &one->training, &watch, &run);
    malloc_trim(0); /* so that the next run's resident set does not contain remains of this one */
    if (sweep->out) slc_bench_progress_clear(progress);
    *interrupted = run.interrupted || status == SLUICE_ERR_INTERRUPTED;
    *fits = status != SLUICE_ERR_BUDGET;
    if (!*fits)
        status = keep_misfit(sweep, one);
    else if (!status)
        status = show_run(sweep, one, &run);
    slc_training_result_free(&run);
    return slc_error_context(status, "strategy %s, schedule %s, budget %s", one->strategy, one->schedule, one->budget);
}

/* Says between two rounds of repetitions how far the sweep is. */
static void show_round(const slc_bench_sweep *sweep, const slc_bench_progress *progress, uint64_t round)
{
    if (sweep->out && round < sweep->options->repeat) slc_bench_progress_round(progress, round, sweep->options->repeat);
}

sluice_status slc_bench_sweep_run(const slc_bench_sweep *sweep, bool *interrupted)
{
    const slc_bench_options *options = sweep->options;
    uint64_t count = slc_bench_case_count(options), cases = count / options->repeat;
    slc_bench_progress progress;
    slc_bench_case one;
    bool *fits = malloc(cases * sizeof *fits); /* what does not fit is not tried again */
    sluice_status status = fits ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "%llu cases", (unsigned long long)cases);
    *interrupted = false;
    slc_bench_progress_begin(&progress, options->done, options->overall ? options->overall : count);
    for (uint64_t i = 0; !status && !*interrupted && i < count; i++) {
        slc_bench_case_at(options, sweep->throttle, i, &one);
        if (i < cases || fits[i % cases]) status = run_case(sweep, &one, &progress, &fits[i % cases], interrupted);
        progress.done++;
        if ((i + 1) % cases == 0) show_round(sweep, &progress, (i + 1) / cases);
    }
    if (sweep->out)
        slc_bench_table_rest(sweep->out, sweep->results, options->throttles.text[sweep->throttle], options->repeat);
    free(fits);
    return status;
}
