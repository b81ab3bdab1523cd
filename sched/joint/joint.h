/* The joint plan: strategies, recomputation and schedule together, the fastest member of a search by simulation. Its
 * members are every scheduler on every uniform strategy that fits, and the slot model's answer made real (runs of
 * blocks, packed, searched locally), or without a solver the mixtures of `mixed`; so no baseline is ever better than
 * the result. */
#pragma once

#include "sched/joint/joint_request.h"
#include "sched/simulate/forecast.h"

typedef struct {
    slc_plan *plan; /* validated; the receiver destroys it */
    slc_forecast forecast;
    char member[48]; /* name in the joint search: "ilp", "greedy, all sdp" */
    double bound_s;  /* lower bound of the step of any valid plan within the limit; 0: not known */
    double model_s;  /* the slot model's objective for its answer; 0: it found none */
    double first_s;  /* seconds until the first valid plan */
    double solver_s, total_s;
    double effort_s;        /* nominal seconds that were spent */
    slc_planning_end ended; /* why planning ended */
    char note[200];         /* problems on the way that planning survived; else empty */
} slc_joint_answer;

/* The effort of a request in nominal seconds. If it gives none: 0.9 up to 48 layers, rising to 4.5 from 126 layers on,
 * twice that if recomputation is free. */
double slc_joint_effort_s(const slc_joint_request *request);

/* Makes the joint plan. Everything keeps to the effort but one plan of fsdp and, if nothing else fits, that of least
 * memory. The search for the latter keeps its share of the effort (slc_least_memory_share_s) until there is a plan.
 * Errors: BUDGET (no member fits; *least, if not NULL, is the smallest arena seen), MEMORY, INTERRUPTED (cancelled). */
sluice_status slc_joint_plan(const slc_joint_request *request, slc_joint_answer *answer, uint64_t *least);
