/* The planner and what a runtime asks of it; the plan in force. Private to lib/engine. */
#pragma once

#include "lib/plan/plan.h"
#include "lib/plan/request.h"

#include <sluice/plan.h>

typedef struct {
    slc_planner planner;
    slc_cancel cancel;                 /* ends planning when the world has failed */
    char *strategy, *schedule;         /* as configured */
    char *strategy_now, *schedule_now; /* that a re-plan asked for; NULL: the above */
    char *kept;                        /* the file of a plan to begin with; NULL: none */
    uint64_t fuse_bytes;               /* of a fused unit; 0: off; SLC_FUSE_AUTO */
    slc_updates updates;
    bool block_is_open; /* the program leaves the base block to the device (making/base_block.h) */
    bool replan_due;    /* a re-plan, with measured times, comes after some steps */
    uint64_t due_from;  /* steps under the plan that had ended when it became due */
    unsigned drift;     /* percent by which steps may leave the prediction; 0: any. Rank 0's counts */
    uint64_t drifted;   /* number of the step after which a drift was noticed last; 0: none was */
    bool held;         /* steps took what was predicted, or what was accepted, since a plan was last made for a drift */
    bool unproven;     /* the steps of the plan that followed have not been looked at yet */
    double apart;      /* steps over their prediction, if new times did not bring them together; 0: 1 */
    uint64_t dp_bytes; /* as in slc_plan_answer */
} slc_planning;

typedef struct {
    slc_plan *plan;
    uint32_t number; /* from 1 */
    uint32_t made;   /* the highest number of a plan */
    uint64_t steps;  /* that ended under it */
    uint64_t budget_bytes;
    bool measured;               /* it was made from `times`; else from times that were estimated */
    slc_times times;             /* empty if nothing was measured */
    sluice_step_parts predicted; /* from measured times, before the first step; all 0: none */
    slc_plan_forecast forecast;  /* and the rest of its slc_plan_answer */
    char member[48], note[SLC_ERROR_BYTES];
} slc_current_plan;

/* A plan that does not run, and comes back. */
typedef struct {
    slc_plan_answer answer;        /* its plan is NULL: there is none */
    slc_times times;               /* empty if nothing was measured */
    bool measured, unproven_times; /* made from `times`; these are of another shape, so a re-plan is due */
    uint32_t number;
} slc_shape_plan;

/* Times that were measured in steps of a shape. */
typedef struct {
    double extent; /* of their sequences, in the mean (sluice_step_options.extent); 0: none were measured */
    slc_times times;
} slc_shape_times;

enum { SLC_TRIALS_MAX = 8, SLC_TRIAL_STEPS = 3, SLC_TRIAL_ROUNDS = 2 };

/* A plan of the play-off (replan/trials.h). */
typedef struct {
    slc_plan_answer answer;                            /* its plan is NULL while that runs, and after the play-off */
    const char *name;                                  /* static memory */
    double step_s[SLC_TRIAL_STEPS * SLC_TRIAL_ROUNDS]; /* of this rank, in the order in which they ran */
    uint32_t steps;
    double measured_s; /* the median of the slowest ranks' steps; 0: the play-off has not ended */
} slc_trial;

typedef struct {
    slc_trial of[SLC_TRIALS_MAX]; /* the first is the plan that the planner chose */
    uint32_t count, running, kept;
    uint32_t rounds, round, turn_steps; /* steps of this turn that ended */
    uint64_t step_began_ns;
    bool on;
} slc_trials;
