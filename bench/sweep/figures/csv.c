/* The columns of figures are a table here, and keep their places; those of options are the table of options.
 * tests/command/measure/bench_test.sh covers this file. */
#include "bench/sweep/figures/figures.h"

#include "bench/cli/output/result_file.h"
#include "bench/train/options/options.h"
#include "lib/base/status.h"

#include <stdlib.h>
#include <string.h>

typedef enum { VALUE, FITS, PLANNED, FIRST_LOSS, LAST_LOSS, INTERRUPTED } column_kind;

static const struct {
    const char *name, *key;
    column_kind kind;
} columns[] = {
    {"model", "model", VALUE},
    {"size", "size", VALUE},
    {"world", "world", VALUE},
    {"throttle", "throttle", VALUE},
    {"strategy", "strategy", VALUE},
    {"schedule", "schedule", VALUE},
    {"budget", "budget", VALUE},
    {"repeat", "repeat", VALUE},
    {"fits", NULL, FITS},
    {"budget_bytes", "budget_bytes", VALUE},
    {"planned_bytes", NULL, PLANNED},
    {"peak_bytes", "peak_bytes", VALUE},
    {"rss_bytes", "rss_bytes", VALUE},
    {"predicted_step_s", "predicted_step_s", VALUE},
    {"step_s", "step_s", VALUE},
    {"step_min_s", "step_min_s", VALUE},
    {"exposed_s", "exposed_s", VALUE},
    {"tokens_per_s", "tokens_per_s", VALUE},
    {"first_loss", NULL, FIRST_LOSS},
    {"last_loss", NULL, LAST_LOSS},
    {"interrupted", NULL, INTERRUPTED},
    {"weights_sha256", "weights_sha256", VALUE},
    {"optimizer", "optimizer", VALUE},
    {"freeze_step", "freeze_step", VALUE},
    {"warm_up_step_s", "warm_up.step_s", VALUE},
    {"warm_up_bytes_sent", "warm_up.bytes_sent", VALUE},
    {"compressed_step_s", "compressed.step_s", VALUE},
    {"compressed_bytes_sent", "compressed.bytes_sent", VALUE},
    {"train_s", "train_s", VALUE},
    {"final_loss", "final_loss", VALUE},
    {"tied", "tied", VALUE},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* Columns of the environment, then columns that say where a row is from and why it has no figures. Free text comes
 * last, because it may have commas. */
static const char *const machine_columns[] = {"host",   "processor",       "cores",  "memory_bytes",
                                              "kernel", "instruction_set", "sluice", "compiler"};
static const char *const run_columns[] = {"transport", "path", "date", "source", "why"};
enum {
    MACHINE_COLUMNS = sizeof machine_columns / sizeof *machine_columns,
    RUN_COLUMNS = sizeof run_columns / sizeof *run_columns
};

/* ---- Values ---- */

static void put_quoted(FILE *file, const char *text)
{
    const bool quoted = strpbrk(text, ",\"\n\r") != NULL;
    if (quoted) fputc('"', file);
    for (const char *at = text; *at; at++) {
        if (*at == '"') fputc('"', file);
        fputc(*at, file);
    }
    if (quoted) fputc('"', file);
}

/* Writes a list of texts with spaces between. */
static void put_list(FILE *file, const json_t *list)
{
    char *text = NULL;
    size_t index, bytes;
    json_t *item;
    FILE *words = open_memstream(&text, &bytes);
    if (!words) return;
    json_array_foreach ((json_t *)list, index, item) {
        const char *word = json_string_value(item);
        if (word) fprintf(words, "%s%s", ftell(words) ? " " : "", word);
    }
    if (!fclose(words)) put_quoted(file, text);
    free(text);
}

/* Whole numbers are exact, so they are not written through a double's nine digits. A value that is not there, or is
 * null in JSON, is an empty field. */
void slc_bench_put_csv(FILE *file, const json_t *value)
{
    switch (value ? json_typeof(value) : JSON_NULL) {
    case JSON_STRING: put_quoted(file, json_string_value(value)); break;
    case JSON_INTEGER: fprintf(file, "%lld", (long long)json_integer_value(value)); break;
    case JSON_REAL: fprintf(file, "%.9g", json_real_value(value)); break;
    case JSON_TRUE: fputc('1', file); break;
    case JSON_FALSE: fputc('0', file); break;
    case JSON_ARRAY: put_list(file, value); break;
    default: break;
    }
}

static void put_figure(FILE *file, const json_t *row, int column, const char *fits)
{
    const bool ran = *fits == '1';
    const json_t *losses = json_object_get(row, "losses");
    const size_t count = json_array_size(losses);
    switch (columns[column].kind) {
    case VALUE: slc_bench_put_csv(file, slc_bench_value(row, columns[column].key)); break;
    case FITS: fputs(fits, file); break;
    case PLANNED: slc_bench_put_csv(file, json_object_get(row, ran ? "planned_bytes" : "needed_bytes")); break;
    case FIRST_LOSS: slc_bench_put_csv(file, json_array_get(losses, 0)); break;
    case LAST_LOSS: slc_bench_put_csv(file, count ? json_array_get(losses, count - 1) : NULL); break;
    case INTERRUPTED: fputs(!ran ? "" : slc_bench_complete(row) ? "0" : "1", file); break;
    }
}

/* ---- Options ---- */

static bool has_column(const char *name)
{
    for (int i = 0; i < COLUMNS; i++)
        if (!strcmp(columns[i].name, name)) return true;
    return false;
}

/* Returns the options that a number depends on, in the order of their table, as keys of an object; NULL without memory.
 */
static json_t *list_options(void)
{
    slc_training_options defaults;
    json_t *all = json_object(), *others = json_object();
    const char *name;
    json_t *value;
    slc_training_options_init(&defaults);
    int failed = slc_training_options_json(&defaults, SLC_REPORTED | SLC_MEASURED, all);
    json_object_foreach (all, name, value) {
        if (!has_column(name)) failed |= json_object_set(others, name, value);
    }
    json_decref(all);
    if (!failed) return others;
    json_decref(others);
    return NULL;
}

/* ---- Lines ---- */

typedef struct {
    FILE *file;
    json_t *options; /* those that are columns, in their order */
} table;

static sluice_status begin_table(table *csv, FILE *file)
{
    const char *name;
    json_t *value;
    *csv = (table){.file = file, .options = list_options()};
    if (!csv->options) return slc_error(SLUICE_ERR_MEMORY, "columns of options");
    for (int i = 0; i < COLUMNS; i++) fprintf(file, "%s%s", i ? "," : "", columns[i].name);
    json_object_foreach (csv->options, name, value) fprintf(file, ",%s", name);
    for (int i = 0; i < MACHINE_COLUMNS; i++) fprintf(file, ",%s", machine_columns[i]);
    for (int i = 0; i < RUN_COLUMNS; i++) fprintf(file, ",%s", run_columns[i]);
    fputc('\n', file);
    return SLUICE_OK;
}

static void put_field(FILE *file, const json_t *value)
{
    fputc(',', file);
    slc_bench_put_csv(file, value);
}

/* `fits`: "1" for a run, "0" for what does not fit, "" if nobody knows. `environment`: of the file that the row is
 * from, for rows without one of their own. */
static void put_row(const table *csv, const json_t *row, const char *fits, const json_t *environment)
{
    const char *name;
    json_t *unused;
    const json_t *settings = json_object_get(row, "settings"), *own = json_object_get(row, "environment");
    for (int i = 0; i < COLUMNS; i++) {
        if (i) fputc(',', csv->file);
        put_figure(csv->file, row, i, fits);
    }
    json_object_foreach (csv->options, name, unused) {
        const json_t *value = json_object_get(settings, name);
        put_field(csv->file, value ? value : json_object_get(row, name));
    }
    for (int i = 0; i < MACHINE_COLUMNS; i++)
        put_field(csv->file, json_object_get(own ? own : environment, machine_columns[i]));
    for (int i = 0; i < RUN_COLUMNS; i++) put_field(csv->file, json_object_get(row, run_columns[i]));
    fputc('\n', csv->file);
}

static void put_rows(const table *csv, const json_t *rows, const char *fits, const slc_bench_results *results)
{
    for (size_t i = 0; i < json_array_size(rows); i++)
        put_row(csv, json_array_get(rows, i), fits, results->environment);
}

sluice_status slc_bench_results_write_csv(const slc_bench_results *results, const char *path)
{
    slc_result_file file;
    sluice_status status = slc_result_file_open(path, &file);
    if (status || !file.file) return status;
    table csv;
    status = begin_table(&csv, file.file);
    if (status) {
        slc_result_file_abandon(&file);
        return status;
    }
    put_rows(&csv, results->runs, "1", results);
    put_rows(&csv, results->misfits, "0", results);
    put_rows(&csv, results->failures, "", results);
    json_decref(csv.options);
    return slc_result_file_commit(&file);
}
