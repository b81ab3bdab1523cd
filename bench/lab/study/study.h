/* The studies of `sluice-lab study`: how good plans are on drawn profiles. Each study prints its table and adds its
 * rows to a JSON array. There is no network and no training. */
#pragma once

#include "lib/plan/profile.h"
#include "sched/joint/joint.h"
#include "sched/joint/simple_plans.h"

#include <jansson.h>
#include <stdio.h>

typedef struct {
    FILE *out;
    json_t *rows;
    uint32_t count;       /* number of profiles; 0: the study's own number */
    uint64_t seed;        /* seed of the first profile */
    double effort_s;      /* nominal seconds of each plan; 0: the planner's own */
    uint64_t steps;       /* that each plan will run; 0: planning does not ask */
    const char *profiles; /* folder into which each published profile is written; NULL: none is */
    const char *model;    /* the only published model to plan; NULL: all */
    const char *cluster;  /* the only cluster to plan them on; NULL: all */
    const char *json;     /* the file that the rows go to; NULL: none */
    bool go_on;           /* rows that the file has already are not measured again */
    uint32_t budgets;     /* of each profile; 0: the study's own number */
} slc_study;

/* Each returns an error only if it fails to run; a figure that misses its aim is no error. */
sluice_status slc_study_gaps(const slc_study *study);      /* the slot model next to its bounds */
sluice_status slc_study_budgets(const slc_study *study);   /* adaptive and uniform plans over ten budgets */
sluice_status slc_study_lossy(const slc_study *study);     /* onebit together with sharded units, ten budgets */
sluice_status slc_study_published(const slc_study *study); /* published models against what others plan for them */
sluice_status slc_study_ablation(const slc_study *study);  /* what each part of the planner adds to a step's speed */
sluice_status slc_study_tradeoff(const slc_study *study);  /* memory for the schedule, for strategies, or shared */
sluice_status slc_study_drawn(const slc_study *study);     /* plans for drawn steps against those for whole ones */
sluice_status slc_study_same(const slc_study *study);      /* checksums of plans, and what planning took */

/* Asks for a plan of the profile with these choices; they must outlive the request. */
slc_joint_request slc_study_request(const slc_profile *profile, const slc_free_choices *choices, uint64_t limit);

/* *best_s becomes the shorter of both steps; 0 is no step. */
void slc_study_take_faster(double step_s, double *best_s);
/* Makes the plan that is asked for and notes its step if it is shorter than *step_s; 0 there: none yet. That none fits
 * is no error. */
sluice_status slc_study_try(const slc_joint_request *ask, double *step_s);

/* Makes the joint plan with all choices free; recomputation only if `recompute`. */
sluice_status slc_study_joint(const slc_study *study, const slc_profile *profile, uint64_t limit, bool recompute,
                              slc_joint_answer *answer);
