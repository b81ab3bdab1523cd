/* A pipeline planned on paper: where the layers are cut, what each stage needs, how long a step takes. The programmes
 * of partition.h propose cuts, the packer says whether they fit, the simulator which of them is fastest. */
#pragma once

#include "sched/pipeline/costs.h"

typedef struct {
    const slc_profile *profile; /* its world is R, its micro-batches are M */
    const slc_pipeline_schedule *schedule;
    slc_pipeline_shape shape;
    const uint32_t *first_layer; /* [pieces]; NULL: the planner cuts */
    slc_strategy strategy;       /* SLC_STRATEGIES: sdp if a stage has replicas, else dp */
    uint8_t recompute;           /* 0 no layer; 1 all that can; 2 all that can, if nothing fits without */
    uint64_t budget_bytes;       /* of a rank; 0: none */
} slc_pipeline_request;

typedef struct {
    uint32_t *first_layer; /* [pieces] */
    uint64_t *bytes;       /* [stages] of a rank, as packed, with what the binary reserves */
    uint64_t *older_bytes; /* [stages] of them: values before the latest */
    slc_strategy strategy;
    bool recompute;
    slc_pipeline_program program; /* as many steps as it takes to be in the steady state */
    slc_pipeline_costs costs;
    slc_pipeline_forecast forecast;
    double bound_s; /* no cuts of this profile make a step of this schedule shorter */
} slc_pipeline_plan;

/* Plans. The caller frees the plan by slc_pipeline_plan_fini, after an error too. Deterministic. Errors: ARGUMENT (a
 * shape that the schedule does not have, more pieces than layers, cuts that are not ascending or part a unit's layers,
 * gradients that are reduced in each micro-batch, a strategy that stages do not have: the error names values that
 * work); BUDGET (no cuts fit: the smallest budget that does, and the stage that needs it); MEMORY. */
sluice_status slc_pipeline_plan_make(const slc_pipeline_request *request, slc_pipeline_plan *out);
void slc_pipeline_plan_fini(slc_pipeline_plan *plan);

/* Reads cuts: the names of the first layers of all pieces but the first, with commas. Fills first_layer [pieces].
 * Errors: ARGUMENT (too many or too few, no such layer, not ascending; the error names layers that work). */
sluice_status slc_pipeline_cuts_read(const slc_job *job, const char *text, uint32_t pieces, uint32_t *first_layer);
