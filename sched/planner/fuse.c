/* Decides which small units of neighbouring layers become one.
 *
 * Fusing the group so far with the next unit saves one operation in each reduction and in each gather, so the time of
 * an operation without bytes. It has two costs. The later unit's gradient, which is ready first, waits for the group's
 * backward; so it loses the overlap that it had there, at most its bytes' time on the wire, and at most that backward.
 * In the same way the group's values, which are needed first, come with the later unit's: at most those bytes' time,
 * and at most the group's forward. So units are fused, from the first layer on, while the saving is no less than what
 * may become exposed. Each layer that joins adds to these bounds only what was compared with its own saving, so a group
 * never costs more than it saves. Gathered values and gradients live longer by at most one base block, which no group
 * exceeds.
 *
 * But saved latency is no gain if nobody waited for it, while the gradient that is ready last and the values that are
 * needed first are always waited for. That depends on everything else, so the simulator decides, under the schedule
 * asked for, with free units all sdp and all fsdp. A grouping that is slower in either case is not used; then a
 * grouping without the first layer's unit is tried. The joint plan is not known yet, so `priority` represents it. */
#include "sched/planner.h"

#include "lib/base/status.h"
#include "lib/plan/fused_job.h"
#include "sched/planner/kept.h"
#include "sched/joint/mixed.h"
#include "sched/planner/parts.h"
#include "sched/simulate/simulate.h"
#include "sched/layout/make_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { UNIFORM = 2 }; /* strategies that free units are tried with */
static const slc_strategy tried[UNIFORM] = {SLC_SDP, SLC_FSDP};

/* Times that are only estimated from sizes may be far off. Then the rule assumes the slow wire, and fusing must not be
 * slower either if compute, the wire, or both are this much slower and do not slow each other down. */
enum { DOUBTS = 4, SLOW_WIRE = 2 };
static const double compute_doubt[DOUBTS] = {1, 16, 1, 16}, wire_doubt[DOUBTS] = {1, 1, 8, 8};

typedef struct {
    const slc_job *job;
    const slc_fuse_request *request;
    const slc_times *times;     /* times that the rule uses */
    slc_times doubtful[DOUBTS]; /* variants of estimated times; of measured times only the first, unchanged */
    uint32_t doubts;
    slc_strategy *strategies; /* [units] free, or the strategy that the unit has whatever is fused */
    slc_strategy *scratch;    /* [units] */
    uint32_t *trial;          /* [units] a grouping */
} fusing;

/* ---- The cost model ---- */

/* The group so far. */
typedef struct {
    uint32_t first, last; /* units */
    uint64_t elements;
    double forward_s, backward_s; /* of its layers, seconds */
} group_so_far;

static group_so_far group_of_one(const fusing *f, uint32_t u)
{
    uint32_t layer = f->job->units[u].uses[0].layer;
    return (group_so_far){u, u, f->job->units[u].elements, f->times->slot_s[slc_forward_slot(layer)],
                          f->times->slot_s[slc_backward_slot(f->job, layer)]};
}

static bool pays(const fusing *f, const group_so_far *group, const slc_unit *later)
{
    double reduce_s = slc_transfer_s(f->job, f->times, SLC_ITEM_REDUCE_SCATTER, 0);
    double gather_s = slc_transfer_s(f->job, f->times, SLC_ITEM_GATHER_VALUE, 0);
    double reduce_wire_s =
        slc_operation_s(f->job, f->times, SLC_ITEM_REDUCE_SCATTER, later, later->elements) - reduce_s;
    double gather_wire_s = slc_operation_s(f->job, f->times, SLC_ITEM_GATHER_VALUE, later, later->elements) - gather_s;
    return reduce_s + gather_s >= fmin(reduce_wire_s, group->backward_s) + fmin(gather_wire_s, group->forward_s);
}

static bool may_join(const fusing *f, const group_so_far *group, uint32_t u)
{
    const slc_unit *unit = &f->job->units[group->last], *later = &f->job->units[u];
    const bool *kept = f->request->alone;
    uint64_t elements = group->elements + later->elements, bytes = sluice_dtype_bytes(unit->dtype) * elements;
    return slc_units_join(unit, later) && !(kept && (kept[group->last] || kept[u])) &&
           f->strategies[group->last] == f->strategies[u] && elements <= unit->block_elements &&
           bytes <= f->request->bytes;
}

/* The unit of the next layer that could continue u's group, whatever is between them; UINT32_MAX: none. */
static uint32_t next_layer(const fusing *f, uint32_t u)
{
    for (uint32_t v = u + 1; v < f->job->unit_count; v++)
        if (slc_units_join(&f->job->units[u], &f->job->units[v]) && !(f->request->alone && f->request->alone[v]))
            return v;
    return UINT32_MAX;
}

static void group_units(const fusing *f, bool first_alone, uint32_t *group)
{
    for (uint32_t u = 0; u < f->job->unit_count; u++) group[u] = u;
    for (uint32_t u = 0; u < f->job->unit_count; u++) {
        if (group[u] != u || (first_alone && f->job->units[u].uses[0].layer == 0)) continue;
        group_so_far so_far = group_of_one(f, u);
        for (uint32_t next; (next = next_layer(f, so_far.last)) != UINT32_MAX; so_far.last = next) {
            if (!may_join(f, &so_far, next)) break;
            if (f->request->bytes == SLC_FUSE_AUTO && !pays(f, &so_far, &f->job->units[next])) break;
            group_so_far more = group_of_one(f, next);
            group[next] = u;
            so_far.elements += more.elements;
            so_far.forward_s += more.forward_s;
            so_far.backward_s += more.backward_s;
        }
    }
}

static bool any_group(const slc_job *job, const uint32_t *group)
{
    for (uint32_t u = 0; u < job->unit_count; u++)
        if (group[u] != u) return true;
    return false;
}

/* ---- The simulator's verdict ---- */

typedef struct {
    double step_s[DOUBTS][UNIFORM];
} steps;

static sluice_status simulate_job(fusing *f, const slc_fused_job *fused, slc_strategy free_units,
                                  const slc_times *times, double *step_s)
{
    slc_plan *plan = NULL;
    slc_forecast forecast;
    const slc_job *job = &fused->job;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        slc_strategy strategy = f->strategies[fused->first_of[u]];
        f->scratch[u] = slc_unit_strategy(job, &job->units[u], strategy == SLC_STRATEGIES ? free_units : strategy);
    }
    slc_scheduling in = {
        .job = job, .strategies = f->scratch, .times = times, .limit = UINT64_MAX, .cancel = f->request->plan->cancel};
    const slc_scheduler *asked = slc_scheduler_find(f->request->plan->schedule);
    sluice_status status = slc_plan_make(&in, slc_scheduler_is_joint(asked) ? &slc_scheduler_priority : asked, &plan);
    if (!status) status = slc_simulate(job, times, plan, NULL, &forecast);
    if (!status) *step_s = forecast.step_s;
    slc_plan_destroy(plan);
    return status;
}

static sluice_status measure_grouping(fusing *f, const uint32_t *group, steps *out)
{
    slc_fused_job fused;
    sluice_status status = slc_fused_job_init(f->job, group, &fused);
    *out = (steps){0};
    for (uint32_t d = 0; d < f->doubts; d++)
        for (int k = 0; !status && k < (slc_strategies_free(f->job, f->strategies) ? UNIFORM : 1); k++)
            status = simulate_job(f, &fused, tried[k], &f->doubtful[d], &out->step_s[d][k]);
    slc_fused_job_fini(&fused);
    return status;
}

static bool no_slower(const steps *a, const steps *b)
{
    for (int d = 0; d < DOUBTS; d++)
        for (int k = 0; k < UNIFORM; k++)
            if (a->step_s[d][k] > b->step_s[d][k] * (1 + 1e-9)) return false;
    return true;
}

static void fuse_nothing(const fusing *f, uint32_t *group)
{
    for (uint32_t u = 0; u < f->job->unit_count; u++) group[u] = u;
}

/* Writes the grouping that pays to `group`, in which nothing is fused yet. */
static sluice_status choose_grouping(fusing *f, uint32_t *group)
{
    steps whole, fused;
    group_units(f, false, f->trial);
    if (!any_group(f->job, f->trial)) return SLUICE_OK;
    sluice_status status = measure_grouping(f, group, &whole);
    for (int first_alone = 0; !status && first_alone < 2; first_alone++) {
        group_units(f, first_alone, f->trial);
        if (!any_group(f->job, f->trial)) continue;
        status = measure_grouping(f, f->trial, &fused);
        if (status || !no_slower(&fused, &whole)) continue;
        memcpy(group, f->trial, f->job->unit_count * sizeof *group);
        break;
    }
    return status;
}

/* ---- The budget ---- */

/* Undoes all fusing if the plan that will be asked for does not fit then, whether or not it fits otherwise. */
static sluice_status keep_to_budget(const fusing *f, uint32_t *group)
{
    const slc_plan_request *asked = f->request->plan;
    if (!any_group(f->job, group) || (!asked->budget_bytes && asked->budget_of_dp == 0)) return SLUICE_OK;
    slc_fused_job fused;
    slc_plan_answer answer = {0};
    slc_plan_request request = *asked;
    sluice_status status = slc_fused_job_init(f->job, group, &fused);
    if (status) return status;
    for (uint32_t u = 0; u < fused.job.unit_count; u++)
        f->scratch[u] = asked->forced ? asked->forced[fused.first_of[u]] : SLC_STRATEGIES;
    request.forced = f->scratch;
    status = slc_plan_for_budget(&fused.job, &request, &answer);
    slc_plan_destroy(answer.plan);
    slc_fused_job_fini(&fused);
    if (status == SLUICE_ERR_MEMORY || status == SLUICE_ERR_INTERRUPTED) return status;
    if (status) fuse_nothing(f, group);
    return SLUICE_OK;
}

/* ---- All together ---- */

/* A seed draws strategies for units after fusing, so they are free here. */
static sluice_status parse_strategies(const fusing *f)
{
    const slc_plan_request *asked = f->request->plan;
    bool drawn = asked->strategy && !strncmp(asked->strategy, "random:", strlen("random:"));
    sluice_status status = slc_strategies_parse(f->job, asked->strategy, f->strategies);
    for (uint32_t u = 0; drawn && u < f->job->unit_count; u++) f->strategies[u] = SLC_STRATEGIES;
    if (!status) slc_strategies_force(f->job, asked->forced, f->strategies);
    if (!status && !(asked->schedule && slc_scheduler_find(asked->schedule))) status = SLUICE_ERR_ARGUMENT;
    return status;
}

static sluice_status fuse_within_budget(fusing *f, uint32_t *group)
{
    sluice_status status = parse_strategies(f);
    if (status) return status == SLUICE_ERR_MEMORY ? status : SLUICE_OK;
    if (f->request->bytes == SLC_FUSE_AUTO)
        status = choose_grouping(f, group);
    else
        group_units(f, false, group);
    return status ? status : keep_to_budget(f, group);
}

static sluice_status set_times(fusing *f)
{
    const slc_times *known = f->request->plan->times;
    sluice_status status = SLUICE_OK;
    uint32_t doubts = known ? 1 : DOUBTS;
    for (; !status && f->doubts < doubts; f->doubts++) {
        slc_times *times = &f->doubtful[f->doubts];
        status = known ? slc_times_copy(f->job, known, times) : slc_times_estimate(f->job, times);
        if (status) break;
        for (uint32_t s = 0; s < slc_job_slots(f->job); s++) times->slot_s[s] *= compute_doubt[f->doubts];
        if (f->doubts) times->link.kappa = 0;
        times->link.reduce_scatter.bytes_per_s /= wire_doubt[f->doubts];
        times->link.all_gather.bytes_per_s /= wire_doubt[f->doubts];
    }
    f->times = &f->doubtful[known ? 0 : SLOW_WIRE];
    return status;
}

sluice_status slc_fuse_units(const slc_job *job, const slc_fuse_request *request, uint32_t *group)
{
    fusing f = {.job = job, .request = request};
    fuse_nothing(&f, group);
    if (request->plan->kept) return slc_kept_groups(job, request->plan->kept, group);
    sluice_status status = set_times(&f);
    if (status) goto out;
    f.strategies = calloc(2 * (size_t)job->unit_count + 1, sizeof *f.strategies);
    f.trial = calloc((size_t)job->unit_count + 1, sizeof *f.trial);
    if (f.strategies && f.trial) {
        f.scratch = f.strategies + job->unit_count;
        status = fuse_within_budget(&f, group);
        if (slc_cancelled(request->plan->cancel)) status = slc_cancel_check(request->plan->cancel);
    } else {
        status = slc_error(SLUICE_ERR_MEMORY, "fusing %u units", job->unit_count);
    }
    free(f.strategies);
    free(f.trial);
out:
    for (uint32_t d = 0; d < f.doubts; d++) slc_times_fini(&f.doubtful[d]);
    return status;
}
