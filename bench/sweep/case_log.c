/* tests/command/measure/bench_test.sh covers this file. */
#include "bench/sweep/case_log.h"

#include "bench/sweep/results.h"
#include "lib/base/log.h"
#include "lib/base/status.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Writing ---- */

/* Letters, digits and a few signs stay; anything else becomes '_'. */
static void make_name(const slc_bench_case *one, uint32_t attempt, char name[SLC_CASE_LOG_NAME])
{
    int length = snprintf(name, SLC_CASE_LOG_NAME, "logs/%s-%s-%s-%s-%s-%s-%" PRIu64, one->optimizer, one->strategy,
                          one->schedule, one->budget, one->throttle, one->tied, one->ranks);
    if (*one->label && length < SLC_CASE_LOG_NAME)
        length += snprintf(name + length, (size_t)(SLC_CASE_LOG_NAME - length), "-%s", one->label);
    if (length < SLC_CASE_LOG_NAME)
        length += snprintf(name + length, (size_t)(SLC_CASE_LOG_NAME - length), "-run%" PRIu64, one->repeat);
    if (attempt && length < SLC_CASE_LOG_NAME)
        snprintf(name + length, (size_t)(SLC_CASE_LOG_NAME - length), "-again%u", attempt);
    for (char *c = name + strlen("logs/"); *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("-_.%+", *c)) *c = '_';
}

static sluice_status begin_log(slc_case_log *log, const char *output, const slc_bench_case *one)
{
    const int length = snprintf(log->folder, sizeof log->folder, "%s/%s", output, log->name);
    if (length >= (int)sizeof log->folder) return slc_error(SLUICE_ERR_ARGUMENT, "--output: the path is too long");
    log->options = one->training;
    log->options.log = log->folder;
    log->options.csv = NULL;
    log->options.overwrite = true;
    sluice_status status = slc_training_log_open(&log->options, &log->log);
    return status ? status : slc_training_log_begin(log->log, 0, slc_bench_case_row(one));
}

void slc_case_log_begin(slc_case_log *log, const char *output, const slc_bench_case *one, uint32_t attempt)
{
    *log = (slc_case_log){.log = NULL};
    make_name(one, attempt, log->name);
    sluice_status status = begin_log(log, output, one);
    if (!status) return;
    slc_log(SLC_LOG_WARN, "%s; the sweep goes on without the log of this run", sluice_last_error());
    slc_training_log_close(&log->log);
    *log->name = 0;
}

void slc_case_log_step(slc_case_log *log, const slc_training_step *step)
{
    if (log->log) slc_training_log_step(log->log, step);
}

void slc_case_log_end(slc_case_log *log)
{
    if (slc_training_log_close(&log->log)) slc_log(SLC_LOG_WARN, "%s; the sweep goes on", sluice_last_error());
}

/* ---- Reading ---- */

/* Takes the losses of a log, the times at which its steps ended, and the tokens seen. Returns false if it is not there,
 * or not whole. */
static bool read_log(const char *path, json_t *losses, json_t *elapsed, json_t *tokens)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    bool whole = file != NULL;
    while (whole && getline(&line, &room, file) > 0) {
        json_t *step = json_loads(line, 0, NULL), *loss = json_object_get(step, "loss");
        whole = step != NULL;
        if (loss) json_array_append(losses, loss);
        if (loss) json_array_append(elapsed, json_object_get(step, "elapsed_s"));
        if (loss) json_array_append(tokens, json_object_get(step, "tokens"));
        json_decref(step);
    }
    free(line);
    if (file) fclose(file);
    return whole;
}

/* A sweep whose results were joined, or whose folder was written anew, may lie beside the logs of other runs. */
static bool is_of(const json_t *run, const json_t *losses)
{
    const size_t count = json_array_size(losses);
    const json_t *first = json_array_get(losses, 0), *said = json_array_get(json_object_get(run, "losses"), 0);
    return count && (json_int_t)count == json_integer_value(json_object_get(run, "steps_done")) &&
           fabs(json_number_value(first) - json_number_value(said)) <= 1e-8 * fabs(json_number_value(said));
}

static json_t *with_log(json_t *run, const char *output)
{
    char path[SLC_FOLDER_BYTES + 32];
    const char *name = json_string_value(json_object_get(run, "log"));
    json_t *copy = json_copy(run), *losses = json_array(), *elapsed = json_array(), *tokens = json_array();
    if (name && copy && losses && elapsed && tokens) {
        snprintf(path, sizeof path, "%s/%s/metrics.jsonl", output, name);
        if (read_log(path, losses, elapsed, tokens) && is_of(run, losses)) {
            json_object_set(copy, "losses", losses);
            json_object_set(copy, "elapsed_s", elapsed);
            json_object_set(copy, "tokens_seen", tokens);
            json_object_set_new(copy, "losses_every", json_integer(1));
        }
    }
    json_decref(losses);
    json_decref(elapsed);
    json_decref(tokens);
    return copy;
}

json_t *slc_case_logs_read(const json_t *runs, const char *output)
{
    json_t *all = json_array(), *run;
    size_t index;
    json_array_foreach ((json_t *)runs, index, run)
        if (json_array_append_new(all, with_log(run, output))) {
            json_decref(all);
            return NULL;
        }
    return all;
}
