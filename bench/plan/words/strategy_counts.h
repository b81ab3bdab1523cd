/* The number of units that have each strategy, and its words. Rows of a table that are looked up are not counted: they
 * have no choice. */
#pragma once

#include "lib/plan/job.h"

typedef struct {
    uint32_t of[SLC_STRATEGIES];
} slc_strategy_counts;

slc_strategy_counts slc_strategy_counts_of(const slc_job *job, const slc_strategy *strategies);

typedef struct {
    char text[96];
} slc_strategy_counts_text;

/* Says "3 dp, 4 fsdp". */
slc_strategy_counts_text slc_strategy_counts_in_words(const slc_strategy_counts *counts);
