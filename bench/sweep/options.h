/* The options of `sluice bench`: those of training, of which six are lists here, and its own. */
#ifndef SLC_BENCH_BENCH_OPTIONS_H
#define SLC_BENCH_BENCH_OPTIONS_H

#include "bench/sweep/folder/folder.h"
#include "bench/train/options/options.h"

#include <stdbool.h>

enum { SLC_BENCH_LIST_MAX = 64, SLC_BENCH_SHARES_MAX = 101 };

typedef struct {
    char *text[SLC_BENCH_LIST_MAX];
    uint64_t count;
    char *storage; /* owned; `text` points into it */
} slc_bench_list;

typedef struct {
    /* strategy, schedule, budget, throttle, optimizer and tied hold the text of the lists. */
    slc_training_options training;
    /* "none": no budget, no throttle. Strategy "usual": onebit for compressed optimizers, dp for others. Schedule
     * "usual": ilp for auto, one_ahead for the others. Budget "auto:N": see bench/sweep/budgets.h. Optimizer "usual":
     * the one that the strategy requires (bench/train/options/onebit_options.h). */
    slc_bench_list strategies, schedules, budgets, throttles, optimizers, tied;
    double learning_rates[SLC_BENCH_LIST_MAX]; /* of each optimizer; 0: --lr */
    uint64_t repeat;                           /* 0 until defaults are set */
    bool demo;
    const char *output;            /* a folder; NULL: bench/sweep/opening.h chooses one */
    char chosen[SLC_FOLDER_BYTES]; /* that one */
    bool overwrite;                /* results that the folder has are replaced */
    double cell_timeout_s;         /* 0: a run may take any time */

    bool tradeoff; /* one budget, in shares: bench/sweep/tradeoff.h */
    uint64_t shares;
    const char *profile; /* for a trade-off: predicts from this profile only; NULL: measures */

    /* Set by a bench that starts itself again, for its ranks. */
    int part;               /* descriptor of bench/sweep/folder/under_way.h; -1: this is the whole sweep */
    uint64_t done, overall; /* runs before this part and in all parts; 0: this part is all */
} slc_bench_options;

/* Reads the command line; on a wrong option argp prints the error and exits. The caller frees the lists. Errors:
 * ARGUMENT, UNSUPPORTED, MEMORY. */
sluice_status slc_bench_options_parse(int argc, char **argv, slc_bench_options *out);
void slc_bench_options_free(slc_bench_options *options);

/* Returns the N of "auto:N"; 0 if the text is something else. */
uint64_t slc_bench_budget_auto(const char *text);
/* Sets another list of budgets, written as a user would write it. Errors: ARGUMENT, MEMORY. */
sluice_status slc_bench_options_set_budgets(slc_bench_options *options, const char *list);

/* The options of one run. `training` points into the lists' text. */
typedef struct {
    /* As the user wrote them, but "usual" is replaced by its meaning. */
    const char *strategy, *schedule, *budget, *throttle;
    const char *optimizer, *tied;
    uint64_t repeat; /* from 1 on */
    slc_training_options training;
} slc_bench_case;

/* Number of runs of one throttle, in which "auto:N" counts as N. After "auto:N" has been replaced by budgets,
 * slc_bench_case_at fills case number `index` < count of throttle number `throttle`. */
uint64_t slc_bench_case_count(const slc_bench_options *options);
void slc_bench_case_at(const slc_bench_options *options, uint64_t throttle, uint64_t index, slc_bench_case *out);

#endif
