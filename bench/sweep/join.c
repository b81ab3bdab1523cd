/* Rows keep all that they were written with, so that the joined file can be joined again. */
#include "bench/sweep/join.h"

#include "bench/cli/outcome.h"
#include "bench/sweep/figures/figures.h"
#include "bench/sweep/folder/folder.h"
#include "bench/sweep/figures/label.h"
#include "bench/sweep/opening.h"
#include "bench/sweep/figures/table.h"
#include "lib/base/file/path_error.h"
#include "lib/base/file/make_folder.h"
#include "lib/base/status.h"
#include "lib/base/text/ending.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Reading ---- */

/* The name of a source in the table: the path without what all folders of sweeps have. */
static void name_source(const char *source, char *name, size_t bytes)
{
    static const char file[] = "/results.json";
    size_t length = strlen(source);
    if (slc_ends_with(source, file)) length -= strlen(file);
    while (length > 1 && source[length - 1] == '/') length--;
    snprintf(name, bytes, "%.*s", (int)length, source);
}

static sluice_status find_file(const char *source, char *path)
{
    struct stat info;
    if (stat(source, &info)) return slc_error(slc_path_status(errno), "--join %s: %s", source, strerror(errno));
    if (S_ISDIR(info.st_mode)) return slc_folder_path(source, "results.json", path);
    if (snprintf(path, SLC_FOLDER_BYTES, "%s", source) < SLC_FOLDER_BYTES) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "--join %s: the name is too long", source);
}

/* Notes in a row where it is from, unless it was joined before and knows it. */
static bool mark_row(json_t *row, const char *source, const slc_bench_results *from)
{
    json_t *name = json_string(source);
    bool failed = !name || (!json_object_get(row, "source") && json_object_set(row, "source", name));
    json_decref(name);
    if (from->environment && !json_object_get(row, "environment"))
        failed |= json_object_set(row, "environment", from->environment) != 0;
    return !failed;
}

static bool take_rows(json_t *rows, json_t *to, const char *source, const slc_bench_results *from)
{
    size_t index;
    json_t *row;
    json_array_foreach (rows, index, row) {
        if (!json_is_object(row) || !mark_row(row, source, from) || json_array_append(to, row)) return false;
    }
    return true;
}

static sluice_status read_source(const char *source, slc_bench_results *out)
{
    char path[SLC_FOLDER_BYTES], name[SLC_FOLDER_BYTES];
    slc_bench_results one = {0};
    struct stat info;
    sluice_status status = find_file(source, path);
    if (status) return status;
    if (stat(path, &info)) return slc_error(slc_path_status(errno), "--join %s: %s: %s", source, path, strerror(errno));
    status = slc_bench_results_read(path, &one);
    name_source(source, name, sizeof name);
    if (!status && (!take_rows(one.runs, out->runs, name, &one) || !take_rows(one.misfits, out->misfits, name, &one) ||
                    !take_rows(one.failures, out->failures, name, &one)))
        status = slc_error(SLUICE_ERR_FORMAT, "%s: not the results of a sweep", path);
    slc_bench_results_free(&one);
    return status;
}

sluice_status slc_bench_join_read(char *const *sources, uint64_t count, slc_bench_results *out)
{
    char name[SLC_FOLDER_BYTES], other[SLC_FOLDER_BYTES];
    sluice_status status = slc_bench_results_init(out);
    for (uint64_t i = 0; !status && i < count; i++) {
        name_source(sources[i], name, sizeof name);
        for (uint64_t j = 0; !status && j < i; j++) {
            name_source(sources[j], other, sizeof other);
            if (!strcmp(name, other)) status = slc_error(SLUICE_ERR_ARGUMENT, "--join: %s is there twice", name);
        }
        if (!status) status = read_source(sources[i], out);
    }
    if (!status) slc_bench_label_rows((json_t *const[]){out->runs, out->misfits, out->failures}, 3);
    return status;
}

/* ---- All of it ---- */

static bool has_results(const char *folder)
{
    char path[SLC_FOLDER_BYTES];
    return !slc_folder_path(folder, "results.json", path) && !access(path, F_OK);
}

/* Finds a folder for the joined results. Without --overwrite none that has results is taken: they are a sweep's, which
 * nobody wants to lose to a table of several. */
static sluice_status find_folder(slc_bench_options *o)
{
    sluice_status status = SLUICE_OK;
    if (o->output && has_results(o->output) && !o->overwrite)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s has results: name another folder with --output, or replace them with --overwrite",
                         o->output);
    for (unsigned number = 1; !status && !o->output; number++) {
        status = slc_folder_name("join", number, o->chosen);
        if (!status && !has_results(o->chosen)) o->output = o->chosen;
    }
    return status ? status : slc_error_context(slc_make_folder(o->output), "--output");
}

sluice_status slc_bench_join(slc_bench_options *options, FILE *out)
{
    slc_bench_results results;
    slc_outcome outcome = {0};
    sluice_status status = slc_bench_join_read(options->sources, options->source_count, &results);
    if (!status) status = find_folder(options);
    if (!status) {
        slc_bench_table_joined(out, &results, options->source_count);
        slc_outcome_add(&outcome, slc_bench_save(&results, options));
        slc_outcome_add(&outcome, slc_bench_results_write_json(&results, options->training.json));
        slc_outcome_add(&outcome, slc_bench_results_write_csv(&results, options->training.csv));
        if (!outcome.status) fprintf(out, "results: %s/results.csv, results.json\n", options->output);
        slc_outcome_add(&outcome, slc_bench_picture_draw(&results, options->output, out));
        status = slc_outcome_status(&outcome);
    }
    slc_bench_results_free(&results);
    return status;
}
