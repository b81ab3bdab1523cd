/* The results of a sweep: an array of runs (docs/formats.md), and the cases that did not fit. They are kept as JSON, so
 * that parts of a sweep that ran in other processes can be joined as they are. */
#pragma once

#include "bench/sweep/options/options.h"
#include "bench/train/run.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct {
    json_t *runs;        /* [{"model", ..., "throttle", "budget", "repeat"}] */
    json_t *misfits;     /* [{"strategy", "schedule", "budget", "throttle", "why", "needed_bytes", "budget_bytes"}] */
    json_t *failures;    /* [{the same, "repeat", "why"}]: cells that ended with an error, or with their ranks */
    json_t *environment; /* of the first run; NULL: none yet */
    json_t *settings;    /* bench/sweep/folder/agreement.h; NULL: not known */
    json_t *budget_ends; /* {"least_bytes", "all_sdp_bytes"}, between which "auto:N" lies; NULL: not looked for yet */
} slc_bench_results;

/* A cell is what a sweep runs once or several times; rows of one cell are alike under these keys. Ends with NULL. */
extern const char *const slc_bench_cell_keys[];

/* Errors: MEMORY. */
sluice_status slc_bench_results_init(slc_bench_results *out);
void slc_bench_results_free(slc_bench_results *results);

/* Adds a run. `plan_sha256` is the hash of all that the plan has carried out. `log` is the folder of the run's log
 * below that of the sweep; "": there is none. Errors: MEMORY. */
sluice_status slc_bench_results_add(slc_bench_results *results, const sluice_world *world, const slc_bench_case *one,
                                    const slc_training_result *run, const char *plan_sha256, const char *log);
/* Adds a case that does not fit its budget. `why` is the planner's error line, which says what is needed. Errors:
 * MEMORY. */
sluice_status slc_bench_results_add_misfit(slc_bench_results *results, const slc_bench_case *one, const char *why);

/* Adds a run that failed; `why` says how it ended. Replaces an interrupted run of the same cell and repetition. Errors:
 * MEMORY. */
sluice_status slc_bench_results_add_failure(slc_bench_results *results, const slc_bench_case *one, const char *why);
/* Returns the row that the cell of a case would have without a figure: its place in the sweep, and its settings. NULL
 * without memory. */
json_t *slc_bench_case_row(const slc_bench_case *one);
/* Removes rows of cells that were interrupted or, with `failures`, have failed, so that they can be run again. */
void slc_bench_results_drop_unfinished(slc_bench_results *results, bool failures);

/* Writes everything. `path` NULL: it writes nothing. Errors: PATH, IO. */
sluice_status slc_bench_results_write_json(const slc_bench_results *results, const char *path);
/* Reads such a JSON file; if there is none, *out is empty. The caller frees it, also after an error. Errors: PATH,
 * IO, FORMAT, MEMORY. */
sluice_status slc_bench_results_read(const char *path, slc_bench_results *out);

/* ---- Shared by the readers of results ---- */

/* The value of a key, "PART.KEY" inside a part; NULL if missing. */
const json_t *slc_bench_value(const json_t *row, const char *key);
const char *slc_bench_text(const json_t *row, const char *key); /* "" if missing */
bool slc_bench_is_auto(const json_t *row);                      /* the planner chose the strategies */
double slc_bench_number(const json_t *row, const char *key);    /* NaN if missing or null */
/* Writes a blank and the number, or `none` if it is NaN: only plans made from measured times predict a step, only
 * repetitions have a spread, and a step's median takes some steps. */
void slc_bench_put_number(FILE *file, int width, int digits, double value, const char *none);
/* Writes the strategy for people to read, followed by "split" if tied parameters are split. Returns `text`. */
const char *slc_bench_strategy(const json_t *row, char text[64]);
/* Adds the row's label in brackets, if it has one, to a name: "dp (batch 8)". Returns `text`. */
const char *slc_bench_labelled(const char *name, const json_t *row, char text[256]);
bool slc_bench_complete(const json_t *run); /* it was not interrupted */
/* Returns true if both rows have the same value under each of the keys. `keys` ends with NULL. */
bool slc_bench_alike(const json_t *a, const json_t *b, const char *const *keys);
/* Returns true if row number `index` is the first of those that are alike under `keys`. */
bool slc_bench_is_first(const json_t *rows, size_t index, const char *const *keys);
/* Returns the median of a number over all complete runs that equal `row` under `keys`; NaN: there are none. */
double slc_bench_median(const json_t *runs, const json_t *row, const char *const *keys, const char *number);
