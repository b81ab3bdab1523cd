/* The options of a sweep: those of training, of which some are lists here, and its own. */
#pragma once

#include "bench/sweep/folder/folder.h"
#include "bench/sweep/options/pipelines.h"
#include "bench/train/options/options.h"

#include <stdbool.h>

/* The value of a list that stands for what is usual with the other values of a run. */
#define SLC_BENCH_USUAL "usual"

enum { SLC_BENCH_LIST_MAX = 64, SLC_BENCH_SHARES_MAX = 101, SLC_BENCH_OPTIONS_MAX = 16 };

typedef struct {
    char *text[SLC_BENCH_LIST_MAX];
    uint64_t count;
    char *storage; /* owned; `text` points into it */
} slc_bench_list;

typedef struct {
    /* An option that is a list here holds the text of the list, or, if its values are numbers, the first one. */
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
