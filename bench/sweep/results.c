/* Results of a sweep: collects them, writes them and reads them back. */
#include "bench/sweep/results.h"

#include "bench/cli/environment.h"
#include "bench/cli/result_file.h"
#include "bench/train/report.h"
#include "lib/base/file/path_error.h"
#include "lib/base/median.h"
#include "lib/base/text/parse_quantity.h"
#include "lib/base/status.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static sluice_status no_memory(void)
{
    return slc_error(SLUICE_ERR_MEMORY, "results of the sweep");
}

sluice_status slc_bench_results_init(slc_bench_results *out)
{
    *out = (slc_bench_results){.runs = json_array(), .misfits = json_array()};
    return out->runs && out->misfits ? SLUICE_OK : no_memory();
}

void slc_bench_results_free(slc_bench_results *results)
{
    json_decref(results->runs);
    json_decref(results->misfits);
    json_decref(results->environment);
    json_decref(results->budgets);
    *results = (slc_bench_results){0};
}

/* ---- Gathering ---- */

sluice_status slc_bench_results_add(slc_bench_results *results, const sluice_world *world, const slc_bench_case *one,
                                    const slc_training_result *run)
{
    json_t *row = slc_training_run_json(world, &one->training, run);
    json_t *place = json_pack("{s:s, s:s, s:I}", "budget", one->budget, "throttle", one->throttle, "repeat",
                              (json_int_t)one->repeat);
    bool failed = !row || !place || json_object_update(row, place);
    json_decref(place);
    if (failed || json_array_append(results->runs, row)) {
        json_decref(row);
        return no_memory();
    }
    json_decref(row);
    if (!results->environment) results->environment = slc_environment_json(world);
    return SLUICE_OK;
}

/* A strategy's need does not depend on the budget, except for strategies that fill the budget they get. */
static json_t *needed_bytes(const slc_bench_results *results, const json_t *misfit)
{
    static const char *const keys[] = {"strategy", "schedule", "optimizer", "tied", NULL};
    size_t index;
    json_t *run;
    const char *strategy = slc_bench_text(misfit, "strategy");
    if (!strcmp(strategy, "mixed") || !strcmp(strategy, "auto")) return NULL;
    json_array_foreach (results->runs, index, run) {
        if (slc_bench_alike(run, misfit, keys)) return json_incref(json_object_get(run, "planned_bytes"));
    }
    return NULL;
}

/* A budget in per cent refers to what dp needs, which any run of the sweep knows. */
static json_t *budget_bytes(const slc_bench_results *results, const slc_bench_case *one)
{
    uint64_t bytes = 0;
    double fraction = 0;
    if (slc_parse_budget(one->training.budget, &bytes, &fraction)) return NULL;
    const json_t *dp = json_object_get(json_array_get(results->runs, 0), "dp_bytes");
    if (fraction > 0) bytes = (uint64_t)(fraction * (double)json_integer_value(dp));
    return bytes ? json_integer((json_int_t)bytes) : NULL;
}

sluice_status slc_bench_results_add_misfit(slc_bench_results *results, const slc_bench_case *one, const char *why)
{
    json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "model", one->training.model, "size",
                            one->training.size, "strategy", one->strategy, "schedule", one->schedule, "budget",
                            one->budget, "throttle", one->throttle, "optimizer", one->optimizer, "tied", one->tied);
    if (!row || json_object_set_new(row, "why", json_string(why)) || json_array_append_new(results->misfits, row))
        return no_memory();
    json_t *needed = needed_bytes(results, row), *budget = budget_bytes(results, one);
    if (needed) json_object_set_new(row, "needed_bytes", needed);
    if (budget) json_object_set_new(row, "budget_bytes", budget);
    return SLUICE_OK;
}

/* ---- Files ---- */

sluice_status slc_bench_make_folder(const char *path)
{
    char *copy = strdup(path);
    if (!copy) return no_memory();
    int why = 0;
    for (char *at = copy + 1; !why; at++) {
        if (*at && *at != '/') continue;
        char end = *at;
        *at = 0;
        if (mkdir(copy, 0777) && errno != EEXIST) why = errno;
        *at = end;
        if (!end) break;
    }
    struct stat info;
    if (!why && (stat(path, &info) || !S_ISDIR(info.st_mode))) why = ENOTDIR;
    free(copy);
    return why ? slc_error(slc_path_status(why), "--output: cannot make the folder %s: %s", path, strerror(why))
               : SLUICE_OK;
}

sluice_status slc_bench_results_write_json(const slc_bench_results *results, const char *path)
{
    json_t *all = json_pack("{s:O, s:O, s:O?, s:O?}", "runs", results->runs, "does_not_fit", results->misfits,
                            "environment", results->environment, "budgets", results->budgets);
    if (!all) return no_memory();
    sluice_status status = slc_result_file_write_json(path, all);
    json_decref(all);
    return status;
}

static const char csv_columns[] =
    "model,size,world,throttle,strategy,schedule,budget,repeat,fits,budget_bytes,planned_bytes,peak_bytes,rss_bytes,"
    "predicted_step_s,step_s,step_min_s,exposed_s,tokens_per_s,first_loss,last_loss,interrupted,weights_sha256,"
    "optimizer,freeze_step,warm_up_step_s,warm_up_bytes_sent,compressed_step_s,compressed_bytes_sent,train_s,"
    "final_loss,tied\n";

static void put_value(FILE *file, double value)
{
    if (isnan(value))
        fputc(',', file);
    else
        fprintf(file, "%.9g,", value);
}

static void put_text(FILE *file, const char *text)
{
    bool quoted = strpbrk(text, ",\"\n") != NULL;
    if (quoted) fputc('"', file);
    for (const char *at = text; *at; at++) {
        if (*at == '"') fputc('"', file);
        fputc(*at, file);
    }
    fputs(quoted ? "\"," : ",", file);
}

static void put_number(FILE *file, const json_t *row, const char *key)
{
    put_value(file, slc_bench_number(row, key));
}

static void put_row(FILE *file, const json_t *row, bool fits)
{
    put_text(file, slc_bench_text(row, "model"));
    put_text(file, slc_bench_text(row, "size"));
    put_number(file, row, "world");
    put_text(file, slc_bench_text(row, "throttle"));
    put_text(file, slc_bench_text(row, "strategy"));
    put_text(file, slc_bench_text(row, "schedule"));
    put_text(file, slc_bench_text(row, "budget"));
    put_number(file, row, "repeat");
    fprintf(file, "%d,", fits);
    static const char *const sizes[] = {"budget_bytes", "planned_bytes", "peak_bytes", "rss_bytes"};
    for (int i = 0; i < 4; i++) { /* these are exact, so they are not written through a double's nine digits */
        const json_t *value = json_object_get(row, i == 1 && !fits ? "needed_bytes" : sizes[i]);
        if (json_is_integer(value)) fprintf(file, "%lld", (long long)json_integer_value(value));
        fputc(',', file);
    }
    static const char *const times[] = {"predicted_step_s", "step_s", "step_min_s", "exposed_s", "tokens_per_s"};
    for (int i = 0; i < 5; i++) put_number(file, row, times[i]);
    const json_t *losses = json_object_get(row, "losses");
    size_t count = json_array_size(losses);
    put_value(file, count ? json_number_value(json_array_get(losses, 0)) : NAN);
    put_value(file, count ? json_number_value(json_array_get(losses, count - 1)) : NAN);
    fprintf(file, "%s,%s,", fits ? slc_bench_complete(row) ? "0" : "1" : "", slc_bench_text(row, "weights_sha256"));
    fprintf(file, "%s,", slc_bench_text(row, "optimizer"));
    static const char *const phases[] = {"freeze_step",       "warm_up.step_s",        "warm_up.bytes_sent",
                                         "compressed.step_s", "compressed.bytes_sent", "train_s",
                                         "final_loss"};
    for (int i = 0; i < 7; i++) put_number(file, row, phases[i]);
    fprintf(file, "%s\n", slc_bench_text(row, "tied"));
}

sluice_status slc_bench_results_write_csv(const slc_bench_results *results, const char *path)
{
    slc_result_file file;
    sluice_status status = slc_result_file_open(path, &file);
    if (status || !file.file) return status;
    size_t index;
    json_t *row;
    fputs(csv_columns, file.file);
    json_array_foreach (results->runs, index, row) put_row(file.file, row, true);
    json_array_foreach (results->misfits, index, row) put_row(file.file, row, false);
    return slc_result_file_commit(&file);
}

sluice_status slc_bench_results_append(slc_bench_results *results, const char *path)
{
    struct stat info;
    json_error_t error;
    if (stat(path, &info) ? errno == ENOENT : !info.st_size) return SLUICE_OK;
    json_t *all = json_load_file(path, 0, &error);
    if (!all) return slc_error(SLUICE_ERR_FORMAT, "%s: %s", path, error.text);
    json_t *environment = json_object_get(all, "environment"), *budgets = json_object_get(all, "budgets");
    bool failed = json_array_extend(results->runs, json_object_get(all, "runs")) ||
                  json_array_extend(results->misfits, json_object_get(all, "does_not_fit"));
    if (!results->environment && json_is_object(environment)) results->environment = json_incref(environment);
    if (!results->budgets && json_is_string(budgets)) results->budgets = json_incref(budgets);
    json_decref(all);
    return failed ? slc_error(SLUICE_ERR_FORMAT, "%s: not the results of a part", path) : SLUICE_OK;
}

/* ---- Reading ---- */

const char *slc_bench_text(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));
    return text ? text : "";
}

double slc_bench_number(const json_t *row, const char *key)
{
    const char *dot = strchr(key, '.');
    char part[32];
    if (dot) {
        snprintf(part, sizeof part, "%.*s", (int)(dot - key), key);
        return slc_bench_number(json_object_get(row, part), dot + 1);
    }
    const json_t *value = json_object_get(row, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

const char *slc_bench_strategy(const json_t *row, char text[64])
{
    bool split = !strcmp(slc_bench_text(row, "tied"), "split");
    snprintf(text, 64, "%s%s", slc_bench_text(row, "strategy"), split ? " split" : "");
    return text;
}

bool slc_bench_complete(const json_t *run)
{
    return !json_is_true(json_object_get(run, "interrupted"));
}

bool slc_bench_alike(const json_t *a, const json_t *b, const char *const *keys)
{
    for (; *keys; keys++)
        if (strcmp(slc_bench_text(a, *keys), slc_bench_text(b, *keys))) return false;
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
