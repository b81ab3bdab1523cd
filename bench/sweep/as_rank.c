/* Rank 0 keeps the results in the folder after every run. A rank that a `sluice bench` has started runs a part of the
 * sweep, one throttle from one cell on, and its parent concludes; under another launcher the ranks are the whole sweep.
 * tests/command/measure/bench_test.sh covers this file. */
#include "bench/sweep/as_rank.h"

#include "bench/cli/command.h"
#include "bench/cli/rank_report.h"
#include "bench/launch/stop_signals.h"
#include "bench/sweep/conclude.h"
#include "bench/sweep/opening.h"
#include "bench/sweep/runs.h"
#include "bench/sweep/figures/table.h"
#include "bench/sweep/tradeoff/tradeoff.h"
#include "bench/train/options/paths_check.h"
#include "lib/base/status.h"

static volatile sig_atomic_t stops;
static const char command[] = "sluice bench";

/* Rank 0 concludes, or leaves that to the process that started this part of the sweep. The error line of `status`, with
 * which the runs ended, is kept. */
static int conclude_or_leave(const slc_bench_results *results, slc_bench_options *options, sluice_status status)
{
    slc_kept_error kept;
    int code = 0;
    slc_error_keep(&kept);
    if (options->part < 0)
        code = slc_bench_conclude(results, options);
    else if (slc_bench_save(results, options)) {
        slc_fail(command);
        code = EXIT_FAILED;
    }
    slc_error_restore(&kept, status);
    return code;
}

/* Opens the folder on rank 0, which learns there what results it has. */
static sluice_status open_results(const sluice_world *world, slc_bench_options *options, slc_bench_results *results)
{
    if (options->part >= 0) return slc_bench_reopen(options, results);
    sluice_status status = slc_training_paths_check(&options->training);
    if (!status) status = slc_bench_open(options, sluice_world_size(world), false, results);
    if (!status) slc_bench_table_continued(slc_bench_people(options), options->output, results);
    return status;
}

static sluice_status find_budgets(sluice_world *world, slc_bench_options *options, slc_bench_results *results)
{
    slc_bench_ends ends = slc_bench_results_ends(results), known = ends;
    sluice_status status = slc_bench_budgets_find(world, options, &stops, &ends);
    if (status || ends.least == known.least || sluice_world_rank(world)) return status;
    status = slc_bench_results_set_ends(results, &ends);
    return status ? status : slc_bench_save(results, options);
}

static sluice_status sweep_in(sluice_world *world, slc_bench_options *options, slc_bench_results *results,
                              bool *interrupted, bool *opened)
{
    sluice_model_config model = SLUICE_INIT(sluice_model_config);
    uint32_t length = 0;
    bool speaks = sluice_world_rank(world) == 0;
    slc_bench_sweep sweep = {.world = world, .options = options, .stops = &stops, .results = results};
    sluice_status status = slc_training_model(&options->training, &model, &length);
    if (!status && speaks) status = open_results(world, options, results);
    *opened = !status && speaks;
    if (!status && options->part >= 0 && speaks) status = slc_under_way_attach(options->part, &sweep.way);
    if (!status) status = find_budgets(world, options, results);
    *interrupted = status == SLUICE_ERR_INTERRUPTED;
    if (!status && speaks) {
        sweep.out = slc_bench_people(options);
        if (!slc_bench_sweep_first(options))
            slc_bench_table_begin(sweep.out, world, options, options->throttles.text[0],
                                  sluice_model_tokens(&model, length));
    }
    if (!status) status = slc_bench_sweep_run(&sweep, interrupted);
    slc_under_way_detach(sweep.way);
    return status;
}

/* Sets the world's configuration. Errors: ARGUMENT if this world cannot serve all throttles. */
static sluice_status configure_world(const slc_bench_options *options, sluice_world_config *config)
{
    slc_bench_case first;
    if (options->rank_counts.count > 1)
        return slc_error(SLUICE_ERR_ARGUMENT, "--ranks: a world has one number of ranks; give one a launch, or let "
                                              "`sluice bench` start the ranks itself");
    if (options->throttles.count > 1)
        return slc_error(SLUICE_ERR_ARGUMENT, "--throttle: a world has one throttle; give one a launch, or start the "
                                              "ranks with `sluice bench -n N`");
    if (options->part < 0 && options->cell_timeout_s > 0)
        return slc_error(SLUICE_ERR_ARGUMENT, "--cell-timeout: only ranks that `sluice bench -n N` starts can be ended "
                                              "and started again");
    slc_bench_case_at(options, 0, 0, &first);
    return slc_training_world(&first.training, config);
}

int slc_bench_as_rank(slc_bench_options *options)
{
    sluice_world_config config;
    sluice_world *world = NULL;
    slc_bench_results results;
    bool interrupted = false, opened = false;
    int code = 0;
    if (slc_stop_signals_take() || configure_world(options, &config)) return slc_rank_refuse(command);
    sluice_status status = slc_bench_results_init(&results);
    if (!status) status = sluice_world_create(&config, &world);
    slc_stop_signals_count(&stops);
    if (!status) status = sweep_in(world, options, &results, &interrupted, &opened);
    if (opened) code = conclude_or_leave(&results, options, status);
    if (!status) status = sluice_world_barrier(world); /* no rank leaves while another still works */
    if (status)
        code = slc_rank_fail(command, world);
    else
        sluice_world_destroy(world);
    slc_bench_results_free(&results);
    return interrupted ? EXIT_INTERRUPTED : code;
}

int slc_bench_tradeoff_as_rank(slc_bench_options *options)
{
    sluice_world_config config;
    sluice_world *world = NULL;
    if (slc_stop_signals_take() || configure_world(options, &config)) return slc_rank_refuse(command);
    sluice_status status = sluice_world_create(&config, &world);
    slc_stop_signals_count(&stops);
    if (!status) status = slc_bench_tradeoff_measure(world, options, &stops, slc_bench_people(options));
    if (!status) status = sluice_world_barrier(world); /* no rank leaves while another still works */
    if (status) return slc_rank_fail(command, world);
    sluice_world_destroy(world);
    return 0;
}
