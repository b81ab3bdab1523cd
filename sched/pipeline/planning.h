/* A pipeline while it is planned. Private to sched/pipeline. */
#pragma once

#include "sched/pipeline/pipeline_plan.h"

enum { SLC_LEVELS_MAX = 3 };

/* A strategy that units may have; levels go from the least memory to the shortest step. */
typedef struct {
    slc_strategy strategy;
    bool held;
} slc_pipeline_planning_level;

/* Cuts and strategies that fit. */
typedef struct {
    uint32_t *first_layer;    /* [pieces] */
    slc_strategy *strategies; /* [units] */
    bool *held;
    bool recompute;
    double step_s; /* INFINITY: there are none */
} slc_pipeline_planning_choice;

typedef struct {
    const slc_pipeline_request *request;
    slc_pipeline_plan *plan;
    slc_pipeline_planning_level levels[SLC_LEVELS_MAX];
    int level_count;
    slc_pipeline_planning_choice trial;     /* what is asked about */
    slc_pipeline_planning_choice now, best; /* of the configuration that is searched, and of all that have been */
    slc_pipeline_planning_choice base;      /* before some units of a stage get faster strategies */
    slc_pipeline_planning_choice moved;     /* of the programme's cuts, while even ones are moved too */
    bool lacks_room; /* in some search so far, not all units could have the highest level that was asked for */
    const slc_job *job;
    uint32_t pieces, layers;
    slc_pipeline_program step; /* one step: what stages hold follows from it */
    bool *uncut;               /* [layers - 1] */
    double *layer_s, *tail_s, *cut_s, *hidden_s;
    double *paced_s; /* [layers] what the programme is told: layer_s at the pace of the stage that had the layer */
    double *pace;    /* [layers] 1, or how much longer the stage took than it computed */
    uint64_t *fixed, *values, *kept;
    uint64_t budget_bytes; /* the request's; 0 while it is looked at what would be best without */
    uint64_t *limit;       /* [pieces] for the programme */
    uint32_t *held;        /* [pieces] */
} slc_pipeline_planning;

/* Begins to plan; slc_pipeline_planning_fini ends it, after an error too. Errors: those of slc_pipeline_plan_make but
 * BUDGET. */
sluice_status slc_pipeline_planning_init(slc_pipeline_planning *p, const slc_pipeline_request *request,
                                         slc_pipeline_plan *out);
void slc_pipeline_planning_fini(slc_pipeline_planning *p);

/* Makes a job of the choice, which it borrows. */
slc_cut_job slc_pipeline_planning_cut(const slc_pipeline_planning *p, const slc_pipeline_planning_choice *choice);
/* Sums the times and bytes of each layer, which the programme cuts by, with the strategies on trial. */
void slc_pipeline_planning_describe(slc_pipeline_planning *p);
/* Makes the question to the programme; borrowed until the next one. */
slc_flushed_partition slc_pipeline_planning_partition(slc_pipeline_planning *p, bool with_messages);

void slc_pipeline_planning_copy(const slc_pipeline_planning *p, const slc_pipeline_planning_choice *from,
                                slc_pipeline_planning_choice *to);

/* Makes the stages of `best`, simulates them and fills the plan. Errors: MEMORY; FORMAT (a defect of ours). */
sluice_status slc_pipeline_planning_finish(slc_pipeline_planning *p);
