/* A trade-off that is there whole is shown again, not run again; one that was interrupted is replaced.
 * tests/command/measure/bench_test.sh covers this file. */
#include "bench/sweep/tradeoff/tradeoff_opening.h"

#include "bench/cli/environment.h"
#include "bench/sweep/folder/agreement.h"
#include "bench/sweep/opening.h"
#include "lib/base/file/make_folder.h"
#include "lib/base/status.h"

#include <unistd.h>

static json_t *make_settings(const slc_bench_options *o, int ranks)
{
    json_t *settings = slc_agreement_settings(&o->training);
    json_t *own = json_pack("{s:s, s:s, s:s, s:I, s:I, s:s, s:i, s:s, s:s, s:s, s:f}", "budget", o->budgets.text[0],
                            "throttle", o->throttles.text[0], "tied", o->tied.text[0], "shares", (json_int_t)o->shares,
                            "repeat", (json_int_t)o->repeat, "profile", o->profile ? o->profile : "", "ranks", ranks,
                            "batch", o->batches.text[0], "precision", o->precisions.text[0], "recompute",
                            o->recomputes.text[0], "lr", o->learning_rates[0]);
    if (!settings || !own || json_object_update(settings, own)) {
        json_decref(settings);
        settings = NULL;
    }
    json_decref(own);
    return settings;
}

/* Reads the document that the folder has, if any, and refuses it if it is of another trade-off. */
static sluice_status read_there(const slc_bench_options *options, const json_t *settings, json_t **there)
{
    char path[SLC_FOLDER_BYTES];
    json_error_t error;
    *there = NULL;
    sluice_status status = slc_folder_path(options->output, "tradeoff.json", path);
    if (status || access(path, F_OK)) return status;
    *there = json_load_file(path, 0, &error);
    if (!*there) return slc_error(SLUICE_ERR_FORMAT, "%s: %s", path, error.text);
    json_t *machine = slc_machine_json();
    status = slc_agreement_check_settings(options->output, json_object_get(*there, "settings"), settings);
    if (!status) status = slc_agreement_check_machine(options->output, json_object_get(*there, "environment"), machine);
    json_decref(machine);
    return status;
}

static sluice_status suits(const slc_bench_options *options, const json_t *settings)
{
    json_t *there;
    sluice_status status = read_there(options, settings, &there);
    json_decref(there);
    return status;
}

sluice_status slc_tradeoff_open(slc_bench_options *options, int ranks, json_t **settings, json_t **finished)
{
    sluice_status status = SLUICE_OK;
    *finished = NULL;
    *settings = make_settings(options, ranks);
    if (!*settings) status = slc_error(SLUICE_ERR_MEMORY, "settings of the trade-off");
    if (!status && !options->output) status = slc_bench_choose_folder(options, ranks, *settings, suits);
    if (!status) status = slc_error_context(slc_make_folder(options->output), "--output");
    if (!status) status = slc_folder_lock(options->output);
    if (status || options->overwrite) return status;
    status = read_there(options, *settings, finished);
    if (!json_is_true(json_object_get(*finished, "finished"))) {
        json_decref(*finished);
        *finished = NULL;
    }
    return status;
}
