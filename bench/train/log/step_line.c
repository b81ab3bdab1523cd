/* Numbers are written so that reading them gives the same number again, if it matters: losses and rates. */
#include "bench/train/log/step_line.h"

#include "lib/base/text/text_line.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char slc_training_csv_head[] =
    "step,loss,learning_rate,step_s,exposed_s,gradient_norm,skipped,peak_bytes,bytes_sent,evaluation_loss,compressed,"
    "evaluation_accuracy,smoothed_loss,tokens,passes,elapsed_s,planning_s,time\n";

static void put_number(slc_text_line *l, const char *key, const char *format, double value)
{
    char text[40];
    slc_text_line_add(l, ",\"%s\":", key);
    snprintf(text, sizeof text, format, value);
    slc_text_line_add(l, "%s", isfinite(value) ? text : "null");
}

static void put_count(slc_text_line *l, const char *key, uint64_t value)
{
    slc_text_line_add(l, ",\"%s\":%" PRIu64, key, value);
}

static void put_flag(slc_text_line *l, const char *key, bool value)
{
    slc_text_line_add(l, ",\"%s\":%s", key, value ? "true" : "false");
}

static void put_evaluation(slc_text_line *l, const slc_training_step *step)
{
    if (!isnan(step->evaluation_loss)) put_number(l, "evaluation_loss", "%.10g", step->evaluation_loss);
    if (!isnan(step->accuracy)) put_number(l, "evaluation_accuracy", "%.10g", step->accuracy);
}

size_t slc_training_json_line(const slc_training_step *step, const slc_training_line_times *times, char *out)
{
    slc_text_line l = {out, SLC_TRAINING_LINE_BYTES, 0};
    slc_text_line_add(&l, "{\"step\":%" PRIu64, step->step);
    put_number(&l, "time", "%.3f", times->time_s);
    put_number(&l, "loss", "%.10g", step->loss);
    put_number(&l, "smoothed_loss", "%.10g", step->smoothed_loss);
    put_number(&l, "learning_rate", "%.15g", step->learning_rate);
    put_number(&l, "gradient_norm", "%.9g", step->gradient_norm);
    put_count(&l, "tokens", step->tokens);
    put_number(&l, "passes", "%.6g", step->passes);
    put_number(&l, "step_s", "%.6f", step->step_s);
    put_number(&l, "elapsed_s", "%.6f", times->elapsed_s);
    put_number(&l, "exposed_s", "%.6f", step->exposed_s);
    put_number(&l, "planning_s", "%.6f", step->planning_s);
    put_count(&l, "peak_bytes", step->peak_bytes);
    put_count(&l, "bytes_sent", step->bytes_sent);
    put_flag(&l, "skipped", step->skipped);
    put_flag(&l, "compressed", step->compressed);
    put_evaluation(&l, step);
    slc_text_line_add(&l, "}\n");
    return l.used;
}

size_t slc_training_json_end_line(const slc_training_step *step, double time_s, char *out)
{
    slc_text_line l = {out, SLC_TRAINING_LINE_BYTES, 0};
    slc_text_line_add(&l, "{\"step\":%" PRIu64, step->step);
    put_number(&l, "time", "%.3f", time_s);
    put_evaluation(&l, step);
    slc_text_line_add(&l, "}\n");
    return l.used;
}

static void put_column(slc_text_line *l, const char *format, double value)
{
    char text[40];
    snprintf(text, sizeof text, format, value);
    slc_text_line_add(l, ",%s", isfinite(value) ? text : "");
}

size_t slc_training_csv_line(const slc_training_step *step, const slc_training_line_times *times, char *out)
{
    slc_text_line l = {out, SLC_TRAINING_LINE_BYTES, 0};
    slc_text_line_add(&l, "%" PRIu64, step->step);
    put_column(&l, "%.9g", step->loss);
    put_column(&l, "%.15g", step->learning_rate);
    put_column(&l, "%.6f", step->step_s);
    put_column(&l, "%.6f", step->exposed_s);
    put_column(&l, "%.9g", step->gradient_norm);
    slc_text_line_add(&l, ",%d,%" PRIu64 ",%" PRIu64, step->skipped, step->peak_bytes, step->bytes_sent);
    put_column(&l, "%.9g", step->evaluation_loss);
    slc_text_line_add(&l, ",%d", step->compressed);
    put_column(&l, "%.9g", step->accuracy);
    put_column(&l, "%.9g", step->smoothed_loss);
    slc_text_line_add(&l, ",%" PRIu64, step->tokens);
    put_column(&l, "%.6g", step->passes);
    put_column(&l, "%.6f", times->elapsed_s);
    put_column(&l, "%.6f", step->planning_s);
    put_column(&l, "%.3f", times->time_s);
    slc_text_line_add(&l, "\n");
    return l.used;
}

size_t slc_training_csv_end_line(const slc_training_step *step, double time_s, char *out)
{
    slc_text_line l = {out, SLC_TRAINING_LINE_BYTES, 0};
    slc_text_line_add(&l, "%" PRIu64 ",,,,,,,,", step->step);
    put_column(&l, "%.9g", step->evaluation_loss);
    slc_text_line_add(&l, ",");
    put_column(&l, "%.9g", step->accuracy);
    slc_text_line_add(&l, ",,,,,");
    put_column(&l, "%.3f", time_s);
    slc_text_line_add(&l, "\n");
    return l.used;
}

/* Returns the step that a line is of; 0: the CSV's head; UINT64_MAX: it is no line of ours. */
static uint64_t step_of(const char *text, size_t bytes)
{
    static const char key[] = "{\"step\":";
    const size_t skip = bytes >= sizeof key - 1 && !memcmp(text, key, sizeof key - 1) ? sizeof key - 1 : 0;
    char digits[24] = "", *end;
    const size_t room = bytes - skip < sizeof digits - 1 ? bytes - skip : sizeof digits - 1;
    memcpy(digits, text + skip, room);
    if (!skip && bytes == strlen(slc_training_csv_head) && !memcmp(text, slc_training_csv_head, bytes)) return 0;
    const uint64_t step = strtoull(digits, &end, 10);
    return *digits >= '1' && *digits <= '9' && *end == ',' ? step : UINT64_MAX;
}

size_t slc_training_lines_until(const char *text, size_t bytes, uint64_t last)
{
    size_t kept = 0;
    while (kept < bytes) {
        const char *end = memchr(text + kept, '\n', bytes - kept);
        if (!end) break;
        const size_t length = (size_t)(end - (text + kept)) + 1;
        if (step_of(text + kept, length) > last) break;
        kept += length;
    }
    return kept;
}
