/* The results of a trade-off as a JSON document (docs/formats.md), and how it is shown. A row is a point, or the joint
 * plan. */
#ifndef SLC_BENCH_BENCH_TRADEOFF_RESULTS_H
#define SLC_BENCH_BENCH_TRADEOFF_RESULTS_H

#include "bench/train/run.h"
#include "lib/plan/profile.h"
#include "sched/study/tradeoff.h"

#include <jansson.h>
#include <stdio.h>

/* What was planned. `throttle` NULL: nothing is measured. NULL: no memory. */
json_t *slc_tradeoff_json(const slc_profile *profile, const slc_tradeoff *tradeoff, uint64_t budget, double tolerance,
                          const char *throttle);
/* Adds a run to a row. False: no memory. */
bool slc_tradeoff_add_run(json_t *row, const slc_training_result *run);
/* After the last run: medians, for points of the same choice too, and the measured shape. */
void slc_tradeoff_conclude(json_t *document);

void slc_tradeoff_show_head(FILE *out, const json_t *document);
void slc_tradeoff_show_row(FILE *out, const json_t *document, const json_t *row);
/* Shapes, and how the joint plan stands to the best share. */
void slc_tradeoff_show_end(FILE *out, const json_t *document);
/* All runs ended with the same weights and within the budget; true without a run. */
bool slc_tradeoff_sound(FILE *out, const json_t *document);

/* `path` NULL: nothing is written. Errors: IO, MEMORY. */
sluice_status slc_tradeoff_write_json(const json_t *document, const char *path);
sluice_status slc_tradeoff_write_csv(const json_t *document, const char *path);
/* tradeoff.json, .csv, .dat, .gp, and the picture, in a folder. Errors: IO, MEMORY. */
sluice_status slc_tradeoff_write(const json_t *document, const char *folder, FILE *out);
sluice_status slc_tradeoff_draw(const json_t *document, const char *folder, FILE *out);

#endif
