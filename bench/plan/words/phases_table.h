/* The phases of a whole run: stretches of steps that have one size, with what each takes under its plan. */
#pragma once

#include "bench/plan/words/plans_by_length.h"
#include "bench/plan/words/strategy_counts.h"
#include "lib/recipe/depth.h"
#include "lib/recipe/step_size.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct {
    uint64_t first, steps; /* number of the first step, from 1 */
    uint64_t micro_batches;
    uint32_t length;                /* tokens of a sequence, where they grow; 0: they do not */
    double layers;                  /* that run, in the mean over draws of the run, */
    double step_s;                  /* predicted by the simulator, with the profile's times, over these draws */
    uint64_t sent;                  /* bytes of a step, by each rank; the same mean */
    uint64_t tokens;                /* of all ranks, in all of its steps; 0: not known */
    slc_strategy_counts strategies; /* of its plan */
} slc_run_phase;

typedef struct {
    slc_run_phase *phases;
    size_t count;
    bool one_plan; /* all phases run under one */
    bool drops;    /* steps leave layers out */
    bool by_depth; /* phases have plans of their own, for the layers that their steps keep */
} slc_run_phases;

/* A whole run of `steps` steps. */
typedef struct {
    const slc_plans_by_length *plans;
    slc_recipe_sizes sizes;
    const slc_recipe_depth *depth; /* of a model whose first and last layer always run; NULL: all layers always run */
    uint64_t steps;
    uint64_t sequences; /* whole ones in a micro-batch of all ranks; 0: not known */
    /* Sets the times of the slots of a step that has a length; they are copies of the profile's. NULL: no step has one.
     */
    void (*set_times)(void *context, const slc_phase_plan *under, const slc_recipe_step *size, slc_times *times);
    void *context;
    /* Makes a plan of the whole's job and budget for steps that draw their layers (slc_times.keeps), as a run does when
     * their mean depth has moved; the caller destroys *out. NULL: all phases run under the whole's plan. */
    sluice_status (*plan_drawn)(void *planner, const slc_times *times, slc_plan **out);
    void *planner;
} slc_whole_run;

/* The caller frees *out, after an error too. Errors: MEMORY, those of slc_simulate and of plan_drawn. */
sluice_status slc_run_phases_find(const slc_whole_run *run, slc_run_phases *out);
void slc_run_phases_free(slc_run_phases *phases);

void slc_run_phases_print(FILE *out, const slc_run_phases *phases);
/* Returns an array (docs/formats.md); NULL without memory. */
json_t *slc_run_phases_json(const slc_run_phases *phases);
