/* The line of a step: on a terminal one line that is rewritten in place, in a file one a step. Rank 0 only. */
#pragma once

#include "bench/train/result.h"

#include <stdio.h>

enum { SLC_TRAINING_LATEST = 31, SLC_TRAINING_SHOWN_BYTES = 512 };

/* The time left. It follows the latest steps slowly, so that one long step does not make it jump. */
typedef struct {
    double latest_s[SLC_TRAINING_LATEST], latest_tokens[SLC_TRAINING_LATEST]; /* of steps under one plan */
    uint64_t tokens;                                                          /* up to the latest step */
    uint64_t known;                                                           /* how many there were under it */
    uint32_t plan;
    double between_s; /* evaluations, saves and all else between steps; not planning, which comes seldom */
    uint64_t shown;   /* steps so far */
    double left_s;
} slc_training_time_left;

/* Takes a step that ended `interval_s` after the one before (the first one: 0), of which `steps_left` follow. Returns
 * the seconds left. */
double slc_training_time_left_after(slc_training_time_left *left, const slc_training_step *step, double interval_s,
                                    uint64_t steps_left);
/* Return the mean seconds and the mean tokens of the latest steps under one plan. */
double slc_training_latest_step_s(const slc_training_time_left *left);
double slc_training_latest_tokens(const slc_training_time_left *left);

typedef struct {
    FILE *out;
    bool terminal;
    uint64_t steps;     /* of the whole run */
    uint64_t images;    /* a step; 0: text, whose tokens each step tells */
    bool language;      /* losses are of tokens, and their exponential is a perplexity */
    bool verbose;       /* with what stands at gates and the memory */
    double peak_step_s; /* a step would take, were its matrix products all and at their peak; 0: not known */
    slc_training_time_left left;
    uint64_t before_ns, shown_ns; /* the end of the step before; the last time that the line was rewritten */
    bool line_open;
} slc_training_progress;

void slc_training_progress_init(slc_training_progress *progress, uint64_t steps, uint64_t images);
void slc_training_progress_show(slc_training_progress *progress, const slc_training_step *step);
void slc_training_progress_end(slc_training_progress *progress); /* ends the line */

/* Writes the line of a step without its end, into SLC_TRAINING_SHOWN_BYTES. */
void slc_training_progress_line(const slc_training_progress *progress, const slc_training_step *step, char *out);

#define SLC_TRAINING_MOST_LOSS 100.0 /* beyond it a perplexity is no number that says anything */

/* "0:34", "1:02:03", "2 d 3 h" */
void slc_training_format_time(double seconds, char out[32]);
