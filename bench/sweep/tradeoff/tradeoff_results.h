/* The results of a trade-off as a JSON document (docs/formats.md), and their output. A row is a point, or the joint
 * plan. */
#pragma once

#include "bench/train/run.h"
#include "lib/plan/profile.h"
#include "sched/study/tradeoff.h"

#include <jansson.h>
#include <stdio.h>

/* Makes the document of what was planned. `throttle` NULL: nothing will be measured. Returns NULL if there is no
 * memory. */
json_t *slc_tradeoff_json(const slc_profile *profile, const slc_tradeoff *tradeoff, uint64_t budget,
                          const char *throttle);
/* Adds a run to a row. Returns false if there is no memory. */
bool slc_tradeoff_add_run(json_t *row, const slc_training_result *run);
/* Call it after the last run: adds medians, also across points with the same choice, and the measured shape. */
void slc_tradeoff_conclude(json_t *document);

void slc_tradeoff_show_head(FILE *out, const json_t *document);
void slc_tradeoff_show_row(FILE *out, const json_t *document, const json_t *row);
/* Prints the shapes, and the joint plan in comparison with the best share. */
void slc_tradeoff_show_end(FILE *out, const json_t *document);
/* Returns true if all runs ended with the same weights and within the budget, or there was none. Prints what it found
 * to `out`, if there was a run. */
bool slc_tradeoff_sound(FILE *out, const json_t *document);

/* `path` NULL: they write nothing. Errors: PATH, IO, MEMORY. */
sluice_status slc_tradeoff_write_json(json_t *document, const char *path);
sluice_status slc_tradeoff_write_csv(const json_t *document, const char *path);
/* Write tradeoff.json, .csv, .dat, .gp and the picture into a folder. Errors: PATH, IO, MEMORY. */
sluice_status slc_tradeoff_write(json_t *document, const char *folder, FILE *out);
sluice_status slc_tradeoff_draw(const json_t *document, const char *folder, FILE *out);
