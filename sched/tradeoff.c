/* Each share becomes a choice of strategies, and that a plan whose schedule gets the rest of the budget. */
#include "sched/tradeoff.h"

#include "lib/base/status.h"
#include "lib/plan/strategy_table.h"
#include "sched/joint.h"
#include "sched/live_bytes.h"
#include "sched/planner_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static sluice_status no_memory(void)
{
    return slc_error(SLUICE_ERR_MEMORY, "trade-off");
}

/* ---- What is free ---- */

static uint64_t kept_beyond_fsdp(const slc_job *job, const slc_strategy *strategies)
{
    uint64_t bytes = 0;
    for (uint32_t u = 0; u < job->unit_count; u++)
        bytes +=
            slc_resident_bytes(job, &job->units[u], strategies[u]) - slc_resident_bytes(job, &job->units[u], SLC_FSDP);
    return bytes;
}

static sluice_status measure_floor(const slc_job *job, const slc_strategy *all_fsdp, const bool *recompute,
                                   uint64_t *bytes)
{
    const slc_scheduling in = {.job = job, .strategies = all_fsdp, .recompute = recompute};
    slc_live_bytes live;
    int64_t most = 0;
    if (!slc_live_bytes_init(&live, &in)) return no_memory();
    for (uint32_t s = 0; s < slc_job_slots(job); s++)
        if (live.slot_bytes[s] > most) most = live.slot_bytes[s];
    *bytes = (uint64_t)(live.resident + most);
    slc_live_bytes_fini(&live);
    return SLUICE_OK;
}

static void choose_recompute(const slc_tradeoff_request *r, uint8_t least, bool *out)
{
    for (uint32_t l = 0; l < r->job->layer_count; l++)
        out[l] = r->recompute && r->recompute[l] && r->recompute[l] <= least;
}

static sluice_status find_free(const slc_tradeoff_request *r, slc_tradeoff *out)
{
    const slc_job *job = r->job;
    slc_strategy *strategies = malloc(((size_t)job->unit_count + 1) * sizeof *strategies);
    bool *recompute = malloc((size_t)job->layer_count + 1);
    sluice_status status = strategies && recompute ? SLUICE_OK : no_memory();
    for (uint32_t u = 0; !status && u < job->unit_count; u++) strategies[u] = SLC_FSDP;
    if (!status) choose_recompute(r, 1, recompute);
    if (!status) status = measure_floor(job, strategies, recompute, &out->floor_bytes);
    if (!status && out->floor_bytes >= r->limit) {
        choose_recompute(r, 2, recompute);
        out->floor_recomputes = true;
        status = measure_floor(job, strategies, recompute, &out->floor_bytes);
    }
    if (!status && out->floor_bytes >= r->limit)
        status = slc_error(SLUICE_ERR_BUDGET,
                           "trade-off: of %llu bytes nothing is free, what fsdp keeps and the activations need %llu",
                           (unsigned long long)r->limit, (unsigned long long)out->floor_bytes);
    out->free_bytes = r->limit - out->floor_bytes;
    free(strategies);
    free(recompute);
    return status;
}

/* ---- One point ---- */

static sluice_status point_init(const slc_job *job, slc_tradeoff_point *point)
{
    *point = (slc_tradeoff_point){.asked = NAN, .same_as = SLC_NONE};
    point->strategies = malloc(((size_t)job->unit_count + 1) * sizeof *point->strategies);
    return point->strategies ? SLUICE_OK : no_memory();
}

static void note_share(const slc_job *job, uint64_t free_bytes, slc_tradeoff_point *point)
{
    point->strategy_bytes = kept_beyond_fsdp(job, point->strategies);
    point->share = (double)point->strategy_bytes / (double)free_bytes;
}

static void fill(const slc_job *job, const uint32_t *ranked, uint64_t room, slc_strategy *out)
{
    for (uint32_t u = 0; u < job->unit_count; u++) out[u] = SLC_FSDP;
    for (uint32_t i = 0; i < job->unit_count; i++) {
        const slc_unit *unit = &job->units[ranked[i]];
        uint64_t more = slc_resident_bytes(job, unit, SLC_SDP) - slc_resident_bytes(job, unit, SLC_FSDP);
        if (more > room) continue;
        out[ranked[i]] = SLC_SDP;
        room -= more;
    }
}

/* A plan for the point's strategies, some or all of which may be free. Where none fits the point says so. */
static sluice_status plan_point(const slc_tradeoff_request *r, const slc_strategy *strategies,
                                slc_tradeoff_point *point, slc_plan **plan)
{
    const slc_joint_request ask = {.job = r->job,
                                   .times = r->times,
                                   .strategies = strategies,
                                   .recompute = r->recompute,
                                   .limit = r->limit,
                                   .time_limit_s = r->time_limit_s,
                                   .quick = r->quick};
    slc_joint_answer answer;
    sluice_status status = slc_joint_plan(&ask, &answer, NULL);
    *plan = NULL;
    if (status) return status == SLUICE_ERR_BUDGET ? SLUICE_OK : status;
    point->fits = true;
    point->forecast = answer.forecast;
    memcpy(point->member, answer.member, sizeof point->member);
    *plan = answer.plan;
    return SLUICE_OK;
}

static uint32_t find_same(const slc_tradeoff *t, uint32_t unit_count, const slc_tradeoff_point *point)
{
    for (uint32_t i = 0; &t->points[i] < point; i++)
        if (!memcmp(t->points[i].strategies, point->strategies, unit_count * sizeof *point->strategies)) return i;
    return SLC_NONE;
}

static sluice_status make_point(const slc_tradeoff_request *r, const uint32_t *ranked, double asked, slc_tradeoff *t,
                                slc_tradeoff_point *point)
{
    slc_plan *plan;
    sluice_status status = point_init(r->job, point);
    if (status) return status;
    point->asked = asked;
    fill(r->job, ranked, (uint64_t)(asked * (double)t->free_bytes), point->strategies);
    note_share(r->job, t->free_bytes, point);
    point->same_as = find_same(t, r->job->unit_count, point);
    if (point->same_as != SLC_NONE) {
        const slc_tradeoff_point *same = &t->points[point->same_as];
        point->fits = same->fits;
        point->forecast = same->forecast;
        memcpy(point->member, same->member, sizeof point->member);
        return SLUICE_OK;
    }
    status = plan_point(r, point->strategies, point, &plan);
    slc_plan_destroy(plan);
    return status;
}

static sluice_status make_joint(const slc_tradeoff_request *r, const slc_strategy *all_free, slc_tradeoff *t)
{
    sluice_status status = point_init(r->job, &t->joint);
    if (!status) status = plan_point(r, all_free, &t->joint, &t->joint_plan);
    if (status) return status;
    if (!t->joint.fits)
        return slc_error(SLUICE_ERR_BUDGET, "trade-off: no plan needs less than %llu bytes",
                         (unsigned long long)r->limit);
    memcpy(t->joint.strategies, t->joint_plan->strategies, r->job->unit_count * sizeof *t->joint.strategies);
    note_share(r->job, t->free_bytes, &t->joint);
    return SLUICE_OK;
}

/* ---- The curve ---- */

static sluice_status name_shape(const slc_tradeoff_request *r, slc_tradeoff *t)
{
    double *step_s = malloc(((size_t)t->count + 1) * sizeof *step_s);
    uint32_t count = 0;
    if (!step_s) return no_memory();
    for (uint32_t i = 0; i < t->count; i++)
        if (t->points[i].fits && t->points[i].same_as == SLC_NONE) step_s[count++] = t->points[i].forecast.step_s;
    t->shape = slc_curve_shape_of(step_s, count, r->tolerance, &t->valleys);
    free(step_s);
    return SLUICE_OK;
}

static sluice_status make_all(const slc_tradeoff_request *r, slc_tradeoff *out)
{
    const slc_job *job = r->job;
    slc_strategy *all_free = malloc(((size_t)job->unit_count + 1) * sizeof *all_free);
    uint32_t *ranked = malloc(((size_t)job->unit_count + 1) * sizeof *ranked), count;
    out->points = calloc(r->count, sizeof *out->points);
    sluice_status status = all_free && ranked && out->points ? SLUICE_OK : no_memory();
    for (uint32_t u = 0; !status && u < job->unit_count; u++) all_free[u] = SLC_STRATEGIES;
    if (!status) status = slc_mixed_rank(job, all_free, ranked, &count);
    if (!status) status = make_joint(r, all_free, out);
    for (uint32_t i = 0; !status && i < r->count; i++) {
        out->count = i + 1;
        status = make_point(r, ranked, (double)i / (r->count - 1), out, &out->points[i]);
    }
    if (!status) status = name_shape(r, out);
    free(all_free);
    free(ranked);
    return status;
}

sluice_status slc_tradeoff_make(const slc_tradeoff_request *request, slc_tradeoff *out)
{
    *out = (slc_tradeoff){0};
    if (request->count < 2)
        return slc_error(SLUICE_ERR_ARGUMENT, "trade-off: %u shares; give 2 or more", request->count);
    sluice_status status = find_free(request, out);
    return status ? status : make_all(request, out);
}

void slc_tradeoff_fini(slc_tradeoff *tradeoff)
{
    for (uint32_t i = 0; i < tradeoff->count; i++) free(tradeoff->points[i].strategies);
    free(tradeoff->points);
    free(tradeoff->joint.strategies);
    slc_plan_destroy(tradeoff->joint_plan);
    *tradeoff = (slc_tradeoff){0};
}
