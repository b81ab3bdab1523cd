/* Results of a sweep: collects them, writes them and reads them back. tests/command/measure/bench_test.sh covers this
 * file. */
#include "bench/sweep/results.h"

#include "bench/cli/environment.h"
#include "bench/cli/error_line.h"
#include "bench/cli/output/provenance.h"
#include "bench/cli/output/result_file.h"
#include "bench/train/report.h"
#include "lib/base/numbers/median.h"
#include "lib/base/status.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *const slc_bench_cell_keys[] = {"throttle", "budget",   "strategy",    "schedule", "optimizer",   "tied",
                                           "world",    "settings", "environment", "source",   "recipe_file", NULL};

static sluice_status no_memory(void)
{
    return slc_error(SLUICE_ERR_MEMORY, "results of the sweep");
}

sluice_status slc_bench_results_init(slc_bench_results *out)
{
    *out = (slc_bench_results){.runs = json_array(), .misfits = json_array(), .failures = json_array()};
    return out->runs && out->misfits && out->failures ? SLUICE_OK : no_memory();
}

void slc_bench_results_free(slc_bench_results *results)
{
    json_decref(results->runs);
    json_decref(results->misfits);
    json_decref(results->failures);
    json_decref(results->environment);
    json_decref(results->settings);
    json_decref(results->budget_ends);
    *results = (slc_bench_results){0};
}

/* ---- Gathering ---- */

json_t *slc_bench_case_row(const slc_bench_case *one)
{
    json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I}", "model", one->training.model, "size",
                            one->training.size, "strategy", one->strategy, "schedule", one->schedule, "budget",
                            one->budget, "throttle", one->throttle, "optimizer", one->optimizer, "tied", one->tied,
                            "world", (json_int_t)one->ranks, "repeat", (json_int_t)one->repeat);
    if (row) json_object_set_new(row, "step_micro_batches", json_integer((json_int_t)one->step_micro_batches));
    if (row) json_object_set_new(row, "settings", slc_training_settings_json(&one->training));
    if (row && one->recipe) json_object_set_new(row, "recipe_file", json_string(one->recipe));
    if (row && *one->label) json_object_set_new(row, "label", json_string(one->label));
    return row;
}

static void set_date(json_t *row)
{
    char date[32];
    json_object_set_new(row, "date", json_string(slc_date_now(date)));
}

/* Appends a row, with the members that it lacks from the row of its case. Takes the row over. */
static sluice_status append_row(json_t *rows, json_t *row, const slc_bench_case *one)
{
    json_t *place = slc_bench_case_row(one);
    set_date(row);
    bool failed = !row || !place || json_object_update_missing(row, place) || json_array_append(rows, row);
    json_decref(place);
    json_decref(row);
    return failed ? no_memory() : SLUICE_OK;
}

sluice_status slc_bench_results_add(slc_bench_results *results, const sluice_world *world, const slc_bench_case *one,
                                    const slc_training_result *run, const char *plan_sha256, const char *log)
{
    json_t *row = slc_training_run_json(world, &one->training, run);
    if (row) json_object_set_new(row, "plan_sha256", json_string(plan_sha256));
    if (row && slc_training_stages(&one->training)) { /* stand where others have a strategy and its schedule */
        json_object_set_new(row, "strategy", json_string(one->strategy));
        json_object_set_new(row, "schedule", json_string(one->schedule));
    }
    if (row && *log) json_object_set_new(row, "log", json_string(log));
    sluice_status status = append_row(results->runs, row, one);
    if (!status && !results->environment) results->environment = slc_environment_json(world);
    return status;
}

/* Removes the rows of a list for which `unwanted` returns true. */
static void remove_rows(json_t *rows, bool (*unwanted)(const json_t *row, const void *what), const void *what)
{
    for (size_t i = json_array_size(rows); i-- > 0;)
        if (unwanted(json_array_get(rows, i), what)) json_array_remove(rows, i);
}

static bool is_interrupted(const json_t *row, const void *unused)
{
    (void)unused;
    return !slc_bench_complete(row);
}

static bool is_interrupted_of(const json_t *row, const void *cell)
{
    return !slc_bench_complete(row) && slc_bench_alike(row, cell, slc_bench_cell_keys) &&
           slc_bench_number(row, "repeat") == slc_bench_number(cell, "repeat");
}

void slc_bench_results_drop_unfinished(slc_bench_results *results, bool failures)
{
    remove_rows(results->runs, is_interrupted, NULL);
    if (failures) json_array_clear(results->failures);
}

sluice_status slc_bench_results_add_failure(slc_bench_results *results, const slc_bench_case *one, const char *why)
{
    json_t *line = json_string(why);
    json_t *row = json_pack("{s:o}", "why", line ? line : json_string("with an error line that is not UTF-8"));
    sluice_status status = append_row(results->failures, row, one);
    if (status) return status;
    const json_t *added = json_array_get(results->failures, json_array_size(results->failures) - 1);
    remove_rows(results->runs, is_interrupted_of, added);
    return SLUICE_OK;
}

/* Takes a number of bytes from the planner's line, after words that stand before it, so that the row says what people
 * read in the line. NULL: these words are not in the line. */
static json_t *bytes_after(const char *line, const char *words)
{
    const char *at = strstr(line, words);
    char *end;
    if (!at) return NULL;
    const unsigned long long bytes = strtoull(at + strlen(words), &end, 10);
    return end > at + strlen(words) && bytes ? json_integer((json_int_t)bytes) : NULL;
}

/* Adds the budget and the bytes needed, as the planner's line says them. If no strategy would make a difference, the
 * line begins with the budget and ends with what is needed. */
static void add_bytes(json_t *row, const char *line)
{
    json_t *needed = bytes_after(line, " needs "), *budget = bytes_after(line, "the budget is ");
    if (!needed) needed = bytes_after(line, "config.budget_bytes = ");
    if (!budget) budget = bytes_after(line, "");
    if (needed) json_object_set_new(row, "needed_bytes", needed);
    if (budget) json_object_set_new(row, "budget_bytes", budget);
}

sluice_status slc_bench_results_add_misfit(slc_bench_results *results, const slc_bench_case *one, const char *why)
{
    json_t *row = slc_bench_case_row(one);
    char words[2048];
    slc_error_in_options(why, words, sizeof words);
    if (!row || json_object_del(row, "repeat") || json_object_set_new(row, "why", json_string(words)) ||
        json_array_append_new(results->misfits, row))
        return no_memory();
    set_date(row);
    add_bytes(row, why);
    return SLUICE_OK;
}

/* ---- Files ---- */

sluice_status slc_bench_results_write_json(const slc_bench_results *results, const char *path)
{
    return slc_result_file_write_json(path, json_pack("{s:O, s:O, s:O, s:O?, s:O?, s:O?}", "runs", results->runs,
                                                      "does_not_fit", results->misfits, "failed", results->failures,
                                                      "environment", results->environment, "settings",
                                                      results->settings, "budget_ends", results->budget_ends));
}

/* Takes a list of the file over; one that is missing is empty. */
static bool take_list(const json_t *all, const char *key, json_t *list)
{
    const json_t *there = json_object_get(all, key);
    return !there || !json_array_extend(list, (json_t *)there);
}

static json_t *take_object(const json_t *all, const char *key)
{
    json_t *there = json_object_get(all, key);
    return json_is_object(there) ? json_incref(there) : NULL;
}

sluice_status slc_bench_results_read(const char *path, slc_bench_results *out)
{
    struct stat info;
    json_error_t error;
    sluice_status status = slc_bench_results_init(out);
    if (status) return status;
    if (stat(path, &info) && (errno == ENOENT || errno == ENOTDIR)) return SLUICE_OK;
    json_t *all = json_load_file(path, 0, &error);
    if (!all) return slc_error(SLUICE_ERR_FORMAT, "%s: %s", path, error.text);
    bool sound = json_is_array(json_object_get(all, "runs")) && take_list(all, "runs", out->runs) &&
                 take_list(all, "does_not_fit", out->misfits) && take_list(all, "failed", out->failures);
    out->environment = take_object(all, "environment");
    out->settings = take_object(all, "settings");
    out->budget_ends = take_object(all, "budget_ends");
    json_decref(all);
    return sound ? SLUICE_OK : slc_error(SLUICE_ERR_FORMAT, "%s: not the results of a sweep", path);
}

/* ---- Reading ---- */

const json_t *slc_bench_value(const json_t *row, const char *key)
{
    const char *dot = strchr(key, '.');
    char part[32];
    if (!dot) return json_object_get(row, key);
    snprintf(part, sizeof part, "%.*s", (int)(dot - key), key);
    return slc_bench_value(json_object_get(row, part), dot + 1);
}

const char *slc_bench_text(const json_t *row, const char *key)
{
    const char *text = json_string_value(slc_bench_value(row, key));
    return text ? text : "";
}

bool slc_bench_is_auto(const json_t *row)
{
    return !strcmp(slc_bench_text(row, "strategy"), "auto");
}

double slc_bench_number(const json_t *row, const char *key)
{
    const json_t *value = slc_bench_value(row, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

void slc_bench_put_number(FILE *file, int width, int digits, double value, const char *none)
{
    if (isnan(value))
        fprintf(file, " %*s", width, none);
    else
        fprintf(file, " %*.*f", width, digits, value);
}

const char *slc_bench_strategy(const json_t *row, char text[64])
{
    bool split = !strcmp(slc_bench_text(row, "tied"), "split");
    snprintf(text, 64, "%s%s", slc_bench_text(row, "strategy"), split ? " split" : "");
    return text;
}

const char *slc_bench_labelled(const char *name, const json_t *row, char text[256])
{
    const char *label = slc_bench_text(row, "label");
    snprintf(text, 256, "%s%s%s%s", name, *label ? " (" : "", label, *label ? ")" : "");
    return text;
}

bool slc_bench_complete(const json_t *run)
{
    return !json_is_true(json_object_get(run, "interrupted"));
}

bool slc_bench_alike(const json_t *a, const json_t *b, const char *const *keys)
{
    for (; *keys; keys++) {
        const json_t *of_a = slc_bench_value(a, *keys), *of_b = slc_bench_value(b, *keys);
        if (of_a && of_b ? !json_equal(of_a, of_b) : of_a != of_b) return false;
    }
    return true;
}

bool slc_bench_is_first(const json_t *rows, size_t index, const char *const *keys)
{
    size_t i = 0;
    while (!slc_bench_alike(json_array_get(rows, i), json_array_get(rows, index), keys)) i++;
    return i == index;
}

double slc_bench_median(const json_t *runs, const json_t *row, const char *const *keys, const char *number)
{
    size_t index, count = 0;
    json_t *run;
    double *values = malloc((json_array_size(runs) + 1) * sizeof *values);
    if (!values) return NAN;
    json_array_foreach ((json_t *)runs, index, run) {
        double value = slc_bench_number(run, number);
        if (slc_bench_complete(run) && !isnan(value) && slc_bench_alike(run, row, keys)) values[count++] = value;
    }
    double result = slc_median(values, count);
    free(values);
    return result;
}
