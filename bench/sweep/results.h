/* The results of a sweep: an array of runs as the design's contract has them, and what did not fit. Kept as JSON, so
 * that the parts of a sweep that ran in other processes are joined as they are. */
#ifndef SLC_BENCH_BENCH_RESULTS_H
#define SLC_BENCH_BENCH_RESULTS_H

#include "bench/sweep/options.h"
#include "bench/train/run.h"

#include <jansson.h>
#include <stdbool.h>

typedef struct {
    json_t *runs;        /* [{"model", ..., "throttle", "budget", "repeat"}] */
    json_t *misfits;     /* [{"strategy", "schedule", "budget", "throttle", "why"}], and where an earlier run tells it,
                            "needed_bytes" and "budget_bytes" */
    json_t *environment; /* of the first part; NULL: none yet */
    json_t *budgets;     /* text: what "auto:N" has become, for the parts that follow; NULL: none was asked for */
} slc_bench_results;

/* Errors: MEMORY. */
sluice_status slc_bench_results_init(slc_bench_results *out);
void slc_bench_results_free(slc_bench_results *results);

sluice_status slc_bench_results_add(slc_bench_results *results, const sluice_world *world, const slc_bench_case *one,
                                    const slc_training_result *run);
/* `why`: the planner's line. */
sluice_status slc_bench_results_add_misfit(slc_bench_results *results, const slc_bench_case *one, const char *why);

/* Makes the folder and those above it. Errors: IO. */
sluice_status slc_bench_make_folder(const char *path);

/* {"runs", "does_not_fit", "environment"} and a table of the same. `path` NULL: nothing is written. Errors: IO. */
sluice_status slc_bench_results_write_json(const slc_bench_results *results, const char *path);
sluice_status slc_bench_results_write_csv(const slc_bench_results *results, const char *path);
/* Appends what such a JSON file holds; a file that is not there holds nothing. Errors: IO, FORMAT. */
sluice_status slc_bench_results_append(slc_bench_results *results, const char *path);

/* ---- What readers of results share ---- */

const char *slc_bench_text(const json_t *row, const char *key); /* "" when missing */
double slc_bench_number(const json_t *row, const char *key);    /* NaN when missing or null */
/* The strategy as a person reads it: with "split" behind it where tied parameters are split; `text` is returned. */
const char *slc_bench_strategy(const json_t *row, char text[64]);
bool slc_bench_complete(const json_t *run); /* it was not interrupted */
/* Both rows have the same text under each of the keys, a list that ends with NULL. */
bool slc_bench_alike(const json_t *a, const json_t *b, const char *const *keys);
/* Median of a number over all complete runs that are like `row` under `keys`; NaN: none. */
double slc_bench_median(const json_t *runs, const json_t *row, const char *const *keys, const char *number);

#endif
