/* What `sluice bench` is asked to do: the training options, of which four are lists here, and its own. */
#ifndef SLC_BENCH_BENCH_OPTIONS_H
#define SLC_BENCH_BENCH_OPTIONS_H

#include "bench/training_options.h"

enum { SLC_BENCH_LIST_MAX = 64 };

typedef struct {
    char *text[SLC_BENCH_LIST_MAX];
    uint64_t count;
    char *storage; /* owned */
} slc_bench_list;

typedef struct {
    slc_training_options training; /* strategy, schedule, budget and throttle hold the text of the lists */
    slc_bench_list strategies, schedules, budgets, throttles; /* "none": no budget, no throttle */
    uint64_t repeat;
    const char *output; /* folder */

    /* What a bench that starts itself again says to the ranks. */
    const char *part;       /* where rank 0 leaves its results; NULL: this is the whole sweep */
    uint64_t done, overall; /* runs before this part and in all parts; 0: this part's */
} slc_bench_options;

/* Reads the command line; on an error argp has spoken and exits. The caller frees the lists. Errors: ARGUMENT,
 * UNSUPPORTED, MEMORY. */
sluice_status slc_bench_options_parse(int argc, char **argv, slc_bench_options *out);
void slc_bench_options_free(slc_bench_options *options);

/* The options of one run. `training` refers to the lists' text. */
typedef struct {
    const char *strategy, *schedule, *budget, *throttle; /* as the user wrote them */
    uint64_t repeat;                                     /* from 1 */
    slc_training_options training;
} slc_bench_case;

/* Runs of one throttle; case number `index` < count of throttle number `throttle`. */
uint64_t slc_bench_case_count(const slc_bench_options *options);
void slc_bench_case_at(const slc_bench_options *options, uint64_t throttle, uint64_t index, slc_bench_case *out);

#endif
