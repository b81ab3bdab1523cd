/* The lines that a log has of a step: one of JSON, one of CSV. Any thread. */
#pragma once

#include "bench/train/result.h"

#include <stddef.h>

enum { SLC_TRAINING_LINE_BYTES = 1024 };

/* The times that a line tells besides the step's own. */
typedef struct {
    double time_s;    /* seconds since 1970, when the step ended */
    double elapsed_s; /* of the steps of this run so far */
} slc_training_line_times;

extern const char slc_training_csv_head[]; /* the first line of the CSV, with its end */

/* Both functions write a line, with its end, to `out`, which has room for SLC_TRAINING_LINE_BYTES, and return its
 * bytes. A number that does not exist, or is not finite, is null or an empty column; an evaluation that was not made
 * has no keys. */
size_t slc_training_json_line(const slc_training_step *step, const slc_training_line_times *times, char *out);
size_t slc_training_csv_line(const slc_training_step *step, const slc_training_line_times *times, char *out);

/* The lines of an evaluation after the last step have the step's number and the evaluation. */
size_t slc_training_json_end_line(const slc_training_step *step, double time_s, char *out);
size_t slc_training_csv_end_line(const slc_training_step *step, double time_s, char *out);

/* Returns how many bytes of a log's text are whole lines of steps up to number `last`, with the CSV's head. The bytes
 * after these were written after the checkpoint that a run goes on from, or are half a line. */
size_t slc_training_lines_until(const char *text, size_t bytes, uint64_t last);
