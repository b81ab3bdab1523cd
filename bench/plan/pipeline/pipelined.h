/* A planned pipeline as the commands show it. */
#pragma once

#include "bench/plan/pipeline/pipeline_options.h"

#include <jansson.h>
#include <stdio.h>

/* The parts of a step, in seconds. They come from three simulations: one without messages and without the stages' own
 * operations, one with messages, one with all. */
typedef struct {
    double slowest_s;    /* the tasks of the stage that computes most */
    double filling_s;    /* beyond that, the stages wait for each other */
    double messages_s;   /* messages make it longer by so much */
    double operations_s; /* and reductions, updates and gathers */
} slc_pipeline_parts;

/* A plan for all ranks without a pipeline, with as many micro-batches in sum. */
typedef struct {
    bool asked;       /* the micro-batches can be shared by all ranks */
    double step_s;    /* 0: no plan fits */
    double exposed_s; /* of it: compute waits for transfers */
    uint64_t bytes;   /* of a rank */
    uint32_t micro_batches;
} slc_pipeline_rival;

typedef struct {
    slc_profile *profile; /* the caller's; its world is the replicas of a stage */
    slc_pipeline_rival rival;
    uint32_t ranks;
    uint32_t *first_layer; /* of the request */
    slc_pipeline_request request;
    slc_pipeline_plan plan;
    slc_pipeline_parts parts;
} slc_pipelined;

/* Plans what the options say. `strategy`: a name or auto, NULL is auto; `recompute`: auto, none or all, NULL is none;
 * `budget`: as 900MiB, or 60% of the least that dp works in without a pipeline, NULL is none. The caller frees it by
 * slc_pipelined_fini, after an error too. Errors: those of slc_pipeline_options_apply and slc_pipeline_plan_make. */
sluice_status slc_pipelined_make(const slc_pipeline_options *options, slc_profile *profile, const char *strategy,
                                 const char *recompute, const char *budget, slc_pipelined *out);

/* Plans all ranks of the profile without a pipeline, quickly. The profile is as it was afterwards. Errors: those of
 * reading a budget and of planning, but BUDGET: then step_s is 0. */
sluice_status slc_pipelined_without(slc_profile *profile, uint32_t micro_batches, const char *recompute,
                                    const char *budget, slc_pipeline_rival *out);

/* Reads a plan of stages, for which the profile's world and micro-batches are set. Errors: those of
 * slc_pipeline_plan_read. */
sluice_status slc_pipelined_read(slc_profile *profile, const char *path, const slc_plan_outline *outline,
                                 slc_pipelined *out);

/* Writes the plan as JSON; '-' is standard output. Errors: those of writing. */
sluice_status slc_pipelined_write(const slc_pipelined *made, const char *path);

void slc_pipelined_fini(slc_pipelined *made);

/* Prints the table of stages, what a step is made of, and a picture of letters: a line for each stage. `width` is that
 * of the picture in characters. */
void slc_pipelined_print(FILE *out, const slc_pipelined *made);
void slc_pipelined_draw(FILE *out, const slc_pipelined *made, uint32_t width);

/* The plan as JSON (docs/formats.md); NULL: no memory. */
json_t *slc_pipelined_json(const slc_pipelined *made);

/* Writes the timeline of all stages over so many steps. Errors: MEMORY, those of writing. */
sluice_status slc_pipelined_trace(const slc_pipelined *made, uint32_t steps, const char *path);
