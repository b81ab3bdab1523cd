/* Learning rates that fall from the head of a model to its embedding, as BEiT's fine-tuning has them (Bao et al., arXiv
 * 2106.08254, appendix; its LayerDecayValueAssigner): what was learned in pre-training changes the less the nearer it
 * is to the input. */
#pragma once

#include <stdint.h>

/* Groups of a model of `layers` layers: the embedding's, a group for each layer, the head's. */
static inline uint32_t slc_recipe_layer_groups(uint32_t layers)
{
    return layers + 2;
}

/* Fills rates[g], the factor on the learning rate of group g, with decay^(layers + 1 - g): the head has 1. `decay` is
 * in (0, 1]. Every processor gets the same bits. */
void slc_recipe_layer_rates(double decay, uint32_t layers, double *rates);
