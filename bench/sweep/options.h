/* What `sluice bench` is asked to do: the training options, of which five are lists here, and its own. */
#ifndef SLC_BENCH_BENCH_OPTIONS_H
#define SLC_BENCH_BENCH_OPTIONS_H

#include "bench/train/options.h"

#include <stdbool.h>

enum { SLC_BENCH_LIST_MAX = 64, SLC_BENCH_SHARES_MAX = 101 };

typedef struct {
    char *text[SLC_BENCH_LIST_MAX];
    uint64_t count;
    char *storage; /* owned */
} slc_bench_list;

typedef struct {
    slc_training_options training; /* strategy, schedule, budget, throttle, optimizer and tied hold the text of the
                                      lists */
    /* "none": no budget, no throttle. Strategy "usual": onebit for compressed optimizers, dp for others. Schedule
     * "usual": ilp for auto, one_ahead for the others. Budget "auto:N": see bench_budgets.h. Optimizer "usual": as the
     * strategy asks for (training_onebit.h). */
    slc_bench_list strategies, schedules, budgets, throttles, optimizers, tied;
    double learning_rates[SLC_BENCH_LIST_MAX]; /* of the optimizers; 0: --lr */
    uint64_t repeat;
    const char *output; /* folder */

    bool tradeoff; /* one budget, shares of it: bench_tradeoff.h */
    uint64_t shares;
    const char *profile; /* trade-off: of this profile, predicted only; NULL: measured */

    /* What a bench that starts itself again says to the ranks. */
    const char *part;       /* where rank 0 leaves its results; NULL: this is the whole sweep */
    uint64_t done, overall; /* runs before this part and in all parts; 0: this part's */
} slc_bench_options;

/* Reads the command line; on an error argp has spoken and exits. The caller frees the lists. Errors: ARGUMENT,
 * UNSUPPORTED, MEMORY. */
sluice_status slc_bench_options_parse(int argc, char **argv, slc_bench_options *out);
void slc_bench_options_free(slc_bench_options *options);

/* N of "auto:N"; 0: the text is something else. */
uint64_t slc_bench_budget_auto(const char *text);
/* Another list of budgets, as the user would write it. Errors: ARGUMENT, MEMORY. */
sluice_status slc_bench_options_set_budgets(slc_bench_options *options, const char *list);

/* The options of one run. `training` refers to the lists' text. */
typedef struct {
    const char *strategy, *schedule, *budget, *throttle; /* as the user wrote them; "usual" is what that stands for */
    const char *optimizer, *tied;
    uint64_t repeat; /* from 1 */
    slc_training_options training;
} slc_bench_case;

/* Runs of one throttle, with those of "auto:N"; once that is replaced by budgets, case number `index` < count of
 * throttle number `throttle`. */
uint64_t slc_bench_case_count(const slc_bench_options *options);
void slc_bench_case_at(const slc_bench_options *options, uint64_t throttle, uint64_t index, slc_bench_case *out);

#endif
