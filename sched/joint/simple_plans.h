/* Plans of a profile under simple rules: one strategy for all units, one scheduler. The joint plan is compared with
 * them, and a range of budgets is found from them. */
#pragma once

#include "lib/plan/profile.h"
#include "sched/joint/joint.h"
#include "sched/scheduler.h"

typedef struct {
    double step_s, exposed_s; /* seconds; 0: the plan does not fit */
    uint64_t arena_bytes;     /* also valid if the plan does not fit */
} slc_simple_plan;

/* Plans these strategies [units] and this recomputation ([layers]; NULL: of none), ordered by `scheduler`, within
 * `limit` bytes. */
sluice_status slc_simple_plan_make(const slc_profile *profile, const slc_strategy *strategies, const bool *recompute,
                                   const slc_scheduler *scheduler, uint64_t limit, slc_simple_plan *out);

/* Finds the fastest plan of these choices under any baseline within the limit; step_s is 0 if none fits. */
sluice_status slc_simple_plan_fastest_order(const slc_profile *profile, const slc_strategy *strategies,
                                            const bool *recompute, uint64_t limit, slc_simple_plan *out);

/* Plans every unit under `strategy` (or the nearest that its role allows), ordered by `scheduler`, within `limit`
 * bytes. */
sluice_status slc_simple_plan_uniform(const slc_profile *profile, slc_strategy strategy, const slc_scheduler *scheduler,
                                      uint64_t limit, slc_simple_plan *out);

/* Finds the fastest of all baselines' plans under `strategy` within the limit; step_s is 0 if none fits. */
sluice_status slc_simple_plan_fastest_of(const slc_profile *profile, slc_strategy strategy, uint64_t limit,
                                         slc_simple_plan *out);

/* Finds the fastest plan of slc_simple_plan_fastest_of over all strategies but onebit. */
sluice_status slc_simple_plan_fastest_uniform(const slc_profile *profile, uint64_t limit, slc_simple_plan *out);

/* The smallest arena of any plan, and the arena of sdp for all units under one_ahead, in bytes. */
sluice_status slc_simple_plan_range(const slc_profile *profile, bool recompute, uint64_t *least, uint64_t *all_sdp);

/* Arrays for a joint request in which the planner may choose everything: strategies, and recomputation if `recompute`
 * and the layer allow it. */
typedef struct {
    slc_strategy *strategies; /* [2 * units] SLC_STRATEGIES for each unit, then room for an answer */
    uint8_t *recompute;       /* [layers] */
    bool *recomputed;         /* [layers] room for an answer */
} slc_free_choices;

sluice_status slc_free_choices_init(slc_free_choices *c, const slc_job *job, bool recompute);
void slc_free_choices_fini(slc_free_choices *c);
