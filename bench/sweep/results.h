/* The results of a sweep: an array of runs as in the design's contract, and the cases that did not fit. They are kept
 * as JSON, so that parts of a sweep that ran in other processes can be joined as they are. */
#ifndef SLC_BENCH_BENCH_RESULTS_H
#define SLC_BENCH_BENCH_RESULTS_H

#include "bench/sweep/options.h"
#include "bench/train/run.h"

#include <jansson.h>
#include <stdbool.h>

typedef struct {
    json_t *runs;        /* [{"model", ..., "throttle", "budget", "repeat"}] */
    json_t *misfits;     /* [{"strategy", "schedule", "budget", "throttle", "why"}]; if an earlier run shows it, also
                            "needed_bytes" and "budget_bytes" */
    json_t *environment; /* of the first part; NULL: none yet */
    /* Text: the budgets that replace "auto:N", for the parts that follow; NULL: there is no "auto:N". */
    json_t *budgets;
} slc_bench_results;

/* Errors: MEMORY. */
sluice_status slc_bench_results_init(slc_bench_results *out);
void slc_bench_results_free(slc_bench_results *results);

sluice_status slc_bench_results_add(slc_bench_results *results, const sluice_world *world, const slc_bench_case *one,
                                    const slc_training_result *run);
/* `why`: the planner's error line. */
sluice_status slc_bench_results_add_misfit(slc_bench_results *results, const slc_bench_case *one, const char *why);

/* Makes the folder and those above it. Errors: PATH, IO, MEMORY. */
sluice_status slc_bench_make_folder(const char *path);

/* Write {"runs", "does_not_fit", "environment"}, and a table of the same. `path` NULL: they write nothing. Errors:
 * PATH, IO. */
sluice_status slc_bench_results_write_json(const slc_bench_results *results, const char *path);
sluice_status slc_bench_results_write_csv(const slc_bench_results *results, const char *path);
/* Appends the contents of such a JSON file; one that is not there, or is empty, adds nothing. Errors: PATH, IO, FORMAT.
 */
sluice_status slc_bench_results_append(slc_bench_results *results, const char *path);

/* ---- Shared by the readers of results ---- */

const char *slc_bench_text(const json_t *row, const char *key); /* "" if missing */
double slc_bench_number(const json_t *row, const char *key);    /* NaN if missing or null; "PART.KEY": inside a part */
/* Writes the strategy for people to read, followed by "split" if tied parameters are split. Returns `text`. */
const char *slc_bench_strategy(const json_t *row, char text[64]);
bool slc_bench_complete(const json_t *run); /* it was not interrupted */
/* Do both rows have the same text under each of the keys? `keys` ends with NULL. */
bool slc_bench_alike(const json_t *a, const json_t *b, const char *const *keys);
/* Is row number `index` the first of those that are alike under `keys`? */
bool slc_bench_is_first(const json_t *rows, size_t index, const char *const *keys);
/* Returns the median of a number over all complete runs that equal `row` under `keys`; NaN: there are none. */
double slc_bench_median(const json_t *runs, const json_t *row, const char *const *keys, const char *number);

#endif
