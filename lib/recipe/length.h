/* The length of the sequences of each step where it grows: short sequences first, which are quick and whose gradients
 * vary less, whole ones later. Li et al., arXiv 2108.06084 (sequence-length warm-up); DeepSpeed's curriculum scheduler
 * at 38327e07; fixed stretches as BERT's pre-training has them (Devlin et al., arXiv 1810.04805, appendix A.2). */
#pragma once

#include <stdint.h>

enum { SLC_RECIPE_STRETCHES_MAX = 32, SLC_RECIPE_ROOT_MAX = 16 };

/* Lengths are tokens of a sequence. {0}: every step has the whole length. */
typedef struct {
    /* Grows from `least` to `most` in the first `over` steps, over > 0, by the root of degree `root` (1: evenly), in
     * multiples of `multiple`; 1 <= least <= most, 1 <= root <= SLC_RECIPE_ROOT_MAX. */
    uint32_t least, most;
    uint64_t over;
    uint32_t root, multiple;
    /* Fixed stretches, which count instead if there are any: a step has the length of the first stretch whose `until`
     * is not below the step's number, from 1, or else that of the last. `until` rises. `least` and `most` are the
     * shortest and the longest length of them. */
    uint32_t stretch_count;
    struct {
        uint32_t length;
        uint64_t until;
    } stretches[SLC_RECIPE_STRETCHES_MAX];
} slc_recipe_length;

/* Returns the length of a step, from 0; 0: the whole one. With t = step + 1, the number of the step:
 *   t < over:  f = floor((t / over)^(1 / root) (most - least) + least), in float64; f - f mod multiple, but not below
 *              `least`
 *   else       most
 * Every processor gets the same. */
uint32_t slc_recipe_length_at(const slc_recipe_length *length, uint64_t step);

/* Returns the first step after `step` that has another length; UINT64_MAX: there is none. */
uint64_t slc_recipe_length_changes(const slc_recipe_length *length, uint64_t step);

/* Returns the steps after which the length stays what it is; 0: it never changes. */
uint64_t slc_recipe_length_settles(const slc_recipe_length *length);
