/* A profile while it is made. Private to bench/nccl. */
#pragma once

#include "bench/nccl/profile/compute_times.h"
#include "bench/nccl/profile/link_fit.h"
#include "lib/plan/profile_draft.h"

/* Layers and units have one order, the forward's; units.units has the opposite one. */
typedef struct {
    const slc_nccl_records *records;
    uint64_t reserved_bytes;
    slc_job_steps steps;
    slc_step_units units;
    slc_compute_times times; /* of the run itself, or of the one on one rank */
    bool computed_apart;     /* the latter */
    double step_s;           /* of the run itself */
    slc_link_figures link;
    slc_profile_draft draft;
    bool *half; /* units in fp16, which the profile calls bf16 */
} slc_profile_maker;

static inline const slc_step_operation *slc_maker_reduction(const slc_profile_maker *maker, uint32_t layer)
{
    return &maker->steps.operations[maker->units.units[maker->units.count - 1 - layer].reduction];
}

/* Says where the figures come from: measured, estimated, bounds, left out. The caller frees the text. Errors: MEMORY.
 */
sluice_status slc_profile_source(const slc_profile_maker *maker, char **out);
