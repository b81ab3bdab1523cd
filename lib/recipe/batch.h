/* The micro-batches of each step where they grow: small steps while the gradient points far, large ones later, as Smith
 * et al., arXiv 1711.00489, and GPT-3 (arXiv 2005.14165, table 2.1) have them. */
#pragma once

#include <stdint.h>

/* Grows from `first` to `most` in equal stretches of the first `over` steps. over 0: all steps have `most`. */
typedef struct {
    uint64_t first, most; /* 1 <= first <= most */
    uint64_t over;
} slc_recipe_batch;

/* Returns the micro-batches of a step, from 0:
 *   t < over:  first + floor(t (most - first) / over)
 *   else       most */
uint64_t slc_recipe_batch_at(const slc_recipe_batch *batch, uint64_t step);

/* Returns the first step after `step` that has another number of micro-batches; UINT64_MAX: there is none. */
uint64_t slc_recipe_batch_changes(const slc_recipe_batch *batch, uint64_t step);

/* The rule by which a learning rate that was found for steps of one size follows their size: Goyal et al., arXiv
 * 1706.02677 (linear); Krizhevsky, arXiv 1404.5997, and You et al., arXiv 1904.00962 (the square root). */
typedef enum { SLC_RECIPE_RULE_NONE, SLC_RECIPE_RULE_LINEAR, SLC_RECIPE_RULE_SQRT } slc_recipe_rule;

/* Returns what the learning rate of a step of `sequences` is multiplied by, where it was found for `base` > 0:
 * sequences / base, or its square root; 1 without a rule. */
double slc_recipe_rule_factor(slc_recipe_rule rule, uint64_t sequences, uint64_t base);
