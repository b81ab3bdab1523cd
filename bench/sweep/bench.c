/* `sluice bench`: the sweep over throttles. A throttle belongs to a world, so each throttle gets its own ranks: the
 * command starts itself again for each, lets rank 0 print the table and leave its results in a file, and joins the
 * files. Under a launcher it is itself one of the ranks. */
#include "bench/sweep/budgets.h"
#include "bench/sweep/losses.h"
#include "bench/sweep/options.h"
#include "bench/sweep/picture.h"
#include "bench/sweep/runs.h"
#include "bench/sweep/table.h"
#include "bench/sweep/tradeoff.h"
#include "bench/cli/command.h"
#include "bench/cli/outcome.h"
#include "bench/cli/result_file.h"
#include "bench/cli/rank_report.h"
#include "bench/launch/self_launch.h"
#include "bench/launch/stop_signals.h"
#include "bench/train/options/paths_check.h"
#include "lib/base/file/draft.h"
#include "lib/base/status.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

static volatile sig_atomic_t stops;
static const char command[] = "sluice bench";

static void count_stop(int signal)
{
    (void)signal;
    stops++;
}

/* Used only where nothing is computed: see bench/launch/stop_signals.h. */
static void handle_signals(void)
{
    struct sigaction action = {.sa_handler = count_stop};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* results are written to files even where nobody reads the table */
}

/* ---- Output ---- */

static FILE *table_stream(const slc_bench_options *options)
{
    return slc_is_standard_output(options->training.json) || slc_is_standard_output(options->training.csv) ? stderr
                                                                                                           : stdout;
}

static sluice_status in_folder(const slc_bench_options *options, const char *name, char *path)
{
    if (snprintf(path, PATH_BYTES, "%s/%s", options->output, name) < PATH_BYTES) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "--output: the name of the folder is too long");
}

/* Saves the results so far, so that measured runs are on the disk whatever happens to later ones. */
static sluice_status save_results(const slc_bench_results *results, const slc_bench_options *options)
{
    char path[PATH_BYTES];
    if (options->part) return slc_bench_results_write_json(results, options->part);
    slc_outcome outcome = {0};
    sluice_status status = in_folder(options, "results.json", path);
    slc_outcome_add(&outcome, status ? status : slc_bench_results_write_json(results, path));
    status = in_folder(options, "results.csv", path);
    slc_outcome_add(&outcome, status ? status : slc_bench_results_write_csv(results, path));
    return slc_outcome_status(&outcome);
}

/* Finds out before the first run, not after it, that the folder belongs to somebody else. */
static sluice_status check_writable(const slc_bench_options *options)
{
    char path[PATH_BYTES];
    slc_result_file file;
    sluice_status status = in_folder(options, "results.json", path);
    if (!status) status = slc_result_file_open(path, &file);
    if (!status) slc_result_file_abandon(&file);
    return status;
}

/* Does everything that follows the last run of the whole sweep. Returns the exit code. */
static int conclude(const slc_bench_results *results, const slc_bench_options *options)
{
    FILE *out = table_stream(options);
    slc_outcome outcome = {0};
    slc_outcome_add(&outcome, save_results(results, options));
    slc_outcome_add(&outcome, slc_bench_results_write_json(results, options->training.json));
    slc_outcome_add(&outcome, slc_bench_results_write_csv(results, options->training.csv));
    bool sound = slc_bench_table_summary(out, results);
    if (!outcome.status) fprintf(out, "results: %s/results.csv, results.json\n", options->output);
    slc_outcome_add(&outcome, slc_bench_picture_draw(results, options->output, out));
    slc_outcome_add(&outcome, slc_bench_losses_draw(results, options->output, out));
    if (options->demo && !outcome.status) slc_bench_table_demo(out, results, options);
    if (slc_outcome_status(&outcome)) {
        slc_fail(command);
        return EXIT_FAILED;
    }
    return sound ? 0 : EXIT_FAILED;
}

/* ---- As a rank ---- */

/* Rank 0 concludes, or leaves the results for the process that started this part of the sweep. The error line of
 * `status`, with which the runs ended, is kept. */
static int conclude_or_hand_over(const slc_bench_results *results, const slc_bench_options *options,
                                 sluice_status status)
{
    char line[2048];
    int code = 0;
    snprintf(line, sizeof line, "%s", sluice_last_error());
    if (!options->part)
        code = conclude(results, options);
    else if (save_results(results, options)) {
        slc_fail(command);
        code = EXIT_FAILED;
    }
    if (status) slc_error(status, "%s", line);
    return code;
}

static sluice_status find_budgets(sluice_world *world, slc_bench_options *options, slc_bench_results *results)
{
    char *list;
    sluice_status status = slc_bench_budgets_find(world, options, &stops, &list);
    if (list) results->budgets = json_string(list);
    free(list);
    return status;
}

static sluice_status sweep_in(sluice_world *world, slc_bench_options *options, slc_bench_results *results,
                              bool *interrupted)
{
    sluice_model_config model = SLUICE_INIT(sluice_model_config);
    uint32_t length = 0;
    bool speaks = sluice_world_rank(world) == 0;
    slc_bench_sweep sweep = {
        .world = world, .options = options, .stops = &stops, .results = results, .keep = save_results};
    sluice_status status = slc_training_model(&options->training, &model, &length);
    if (!status && speaks && !options->part) status = slc_training_paths_check(&options->training);
    if (!status && speaks && !options->part) status = slc_bench_make_folder(options->output);
    if (!status && speaks && !options->part) status = check_writable(options);
    if (!status) status = find_budgets(world, options, results);
    *interrupted = status == SLUICE_ERR_INTERRUPTED;
    if (status) return status;
    if (speaks) {
        sweep.out = table_stream(options);
        slc_bench_table_begin(sweep.out, world, options, options->throttles.text[0],
                              sluice_model_tokens(&model, length));
    }
    return slc_bench_sweep_run(&sweep, interrupted);
}

/* Errors: ARGUMENT if this world cannot serve all throttles. */
static sluice_status configure_world(const slc_bench_options *options, sluice_world_config *config)
{
    slc_bench_case first;
    if (options->throttles.count > 1)
        return slc_error(SLUICE_ERR_ARGUMENT, "--throttle: a world has one throttle; give one a launch, or start the "
                                              "ranks with `sluice bench -n N`");
    slc_bench_case_at(options, 0, 0, &first);
    return slc_training_world(&first.training, config);
}

static int run_as_rank(slc_bench_options *options)
{
    sluice_world_config config;
    sluice_world *world = NULL;
    slc_bench_results results;
    bool interrupted = false;
    int code = 0;
    if (slc_stop_signals_take() || configure_world(options, &config)) return slc_rank_refuse(command);
    sluice_status status = slc_bench_results_init(&results);
    if (!status) status = sluice_world_create(&config, &world);
    slc_stop_signals_count(&stops);
    if (!status) status = sweep_in(world, options, &results, &interrupted);
    if (world && sluice_world_rank(world) == 0 && (options->part || json_array_size(results.runs)))
        code = conclude_or_hand_over(&results, options, status);
    if (!status) status = sluice_world_barrier(world); /* no rank leaves while another still works */
    if (status)
        code = slc_rank_fail(command, world);
    else
        sluice_world_destroy(world);
    slc_bench_results_free(&results);
    return interrupted ? EXIT_INTERRUPTED : code;
}

static int run_tradeoff_as_rank(const slc_bench_options *options)
{
    sluice_world_config config;
    sluice_world *world = NULL;
    if (slc_stop_signals_take() || configure_world(options, &config)) return slc_rank_refuse(command);
    sluice_status status = sluice_world_create(&config, &world);
    slc_stop_signals_count(&stops);
    if (!status) status = slc_bench_tradeoff_measure(world, options, &stops, table_stream(options));
    if (!status) status = sluice_world_barrier(world); /* no rank leaves while another still works */
    if (status) return slc_rank_fail(command, world);
    sluice_world_destroy(world);
    return 0;
}

/* ---- As the command that starts the ranks ---- */

static sluice_status run_part(const slc_bench_options *options, uint64_t throttle, char **argv,
                              slc_bench_results *results, int *code)
{
    char beside[PATH_BYTES], done[32], overall[32];
    uint64_t count = slc_bench_case_count(options);
    slc_draft part = SLC_DRAFT_NONE; /* the ranks' results of this part, read and removed when they have ended */
    sluice_status status = in_folder(options, "part.json", beside);
    if (!status) status = slc_draft_open(beside, &part);
    if (status) return status;
    snprintf(done, sizeof done, "%" PRIu64, throttle * count);
    snprintf(overall, sizeof overall, "%" PRIu64, options->throttles.count * count);
    /* The budgets that the first part found hold for all parts. */
    const char *budgets = json_string_value(results->budgets);
    char *const more[] = {(char *)"--throttle",
                          options->throttles.text[throttle],
                          (char *)"--part",
                          part.path,
                          (char *)"--done",
                          done,
                          (char *)"--overall",
                          overall,
                          (char *)(budgets ? "--budget" : NULL),
                          (char *)budgets,
                          NULL};
    int ranks = options->training.ranks ? (int)options->training.ranks : 1;
    status = slc_launch_self(ranks, "bench", argv + 1, more, code);
    if (!status) status = slc_bench_results_append(results, part.path);
    slc_draft_drop(&part);
    return status;
}

static int run_all(const slc_bench_options *options, char **argv)
{
    slc_bench_results results;
    int code = 0;
    sluice_status status = slc_bench_results_init(&results);
    if (!status) status = slc_bench_make_folder(options->output);
    if (!status) status = check_writable(options);
    handle_signals();
    for (uint64_t t = 0; !status && !code && !stops && t < options->throttles.count; t++)
        status = run_part(options, t, argv, &results, &code);
    if (stops && !code) code = EXIT_INTERRUPTED;
    if (status)
        code = slc_fail(command);
    else if (!code || json_array_size(results.runs)) {
        int concluded = conclude(&results, options);
        if (!code) code = concluded;
    }
    slc_bench_results_free(&results);
    return code;
}

static int run_tradeoff(const slc_bench_options *options, char **argv)
{
    int code = EXIT_FAILED;
    sluice_status status = SLUICE_OK;
    if (options->profile) {
        status = slc_bench_tradeoff_predict(options, table_stream(options));
        code = 0;
    } else if (slc_launched()) {
        return run_tradeoff_as_rank(options);
    } else {
        int ranks = options->training.ranks ? (int)options->training.ranks : 1;
        handle_signals();
        status = slc_launch_self(ranks, "bench", argv + 1, NULL, &code);
    }
    return status ? slc_fail(command) : code;
}

static int run_bench(int argc, char **argv)
{
    slc_bench_options options;
    int code;
    if (slc_bench_options_parse(argc, argv, &options)) {
        code = slc_rank_refuse(command);
    } else if (!slc_launched() && slc_training_paths_check(&options.training)) {
        code = slc_fail(command);
    } else if (options.tradeoff) {
        code = run_tradeoff(&options, argv);
    } else {
        code = slc_launched() ? run_as_rank(&options) : run_all(&options, argv);
    }
    slc_bench_options_free(&options);
    return code;
}

const sluice_command slc_command_bench = {"bench", "trains for each budget and strategy: table and picture", run_bench};
