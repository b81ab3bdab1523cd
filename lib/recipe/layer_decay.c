#include "lib/recipe/layer_decay.h"

#include "lib/base/numbers/equal_math.h"

void slc_recipe_layer_rates(double decay, uint32_t layers, double *rates)
{
    for (uint32_t g = 0; g < slc_recipe_layer_groups(layers); g++) rates[g] = slc_power(decay, layers + 1 - g);
}
