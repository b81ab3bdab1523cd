#include "lib/recipe/length.h"

#include "lib/base/numbers/equal_math.h"

#include <math.h>

static uint32_t growing(const slc_recipe_length *l, uint64_t number)
{
    if (number >= l->over) return l->most;
    const double share = slc_root((double)number / (double)l->over, l->root);
    const uint32_t f = (uint32_t)floor(share * (double)(l->most - l->least) + l->least), down = f - f % l->multiple;
    return down < l->least ? l->least : down;
}

static uint32_t in_stretches(const slc_recipe_length *l, uint64_t number)
{
    uint32_t i = 0;
    while (i + 1 < l->stretch_count && l->stretches[i].until < number) i++;
    return l->stretches[i].length;
}

uint32_t slc_recipe_length_at(const slc_recipe_length *l, uint64_t step)
{
    if (l->stretch_count) return in_stretches(l, step + 1);
    return l->most ? growing(l, step + 1) : 0;
}

uint64_t slc_recipe_length_settles(const slc_recipe_length *l)
{
    if (l->stretch_count) return l->stretch_count > 1 ? l->stretches[l->stretch_count - 2].until : 0;
    return l->most && l->least < l->most ? l->over - 1 : 0;
}

/* Neighbouring stretches may have one length. */
static uint64_t stretch_changes(const slc_recipe_length *l, uint64_t step)
{
    const uint32_t now = in_stretches(l, step + 1);
    for (uint32_t i = 0; i + 1 < l->stretch_count; i++)
        if (l->stretches[i].until > step && in_stretches(l, l->stretches[i].until + 1) != now)
            return l->stretches[i].until;
    return UINT64_MAX;
}

uint64_t slc_recipe_length_changes(const slc_recipe_length *l, uint64_t step)
{
    const uint32_t now = slc_recipe_length_at(l, step);
    if (l->stretch_count) return stretch_changes(l, step);
    if (now == l->most) return UINT64_MAX;
    uint64_t same = step, other = l->over - 1; /* lengths never fall, so halving finds where they rise */
    while (same + 1 < other) {
        const uint64_t middle = same + (other - same) / 2;
        if (slc_recipe_length_at(l, middle) == now)
            same = middle;
        else
            other = middle;
    }
    return other;
}
