/* Files that grow by whole lines, next to two that are written once. run_log_test.c and
 * tests/command/train/log_test.sh cover this file. */
#include "bench/train/log/run_log.h"

#include "bench/cli/outcome.h"
#include "bench/cli/output/disk_sync.h"
#include "bench/cli/output/growing_file.h"
#include "bench/cli/output/result_file.h"
#include "bench/train/log/event_record.h"
#include "bench/train/log/kept_lines.h"
#include "bench/train/log/step_line.h"
#include "lib/base/file/json_file.h"
#include "lib/base/file/make_folder.h"
#include "lib/base/file/path_error.h"
#include "lib/base/file/sync_folder.h"
#include "lib/base/log.h"
#include "lib/base/status.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

typedef enum { JSONL, CSV, SAMPLES, EVENTS, TABLE, FILES } file_index;
static const char *const names[FILES] = {[JSONL] = "metrics.jsonl", [CSV] = "metrics.csv", [SAMPLES] = "samples.jsonl"};
static const char event_prefix[] = "events.out.tfevents.";

struct slc_training_log {
    const slc_training_options *options;
    char paths[FILES][PATH_MAX];
    slc_growing_file files[FILES];
    slc_disk_sync *sync;
    double elapsed_s;
    uint64_t tokens_before; /* of the step before */
};

/* ---- The folder ---- */

static sluice_status join(char out[PATH_MAX], const char *folder, const char *name)
{
    const int length = snprintf(out, PATH_MAX, "%s/%s", folder, name);
    if (length >= 0 && length < PATH_MAX) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "--log %s: the path is too long", folder);
}

/* True if the file of a log has any content: then it has steps. */
static bool has_steps(const char *path)
{
    struct stat info;
    return !stat(path, &info) && S_ISREG(info.st_mode) && info.st_size > 0;
}

static sluice_status refuse_other_log(const slc_training_options *o)
{
    char path[PATH_MAX];
    sluice_status status = join(path, o->log, names[JSONL]);
    if (status || o->resume || o->go_on || o->overwrite || !has_steps(path)) return status;
    return slc_error(
        SLUICE_ERR_ARGUMENT,
        "--log %s: it has the log of another run; give another folder, or --resume to go on with that run, "
        "or --overwrite",
        o->log);
}

sluice_status slc_training_log_check(const slc_training_options *o)
{
    if (!o->log) return SLUICE_OK;
    sluice_status status = slc_error_context(slc_make_writable_folder(o->log), "--log");
    return status ? status : refuse_other_log(o);
}

/* ---- Opening ---- */

/* A name that no other start of a run has: TensorBoard reads all files of a folder, by their names' order. */
static sluice_status name_events(slc_training_log *log)
{
    struct utsname host;
    char name[512];
    if (uname(&host)) *host.nodename = 0;
    for (long long from = (long long)time(NULL);; from++) {
        snprintf(name, sizeof name, "%s%010lld.%s", event_prefix, from, *host.nodename ? host.nodename : "host");
        sluice_status status = join(log->paths[EVENTS], log->options->log, name);
        if (status || access(log->paths[EVENTS], F_OK)) return status;
    }
}

/* True for the files of a log that have a name of their own; for that of samples only if there are some. */
static bool is_wanted(const slc_training_options *o, int file)
{
    return names[file] && (file != SAMPLES || o->sample_every);
}

sluice_status slc_training_log_open(const slc_training_options *o, slc_training_log **out)
{
    *out = NULL;
    slc_training_log *log = calloc(1, sizeof *log);
    if (!log) return slc_error(SLUICE_ERR_MEMORY, "the log");
    log->options = o;
    for (int i = 0; i < FILES; i++) log->files[i] = SLC_GROWING_FILE_NONE;
    sluice_status status = slc_training_log_check(o);
    for (int i = 0; !status && o->log && i < FILES; i++)
        if (is_wanted(o, i)) status = join(log->paths[i], o->log, names[i]);
    for (int i = 0; !status && o->log && i < FILES; i++)
        if (is_wanted(o, i)) status = slc_result_file_probe(log->paths[i]);
    if (!status) status = slc_growing_file_open(o->csv, 0, &log->files[TABLE]);
    *out = log;
    return status;
}

/* ---- Beginning ---- */

/* Removes the event files of a run whose log is overwritten. */
static void remove_events(const char *folder)
{
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        if (!strncmp(entry->d_name, event_prefix, sizeof event_prefix - 1)) unlinkat(dirfd(entries), entry->d_name, 0);
    if (entries) closedir(entries);
}

/* Takes the earlier run.json into the new one, so that the first start of a run is known at its end. */
static void keep_earlier(json_t *run, const char *path)
{
    char *text = NULL;
    size_t bytes = 0;
    if (access(path, F_OK) || slc_json_file_read(path, &text, &bytes)) return;
    json_t *before = json_loadb(text, bytes, 0, NULL), *list = json_object_get(before, "earlier");
    free(text);
    if (!json_is_object(before)) {
        json_decref(before);
        return;
    }
    list = json_is_array(list) ? json_incref(list) : json_array();
    json_object_del(before, "earlier");
    json_array_append_new(list, before);
    json_object_set_new(run, "earlier", list);
}

static sluice_status write_run(const slc_training_log *log, uint64_t steps_before, json_t *run)
{
    char path[PATH_MAX], folder[PATH_MAX];
    json_t *given = slc_training_options_given_json(log->options);
    char *text = given ? json_dumps(given, JSON_INDENT(2)) : NULL;
    sluice_status status =
        text ? join(path, log->options->log, "options.json") : slc_error(SLUICE_ERR_MEMORY, "options.json of --log");
    if (!status) status = slc_json_file_write(path, text);
    free(text);
    if (!status) status = join(path, log->options->log, "run.json");
    json_object_set_new(run, "steps_before", json_integer((json_int_t)steps_before));
    json_object_set_new(run, "options", given);
    if (getcwd(folder, sizeof folder)) json_object_set_new(run, "folder", json_string(folder));
    if (steps_before) keep_earlier(run, path);
    if (!status) return slc_result_file_write_json(path, run);
    json_decref(run);
    return status;
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Appends a piece, and tells of the first one that is lost. */
static void append_piece(slc_training_log *log, file_index file, const void *piece, size_t bytes)
{
    slc_growing_file *to = &log->files[file];
    if (!slc_growing_file_put(to, piece, bytes))
        slc_log(SLC_LOG_WARN, "cannot write %s: %s; the run goes on", to->path, strerror(to->why));
}

static void begin_events(slc_training_log *log, uint64_t steps_before)
{
    char record[SLC_TRAINING_EVENT_BYTES];
    append_piece(log, EVENTS, record, slc_training_event_version(now_s(), record));
    if (steps_before) append_piece(log, EVENTS, record, slc_training_event_restart(now_s(), steps_before + 1, record));
}

static sluice_status begin_folder(slc_training_log *log, uint64_t steps_before)
{
    sluice_status status = SLUICE_OK;
    if (!steps_before) remove_events(log->options->log);
    for (int i = 0; !status && i < FILES; i++) {
        uint64_t kept = 0;
        if (!is_wanted(log->options, i)) continue;
        if (steps_before) status = slc_training_kept_lines(log->paths[i], NULL, steps_before, &kept);
        if (!status) status = slc_growing_file_open(log->paths[i], kept, &log->files[i]);
    }
    if (!status) status = name_events(log);
    if (!status) status = slc_growing_file_open(log->paths[EVENTS], 0, &log->files[EVENTS]);
    if (status) return status;
    begin_events(log, steps_before);
    return SLUICE_OK;
}

/* The names of the files must survive a loss of power too. */
static sluice_status sync_names(const slc_training_log *log)
{
    const slc_growing_file *table = &log->files[TABLE];
    sluice_status status = log->options->log ? slc_sync_folder(log->options->log) : SLUICE_OK;
    return status || !table->regular ? status : slc_sync_parent(table->path);
}

static void begin_table(slc_training_log *log, file_index file)
{
    if (!log->files[file].bytes) append_piece(log, file, slc_training_csv_head, strlen(slc_training_csv_head));
}

sluice_status slc_training_log_begin(slc_training_log *log, uint64_t steps_before, json_t *about)
{
    sluice_status status = slc_disk_sync_start(SLC_TRAINING_LOG_SYNC_S, &log->sync);
    if (!status && log->options->log) status = begin_folder(log, steps_before);
    if (status || !log->options->log)
        json_decref(about);
    else
        status = write_run(log, steps_before, about);
    if (!status) status = sync_names(log);
    if (status) return status;
    begin_table(log, CSV);
    begin_table(log, TABLE);
    for (int i = 0; i < FILES; i++)
        if (log->files[i].path) slc_disk_sync_add(log->sync, log->files[i].fd);
    slc_disk_sync_soon(log->sync);
    return SLUICE_OK;
}

/* ---- Steps ---- */

static void add_scalar(slc_training_event_scalar *list, size_t *count, const char *tag, double value)
{
    if (!isnan(value)) list[(*count)++] = (slc_training_event_scalar){tag, value};
}

static void put_events(slc_training_log *log, const slc_training_step *step, double time_s)
{
    slc_training_event_scalar list[SLC_TRAINING_EVENT_SCALARS];
    char record[SLC_TRAINING_EVENT_BYTES];
    size_t count = 0;
    if (step->step_s > 0) {
        const double tokens = (double)(step->tokens - log->tokens_before);
        list[count++] = (slc_training_event_scalar){"train/loss", step->loss}; /* also one that is not finite */
        add_scalar(list, &count, "train/smoothed_loss", step->smoothed_loss);
        add_scalar(list, &count, "train/learning_rate", step->learning_rate);
        add_scalar(list, &count, "train/gradient_norm", step->gradient_norm);
        add_scalar(list, &count, "train/passes", step->passes);
        if (log->tokens_before) add_scalar(list, &count, "speed/tokens_per_s", tokens / step->step_s);
        add_scalar(list, &count, "speed/step_s", step->step_s);
        add_scalar(list, &count, "speed/exposed_s", step->exposed_s);
        add_scalar(list, &count, "memory/peak_bytes", (double)step->peak_bytes);
    }
    add_scalar(list, &count, "eval/loss", step->evaluation_loss);
    add_scalar(list, &count, "eval/accuracy", step->accuracy);
    if (count) append_piece(log, EVENTS, record, slc_training_event_scalars(time_s, step->step, list, count, record));
}

void slc_training_log_step(slc_training_log *log, const slc_training_step *step)
{
    const slc_training_line_times times = {now_s(), log->elapsed_s += step->step_s};
    char line[SLC_TRAINING_LINE_BYTES];
    append_piece(log, JSONL, line, slc_training_json_line(step, &times, line));
    const size_t bytes = slc_training_csv_line(step, &times, line);
    append_piece(log, CSV, line, bytes);
    append_piece(log, TABLE, line, bytes);
    put_events(log, step, times.time_s);
    log->tokens_before = step->tokens;
    slc_disk_sync_soon(log->sync);
}

void slc_training_log_sample(slc_training_log *log, uint64_t step, const char *text)
{
    json_t *sample = json_pack("{s:I, s:s}", "step", (json_int_t)step, "text", text);
    char *line = sample ? json_dumps(sample, JSON_COMPACT) : NULL;
    json_decref(sample);
    if (!line) return; /* no memory, or a text that is no UTF-8 */
    const size_t bytes = strlen(line);
    line[bytes] = '\n'; /* in the place of its end */
    append_piece(log, SAMPLES, line, bytes + 1);
    free(line);
    slc_disk_sync_soon(log->sync);
}

void slc_training_log_end(slc_training_log *log, const slc_training_step *step)
{
    char line[SLC_TRAINING_LINE_BYTES];
    const double time_s = now_s();
    append_piece(log, JSONL, line, slc_training_json_end_line(step, time_s, line));
    append_piece(log, CSV, line, slc_training_csv_end_line(step, time_s, line));
    put_events(
        log,
        &(slc_training_step){.step = step->step, .evaluation_loss = step->evaluation_loss, .accuracy = step->accuracy},
        time_s);
    slc_disk_sync_soon(log->sync);
}

sluice_status slc_training_log_close(slc_training_log **closed)
{
    slc_training_log *log = *closed;
    slc_outcome outcome = {0};
    if (!log) return SLUICE_OK;
    const int why = slc_disk_sync_end(&log->sync);
    for (int i = 0; i < FILES; i++) slc_outcome_add(&outcome, slc_growing_file_close(&log->files[i]));
    if (why && !outcome.status)
        slc_outcome_add(&outcome, slc_error(SLUICE_ERR_IO, "the log is not on the disk: %s", strerror(why)));
    free(log);
    *closed = NULL;
    return slc_outcome_status(&outcome);
}
