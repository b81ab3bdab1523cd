/* The runs of a sweep, which are the combinations of its lists. */
#pragma once

#include "bench/sweep/options/sweep_options.h"

/* Returns the N of "auto:N"; 0 if the text is something else. */
uint64_t slc_bench_budget_auto(const char *text);

/* Counts the combinations of all lists of a part without the budgets, whose number is not known while they are
 * "auto:N". */
uint64_t slc_bench_combinations(const slc_bench_options *options);

/* Returns the text of a budget or a throttle as an option of training has it: "" for "none". */
const char *slc_bench_or_none(const char *text);

/* The options of one run. `training` points into the lists' text. */
typedef struct {
    /* Texts as the user wrote them; only "usual" is replaced by its meaning. */
    const char *strategy, *schedule, *budget, *throttle;
    const char *optimizer, *tied;
    const char *recipe;          /* its file; NULL: none */
    uint64_t ranks;              /* of its world */
    uint64_t repeat;             /* from 1 on */
    uint64_t step_micro_batches; /* of all ranks, or of all replicas of a pipeline */
    char label[128]; /* what tells it from other cells, in words; "": nothing (bench/sweep/figures/label.h) */
    slc_training_options training;
} slc_bench_case;

/* A sweep has a part for each throttle on each number of ranks, because these belong to a world. These functions return
 * the number of parts, and the throttle and the ranks of part number `part`; 0 ranks: as many as the launcher says. */
uint64_t slc_bench_part_count(const slc_bench_options *options);
const char *slc_bench_part_throttle(const slc_bench_options *options, uint64_t part);
uint64_t slc_bench_part_ranks(const slc_bench_options *options, uint64_t part);

/* Number of runs of one part, in which "auto:N" counts as N. After "auto:N" has been replaced by budgets,
 * slc_bench_case_at fills case number `index` < count of part number `part`. */
uint64_t slc_bench_case_count(const slc_bench_options *options);
void slc_bench_case_at(const slc_bench_options *options, uint64_t part, uint64_t index, slc_bench_case *out);
bool slc_bench_is_labelled(const slc_bench_options *options); /* some case has a label */
