/* The layers that each step of a run keeps: progressive layer dropping, Zhang & He, arXiv 2010.13369, as DeepSpeed
 * 38327e07 schedules it (runtime/progressive_layer_drop.py). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* theta falls from 1 to `least`, in (0, 1], at the rate gamma > 0. least 1: every step keeps every layer. */
typedef struct {
    double least, gamma;
    uint64_t seed; /* of the draws */
} slc_recipe_depth;

/* Returns theta of a step, from 0: (1 - least) e^(-gamma step) + least. Every processor gets the same bits. */
double slc_recipe_depth_theta(const slc_recipe_depth *depth, uint64_t step);

/* Returns the probability with which a step of this theta keeps layer `layer` of `layers`, from 0:
 * 1 - layer (1 - theta) / layers. The first is always kept. */
double slc_recipe_depth_keeps(double theta, uint32_t layers, uint32_t layer);

/* Returns true if the layer is kept in this step. The answer depends on (seed, step, layer) and p alone, so every rank
 * and micro-batch and a resumed run get the same answer. */
bool slc_recipe_depth_draw(const slc_recipe_depth *depth, uint64_t step, uint32_t layer, double p);

/* Returns what a kept layer's branches are multiplied by: 1 / p, of the p that the layer is drawn with. `compat`: 1 / p
 * of the layer above it, as DeepSpeed's BERT and its users scale (p counts layers from 1 there), which lets the
 * expected output of a branch grow by up to 1 / (1 - (1 - theta) / layers). */
double slc_recipe_depth_factor(double theta, uint32_t layers, uint32_t layer, bool compat);

/* Returns the first step after `step` whose mean depth is lower than that step's by `share` of all layers or more;
 * UINT64_MAX: there is none. */
uint64_t slc_recipe_depth_changes(const slc_recipe_depth *depth, uint32_t layers, uint64_t step, double share);

/* Returns the layers that a step of this theta keeps in the mean: layers - (layers - 1) (1 - theta) / 2. */
double slc_recipe_depth_mean(double theta, uint32_t layers);
