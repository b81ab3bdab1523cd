#include "lib/recipe/step_size.h"

#include "lib/base/integer.h"

slc_recipe_step slc_recipe_step_at(const slc_recipe_sizes *s, uint64_t step)
{
    const uint32_t length = slc_recipe_length_at(&s->length, step), used = length ? length : s->whole;
    const uint32_t pieces = s->folds ? s->whole / used : 1;
    const uint64_t micro_batches = slc_recipe_batch_at(&s->batch, step);
    return (slc_recipe_step){
        .micro_batches = micro_batches, .length = length, .pieces = pieces, .tokens = micro_batches * pieces * used};
}

uint64_t slc_recipe_size_changes(const slc_recipe_sizes *s, uint64_t step)
{
    return slc_least(slc_recipe_batch_changes(&s->batch, step), slc_recipe_length_changes(&s->length, step));
}

uint64_t slc_recipe_tokens(const slc_recipe_sizes *s, uint64_t from, uint64_t to)
{
    uint64_t sum = 0;
    while (from < to) {
        const uint64_t next = slc_least(slc_recipe_size_changes(s, from), to);
        sum += (next - from) * slc_recipe_step_at(s, from).tokens;
        from = next;
    }
    return sum;
}
