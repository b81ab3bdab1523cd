/* Jobs with times drawn from a seed, for tests of the slot model. */
#pragma once

#include "ilp/slot_model.h"

enum { MOST_LAYERS = 16, MOST_UNITS = MOST_LAYERS + 2, MOST_ACTIVATIONS = 2 * MOST_LAYERS };

typedef struct {
    uint64_t seed, drawn;
} slot_dice;

typedef struct {
    slc_job job;
    slc_times times;
    const char *names[MOST_LAYERS];
    bool can_recompute[MOST_LAYERS];
    slc_unit units[MOST_UNITS];
    slc_use uses[MOST_UNITS][2];
    slc_activation_life activations[MOST_ACTIVATIONS];
    slc_workspace_life workspaces[2 * MOST_LAYERS];
    double slot_s[2 * MOST_LAYERS], recompute_s[MOST_LAYERS];
    uint8_t allowed[MOST_UNITS], recompute[MOST_LAYERS];
} slot_job;

uint32_t slot_below(slot_dice *dice, uint32_t limit);

/* Draws a job of `layers` layers and at most `units` units, besides the rows of a split unit; the link's times are
 * about as long as the slots'. */
void slot_job_draw(slot_job *t, slot_dice *dice, uint32_t layers, uint32_t units, uint32_t micro_batches);
