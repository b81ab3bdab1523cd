#include "lib/recipe/depth.h"

#include "lib/base/numbers/equal_math.h"
#include "lib/base/numbers/random.h"

double slc_recipe_depth_theta(const slc_recipe_depth *depth, uint64_t step)
{
    return (1 - depth->least) * slc_exponential(-depth->gamma * (double)step) + depth->least;
}

double slc_recipe_depth_keeps(double theta, uint32_t layers, uint32_t layer)
{
    return 1 - layer * (1 - theta) / layers;
}

/* The draw is a multiple of 2^-32 in [0, 1). */
bool slc_recipe_depth_draw(const slc_recipe_depth *depth, uint64_t step, uint32_t layer, double p)
{
    static const uint64_t stream = UINT64_C(0x706c64) << 32; /* apart from those of values, data and dropout */
    uint32_t words[4];
    slc_random_block(depth->seed, stream + layer, step, words);
    return words[0] * 0x1p-32 < p;
}

double slc_recipe_depth_factor(double theta, uint32_t layers, uint32_t layer, bool compat)
{
    return 1 / slc_recipe_depth_keeps(theta, layers, layer + compat);
}

double slc_recipe_depth_mean(double theta, uint32_t layers)
{
    return layers - (layers - 1) * (1 - theta) / 2;
}

uint64_t slc_recipe_depth_changes(const slc_recipe_depth *depth, uint32_t layers, uint64_t step, double share)
{
    const double below = slc_recipe_depth_mean(slc_recipe_depth_theta(depth, step), layers) - share * layers;
    uint64_t before = step, after = UINT64_C(1) << 52;
    if (slc_recipe_depth_mean(slc_recipe_depth_theta(depth, after), layers) > below) return UINT64_MAX;
    while (before + 1 < after) {
        const uint64_t middle = before + (after - before) / 2;
        if (slc_recipe_depth_mean(slc_recipe_depth_theta(depth, middle), layers) > below)
            before = middle;
        else
            after = middle;
    }
    return after;
}
