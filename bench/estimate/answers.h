/* The answers of an estimate: the smallest budget, the needs of each strategy, and plans for budgets. */
#pragma once

#include "bench/estimate/survey.h"
#include "bench/plan/words/strategy_counts.h"
#include "lib/plan/request.h"

/* A plan with one strategy for all units, without overlap, as `train --strategy NAME --schedule serial` makes it. */
typedef struct {
    slc_strategy strategy;
    bool recompute; /* all layers that can */
    uint64_t bytes; /* of a rank, with what the program keeps */
    double step_s;
} slc_strategy_need;

/* Strategies and schedule chosen by the planner. */
typedef struct {
    double of_dp; /* the budget as a share of the least that dp works in; 0: it was given in bytes, or there is none */
    uint64_t budget_bytes; /* 0: none */
    bool fits;
    uint64_t peak_bytes;
    slc_plan_forecast forecast;
    slc_strategy_counts units;
    uint32_t recomputed; /* layers */
} slc_budget_plan;

enum { SLC_NEEDS = 2 * SLC_EXACT_STRATEGIES, SLC_BUDGETS = 4 };

typedef struct {
    uint64_t parameters, smallest_bytes, dp_bytes;
    slc_strategy_need needs[SLC_NEEDS];
    uint32_t need_count;
    slc_budget_plan plans[SLC_BUDGETS];
    uint32_t plan_count;
} slc_answers;

/* Finds the answers that need no budget of the user's: the smallest budget, the strategies, and plans for 100, 80, 60
 * and 40 % of the least that dp works in. `effort_s` is nominal seconds of work for each plan; 0: the planner's.
 * Errors: those of slc_survey_profile and of planning but BUDGET. */
sluice_status slc_answers_find(const slc_survey *survey, double effort_s, slc_answers *out);

/* Plans under the training options' strategy, schedule, recomputation and budget. The caller destroys *profile and
 * answer->plan. Errors: those of slc_survey_profile and of planning; BUDGET says what would work. */
sluice_status slc_answers_plan(const slc_survey *survey, double effort_s, slc_profile **profile,
                               slc_plan_answer *answer);

/* Plans as slc_answers_plan does, but with an existing profile and with other times of its job. Errors: those of
 * planning. */
sluice_status slc_answers_plan_with(const slc_survey *survey, double effort_s, const slc_profile *profile,
                                    const slc_times *times, slc_plan_answer *answer);

/* Fills a row from a plan. */
void slc_budget_plan_of(const slc_profile *profile, const slc_plan_answer *answer, slc_budget_plan *out);
