#include "lib/recipe/batch.h"

#include <math.h>

uint64_t slc_recipe_batch_at(const slc_recipe_batch *b, uint64_t step)
{
    return step < b->over ? b->first + step * (b->most - b->first) / b->over : b->most;
}

/* The first step that has `more` micro-batches beyond the first ones. */
static uint64_t first_step_of(const slc_recipe_batch *b, uint64_t more)
{
    const uint64_t levels = b->most - b->first;
    return (more * b->over + levels - 1) / levels;
}

uint64_t slc_recipe_batch_changes(const slc_recipe_batch *b, uint64_t step)
{
    const uint64_t now = slc_recipe_batch_at(b, step);
    return now == b->most ? UINT64_MAX : first_step_of(b, now - b->first + 1);
}

double slc_recipe_rule_factor(slc_recipe_rule rule, uint64_t sequences, uint64_t base)
{
    const double ratio = rule == SLC_RECIPE_RULE_NONE ? 1 : (double)sequences / (double)base;
    return rule == SLC_RECIPE_RULE_SQRT ? sqrt(ratio) : ratio;
}
