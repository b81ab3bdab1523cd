/* Profiles of published models on clusters that are not at hand: each a chain of layers from a table (layer_table.h).
 * Every layer is a unit of fp32 with two states; a table that is looked up and multiplied by is one tied unit. A slot
 * takes as long as its operations at the reached speed, backward twice its forward, recomputing its forward. A layer's
 * output lives until the backward of the last layer that reads it, and its gradient from there to the layer's own
 * backward. Clusters are those of made profiles. Base blocks are as there, but no unit has more than 64 of them. */
#pragma once

#include "lib/plan/profile.h"

typedef struct {
    const char *model;   /* "vgg16", ...: slc_published_name */
    const char *cluster; /* "8xcpu-10gbit", ...: slc_made_cluster_name */
    uint32_t world;      /* number of ranks; 0: the cluster's */
    /* The batch is the least power of two, up to 4,096 samples a rank, whose compute takes `compute_ratio` times as
     * long as a reduce-scatter and an all-gather of all parameters. */
    double compute_ratio; /* above 0 */
    bool can_recompute;
} slc_published_options;

/* Makes a profile, which the caller destroys. Errors: ARGUMENT (no such model or cluster, or no ratio above 0),
 * MEMORY. */
sluice_status slc_published_profile(const slc_published_options *options, slc_profile **out);

/* Names of models in turn; NULL after the last. */
const char *slc_published_name(size_t index);
