/* Units of a step: each reduction is one, and all-gathers of as many elements as a reduce-scatter belong to it. Pure
 * functions but for the memory. */
#pragma once

#include "bench/nccl/profile/job_steps.h"

#define SLC_NO_GATHER SIZE_MAX

/* Numbers of operations of the step. */
typedef struct {
    size_t reduction, forward_gather, backward_gather; /* SLC_NO_GATHER: none */
} slc_step_unit;

typedef struct {
    slc_step_unit *units; /* in the order of their reductions: the model's last layer first */
    size_t count;
    size_t unmatched; /* gathers that belong to no unit */
} slc_step_units;

/* Finds the units of a step. Units of the same length are told apart by their order: layers are gathered in one order
 * for the forward, and gathered and reduced in the opposite order in the backward. The caller calls
 * slc_step_units_free. Errors: MEMORY. */
sluice_status slc_step_units_find(const slc_job_steps *steps, slc_step_units *out);
void slc_step_units_free(slc_step_units *units);
