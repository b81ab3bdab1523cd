/* Opens the folder of a sweep. A folder with results is continued if everything agrees that the sweep does not take as
 * a list. tests/command/measure/bench_test.sh covers this file. */
#include "bench/sweep/opening.h"

#include "bench/cli/environment.h"
#include "bench/cli/outcome.h"
#include "bench/sweep/figures/figures.h"
#include "bench/sweep/folder/agreement.h"
#include "lib/base/file/make_folder.h"
#include "lib/base/status.h"

#include <string.h>
#include <unistd.h>

enum { NAMES_MAX = 100 };

/* ---- Files ---- */

sluice_status slc_bench_save(const slc_bench_results *results, const slc_bench_options *options)
{
    char path[SLC_FOLDER_BYTES];
    slc_outcome outcome = {0};
    sluice_status status = slc_folder_path(options->output, "results.json", path);
    slc_outcome_add(&outcome, status ? status : slc_bench_results_write_json(results, path));
    status = slc_folder_path(options->output, "results.csv", path);
    slc_outcome_add(&outcome, status ? status : slc_bench_results_write_csv(results, path));
    return slc_outcome_status(&outcome);
}

sluice_status slc_bench_reopen(const slc_bench_options *options, slc_bench_results *results)
{
    char path[SLC_FOLDER_BYTES];
    *results = (slc_bench_results){0};
    sluice_status status = slc_folder_path(options->output, "results.json", path);
    return status ? status : slc_bench_results_read(path, results);
}

/* ---- Budgets ---- */

slc_bench_ends slc_bench_results_ends(const slc_bench_results *results)
{
    const json_t *ends = results->budget_ends;
    return (slc_bench_ends){(uint64_t)json_integer_value(json_object_get(ends, "least_bytes")),
                            (uint64_t)json_integer_value(json_object_get(ends, "all_sdp_bytes"))};
}

sluice_status slc_bench_results_set_ends(slc_bench_results *results, const slc_bench_ends *ends)
{
    json_decref(results->budget_ends);
    results->budget_ends =
        json_pack("{s:I, s:I}", "least_bytes", (json_int_t)ends->least, "all_sdp_bytes", (json_int_t)ends->all_sdp);
    return results->budget_ends ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "budgets");
}

/* ---- Opening ---- */

static bool is_empty(const slc_bench_results *results)
{
    return !json_array_size(results->runs) && !json_array_size(results->misfits) && !json_array_size(results->failures);
}

static bool has_table_only(const slc_bench_options *options)
{
    char json[SLC_FOLDER_BYTES], csv[SLC_FOLDER_BYTES];
    return !slc_folder_path(options->output, "results.json", json) &&
           !slc_folder_path(options->output, "results.csv", csv) && access(json, F_OK) && !access(csv, F_OK);
}

/* Reads what the folder has, and refuses it if this sweep cannot continue it. */
static sluice_status read_there(const slc_bench_options *options, const json_t *settings, slc_bench_results *results)
{
    const char *folder = options->output;
    if (has_table_only(options))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s has results.csv without results.json, so that nobody knows what it is of: name another "
                         "folder with --output, or replace it with --overwrite",
                         folder);
    sluice_status status = slc_bench_reopen(options, results);
    if (status) return status;
    if (is_empty(results)) {
        slc_bench_results_free(results);
        return slc_bench_results_init(results);
    }
    json_t *machine = slc_machine_json();
    status = slc_agreement_check_settings(folder, results->settings, settings);
    if (!status) status = slc_agreement_check_machine(folder, results->environment, machine);
    json_decref(machine);
    return status;
}

/* "gpt2-mini-2-ranks-strategy-budget": what is swept are the lists of several values. */
static void name_sweep(const slc_bench_options *o, int ranks, char *name, size_t bytes)
{
    const struct {
        const char *option;
        uint64_t count;
    } lists[] = {{"strategy", o->strategies.count},  {"schedule", o->schedules.count},
                 {"budget", o->budgets.count},       {"throttle", o->throttles.count},
                 {"optimizer", o->optimizers.count}, {"tied", o->tied.count},
                 {"batch", o->batches.count},        {"precision", o->precisions.count},
                 {"recompute", o->recomputes.count}, {"ranks", o->rank_counts.count}};
    int used =
        snprintf(name, bytes, "%s-%s-%d-rank%s", o->training.model, o->training.size, ranks, ranks > 1 ? "s" : "");
    for (size_t i = 0; i < sizeof lists / sizeof *lists && !o->tradeoff; i++)
        if (lists[i].count > 1 && used < (int)bytes)
            used += snprintf(name + used, bytes - (size_t)used, "-%s", lists[i].option);
    if (o->tradeoff && used < (int)bytes) snprintf(name + used, bytes - (size_t)used, "-tradeoff");
    for (char *at = name; *at; at++)
        if (*at == '/') *at = '_';
}

sluice_status slc_bench_choose_folder(slc_bench_options *o, int ranks, const json_t *settings,
                                      sluice_status (*suits)(const slc_bench_options *options, const json_t *settings))
{
    char name[256];
    sluice_status status = SLUICE_ERR_ARGUMENT;
    name_sweep(o, ranks, name, sizeof name);
    o->output = o->chosen;
    for (unsigned number = 1; status == SLUICE_ERR_ARGUMENT && number <= NAMES_MAX; number++) {
        status = slc_folder_name(name, number, o->chosen);
        if (status || o->overwrite) return status;
        status = suits(o, settings);
    }
    return status;
}

static sluice_status suits(const slc_bench_options *options, const json_t *settings)
{
    slc_bench_results there = {0};
    sluice_status status = read_there(options, settings, &there);
    slc_bench_results_free(&there);
    return status;
}

sluice_status slc_bench_open(slc_bench_options *options, int ranks, bool retry, slc_bench_results *results)
{
    sluice_status status = slc_bench_results_init(results);
    json_t *settings = slc_agreement_settings(&options->training);
    if (!status && !settings) status = slc_error(SLUICE_ERR_MEMORY, "settings of the sweep");
    if (!status && !options->output) status = slc_bench_choose_folder(options, ranks, settings, suits);
    if (!status) status = slc_error_context(slc_make_folder(options->output), "--output");
    if (!status) status = slc_folder_lock(options->output);
    if (!status && !options->overwrite) {
        slc_bench_results_free(results);
        status = read_there(options, settings, results);
    }
    if (status) goto release;
    slc_folder_clean(options->output);
    slc_bench_results_drop_unfinished(results, retry);
    json_decref(results->settings);
    results->settings = json_incref(settings);
    status = slc_bench_save(results, options);

release:
    json_decref(settings);
    return status;
}
