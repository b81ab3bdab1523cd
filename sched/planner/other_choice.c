/* Each other strategy is measured first, because most that do not fit are refused at once; those that may fit are
 * planned like a user's. */
#include "sched/planner/other_choice.h"

#include "lib/base/status.h"
#include "lib/plan/strategy_table.h"
#include "sched/layout/make_plan.h"
#include "sched/planner.h"

#include <stdlib.h>

/* Packing again may save a little of what a simple order needs; a choice above the budget by less than this share of it
 * is planned all the same. */
enum { CLOSE = 50 };

typedef struct {
    const slc_job *job;
    slc_plan_request request; /* for the choices below */
    slc_strategy *strategies; /* [units] */
    uint8_t *recompute;       /* [L] */
    bool *recomputed;         /* [L] the same */
} other;

static sluice_status other_init(other *o, const slc_job *job, const slc_plan_request *made_by, const slc_plan *plan)
{
    *o = (other){.job = job,
                 .request = *made_by,
                 .strategies = calloc((size_t)job->unit_count + 1, sizeof *o->strategies),
                 .recompute = calloc((size_t)job->layer_count + 1, sizeof *o->recompute),
                 .recomputed = calloc((size_t)job->layer_count + 1, sizeof *o->recomputed)};
    if (!o->strategies || !o->recompute || !o->recomputed) return slc_error(SLUICE_ERR_MEMORY, "another choice");
    for (uint32_t l = 0; l < job->layer_count; l++)
        o->recompute[l] = o->recomputed[l] = plan->recompute && plan->recompute[l];
    o->request.strategy = "auto";
    o->request.forced = o->strategies;
    o->request.recompute = o->recompute;
    o->request.budget_of_dp = 0;
    o->request.kept = NULL;
    return SLUICE_OK;
}

static void other_fini(other *o)
{
    free(o->strategies);
    free(o->recompute);
    free(o->recomputed);
}

/* Measures the plan that the schedule makes first; a joint one begins with simple orders. */
static sluice_status measure(const other *o, uint64_t limit, uint64_t *bytes)
{
    const slc_scheduler *asked = slc_scheduler_find(o->request.schedule);
    const slc_scheduler *first = slc_scheduler_is_joint(asked) ? &slc_scheduler_serial : asked;
    const slc_scheduling in = {.job = o->job,
                               .strategies = o->strategies,
                               .recompute = o->recomputed,
                               .times = o->request.times,
                               .limit = limit,
                               .cancel = o->request.cancel};
    uint64_t second = UINT64_MAX;
    sluice_status status = slc_plan_measure(&in, first, UINT64_MAX, bytes);
    if (!status && first != asked) status = slc_plan_measure(&in, &slc_scheduler_one_ahead, UINT64_MAX, &second);
    if (second < *bytes) *bytes = second;
    *bytes += o->job->reserved_bytes;
    return status;
}

/* Tries the choices as they stand, of which the changed units have `strategy`. */
static sluice_status try_choices(const other *o, slc_strategy strategy, slc_other_choice *out)
{
    const uint64_t budget = o->request.budget_bytes, reserved = o->job->reserved_bytes;
    const uint64_t limit = !budget ? UINT64_MAX : budget > reserved ? budget - reserved : 0;
    slc_plan_answer answer = {0};
    *out = (slc_other_choice){.strategy = strategy};
    sluice_status status = measure(o, limit, &out->bytes);
    if (status || (budget && out->bytes > budget + budget / CLOSE)) return status;
    status = slc_plan_for_budget(o->job, &o->request, &answer);
    if (status) return status == SLUICE_ERR_BUDGET ? SLUICE_OK : status;
    out->fits = true;
    out->step_s = answer.forecast.step_s;
    out->bytes = answer.plan->arena_bytes + reserved;
    slc_plan_destroy(answer.plan);
    return SLUICE_OK;
}

static bool is_better(const slc_other_choice *a, const slc_other_choice *b)
{
    if (b->strategy == SLC_STRATEGIES || a->fits != b->fits) return b->strategy == SLC_STRATEGIES || a->fits;
    return a->fits && a->step_s != b->step_s ? a->step_s < b->step_s : a->bytes < b->bytes;
}

static uint32_t first_of(const slc_job *job, const bool *change)
{
    uint32_t u = 0;
    while (u < job->unit_count && !change[u]) u++;
    return u;
}

sluice_status slc_other_choice_find(const slc_job *job, const slc_plan_request *made_by, const slc_plan *plan,
                                    const bool *change, slc_other_choice *out)
{
    const uint32_t first = first_of(job, change);
    other o = {0};
    *out = (slc_other_choice){.strategy = SLC_STRATEGIES};
    if (first == job->unit_count || job->world == 1) return SLUICE_OK;
    const uint8_t offered = slc_offered_strategies(job, &job->units[first], true);
    sluice_status status = other_init(&o, job, made_by, plan);
    for (int k = 0; !status && k < SLC_STRATEGIES; k++) {
        slc_other_choice one;
        if (!(offered >> k & 1) || plan->strategies[first] == (slc_strategy)k) continue;
        for (uint32_t u = 0; u < job->unit_count; u++)
            o.strategies[u] = change[u] ? slc_unit_strategy(job, &job->units[u], (slc_strategy)k) : plan->strategies[u];
        status = try_choices(&o, (slc_strategy)k, &one);
        if (!status && is_better(&one, out)) *out = one;
    }
    other_fini(&o);
    return status;
}
