/* The options of `sluice bench`: those of training, of which some are lists here, and its own. */
#pragma once

#include "bench/sweep/folder/folder.h"
#include "bench/sweep/pipelines.h"
#include "bench/train/options/options.h"

#include <stdbool.h>

enum { SLC_BENCH_LIST_MAX = 64, SLC_BENCH_SHARES_MAX = 101, SLC_BENCH_OPTIONS_MAX = 16 };

typedef struct {
    char *text[SLC_BENCH_LIST_MAX];
    uint64_t count;
    char *storage; /* owned; `text` points into it */
} slc_bench_list;

typedef struct {
    /* Options of text that are lists here hold the text of the lists; those of numbers hold the first one. */
    slc_training_options training;
    /* "none": no budget, no throttle. Strategy "usual": onebit for compressed optimizers, dp for others. Schedule
     * "usual": ilp for auto, one_ahead for the others. Budget "auto:N": see bench/sweep/budgets.h. Optimizer "usual":
     * the one that the strategy requires (bench/train/options/onebit_options.h). */
    slc_bench_list strategies, schedules, budgets, throttles, optimizers, tied;
    double learning_rates[SLC_BENCH_LIST_MAX];                   /* of each optimizer */
    bool rate_given[SLC_BENCH_LIST_MAX];                         /* so that it comes before a recipe's */
    slc_bench_list batches, precisions, recomputes, rank_counts; /* as they would be typed */
    slc_bench_list micro_batches;                                /* likewise (pipelines.h) */
    slc_bench_pipelines pipelines;                               /* some: micro-batches are a step's, of all ranks */
    slc_bench_list recipes;                                      /* files; empty: the options are the recipe */
    slc_training_options *with_recipe;                           /* `training` with each of them; owned */
    uint64_t repeat;
    bool demo;
    const char *output;            /* a folder; NULL: bench/sweep/opening.h chooses one */
    char chosen[SLC_FOLDER_BYTES]; /* that one */
    bool overwrite;                /* results that the folder has are replaced */
    double cell_timeout_s;         /* 0: a run may take any time */

    char **sources; /* of --join: folders or files of results; owned */
    uint64_t source_count;
    bool join; /* instead of a sweep: bench/sweep/join.h */

    bool tradeoff; /* one budget, in shares: bench/sweep/tradeoff/tradeoff.h */
    uint64_t shares;
    const char *profile; /* for a trade-off: predicts from this profile only; NULL: measures */

    /* Set by a bench that starts itself again, for its ranks. */
    int part;               /* descriptor of bench/sweep/folder/under_way.h; -1: this is the whole sweep */
    uint64_t done, overall; /* runs before this part and in all parts; 0: this part is all */

    const char *typed[SLC_BENCH_OPTIONS_MAX]; /* of its own options (slc_command_line) */
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
    /* These are as the user wrote them, but "usual" is replaced by its meaning. */
    const char *strategy, *schedule, *budget, *throttle;
    const char *optimizer, *tied;
    const char *recipe;          /* its file; NULL: none */
    uint64_t ranks;              /* of its world */
    uint64_t repeat;             /* from 1 on */
    uint64_t step_micro_batches; /* of all ranks, or of all replicas of a pipeline */
    char label[128]; /* what tells it from other cells, in words; "": nothing (bench/sweep/figures/label.h) */
    slc_training_options training;
} slc_bench_case;

/* A sweep has a part for each throttle on each number of ranks, because these belong to a world: the number of parts,
 * and what part number `part` has. Ranks 0: as the launcher says. */
uint64_t slc_bench_part_count(const slc_bench_options *options);
const char *slc_bench_part_throttle(const slc_bench_options *options, uint64_t part);
uint64_t slc_bench_part_ranks(const slc_bench_options *options, uint64_t part);

/* Number of runs of one part, in which "auto:N" counts as N. After "auto:N" has been replaced by budgets,
 * slc_bench_case_at fills case number `index` < count of part number `part`. */
uint64_t slc_bench_case_count(const slc_bench_options *options);
void slc_bench_case_at(const slc_bench_options *options, uint64_t part, uint64_t index, slc_bench_case *out);
bool slc_bench_is_labelled(const slc_bench_options *options); /* some case has a label */
