/* Each share becomes a choice of strategies, and the choice becomes a plan whose schedule gets the rest of the
 * budget. */
#include "sched/study/tradeoff.h"

#include "lib/base/status.h"
#include "lib/plan/strategy_table.h"
#include "sched/joint/joint.h"
#include "sched/order/live_bytes.h"
#include "sched/joint/mixed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Units in the order in which they become sdp. */
typedef struct {
    uint32_t *front, *back, count;
} rankings;

static sluice_status no_memory(void)
{
    return slc_error(SLUICE_ERR_MEMORY, "trade-off");
}

/* ---- The free part of the budget ---- */

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

static sluice_status find_free(const slc_tradeoff_request *r, slc_tradeoff *out)
{
    const slc_job *job = r->job;
    slc_strategy *strategies = malloc(((size_t)job->unit_count + 1) * sizeof *strategies);
    bool *recompute = malloc((size_t)job->layer_count + 1);
    sluice_status status = strategies && recompute ? SLUICE_OK : no_memory();
    for (uint32_t u = 0; !status && u < job->unit_count; u++) strategies[u] = SLC_FSDP;
    for (uint32_t l = 0; !status && l < job->layer_count; l++) {
        recompute[l] = r->recompute && r->recompute[l];
        out->floor_recomputes |= recompute[l];
    }
    if (!status) status = measure_floor(job, strategies, recompute, &out->floor_bytes);
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

static void fill_with_sdp(const slc_job *job, const uint32_t *ranked, uint32_t count, uint64_t room, slc_strategy *out)
{
    for (uint32_t u = 0; u < job->unit_count; u++) out[u] = SLC_FSDP;
    for (uint32_t i = 0; i < count; i++) {
        const slc_unit *unit = &job->units[ranked[i]];
        uint64_t more = slc_resident_bytes(job, unit, SLC_SDP) - slc_resident_bytes(job, unit, SLC_FSDP);
        if (more > room) continue;
        out[ranked[i]] = SLC_SDP;
        room -= more;
    }
}

/* Plans the point's strategies, some or all of which may be free, and notes whether any plan fits. */
static sluice_status plan_point(const slc_tradeoff_request *r, const slc_strategy *strategies,
                                slc_tradeoff_point *point, slc_plan **plan)
{
    const slc_joint_request ask = {.job = r->job,
                                   .times = r->times,
                                   .strategies = strategies,
                                   .recompute = r->recompute,
                                   .limit = r->limit,
                                   .effort_s = r->effort_s,
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

/* Seconds of the best simple plan; infinity: none fits. */
static sluice_status try_quickly(const slc_tradeoff_request *r, const slc_strategy *strategies, double *step_s)
{
    slc_tradeoff_request quick = *r;
    slc_tradeoff_point point = {0};
    slc_plan *plan;
    quick.quick = true;
    sluice_status status = plan_point(&quick, strategies, &point, &plan);
    *step_s = point.fits ? point.forecast.step_s : INFINITY;
    slc_plan_destroy(plan);
    return status;
}

/* Fills from the front or from the back. Memory is fullest where the backward begins, so it matters which layers need
 * no gather there. */
static sluice_status choose_filling(const slc_tradeoff_request *r, const rankings *ranked, uint64_t room,
                                    slc_strategy *out)
{
    const slc_job *job = r->job;
    double front_s, back_s;
    slc_strategy *back = malloc(((size_t)job->unit_count + 1) * sizeof *back);
    if (!back) return no_memory();
    fill_with_sdp(job, ranked->front, ranked->count, room, out);
    fill_with_sdp(job, ranked->back, ranked->count, room, back);
    sluice_status status = SLUICE_OK;
    if (memcmp(out, back, job->unit_count * sizeof *out)) {
        status = try_quickly(r, out, &front_s);
        if (!status) status = try_quickly(r, back, &back_s);
        if (!status && back_s < front_s) memcpy(out, back, job->unit_count * sizeof *out);
    }
    free(back);
    return status;
}

static sluice_status make_point(const slc_tradeoff_request *r, const rankings *ranked, double asked, slc_tradeoff *t,
                                slc_tradeoff_point *point)
{
    slc_plan *plan;
    sluice_status status = point_init(r->job, point);
    if (!status) status = choose_filling(r, ranked, (uint64_t)(asked * (double)t->free_bytes), point->strategies);
    if (status) return status;
    point->asked = asked;
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

/* Front is the order in which "mixed" ranks units, back is its reverse. */
static sluice_status rank(const slc_job *job, const slc_strategy *all_free, rankings *out)
{
    sluice_status status = slc_mixed_rank(job, all_free, out->front, &out->count);
    for (uint32_t i = 0; !status && i < out->count; i++) out->back[i] = out->front[out->count - 1 - i];
    return status;
}

static sluice_status make_all(const slc_tradeoff_request *r, slc_tradeoff *out)
{
    const slc_job *job = r->job;
    size_t units = (size_t)job->unit_count + 1;
    slc_strategy *all_free = malloc(units * sizeof *all_free);
    uint32_t *ranked = malloc(2 * units * sizeof *ranked);
    out->points = calloc(r->count, sizeof *out->points);
    sluice_status status = all_free && ranked && out->points ? SLUICE_OK : no_memory();
    rankings both = {ranked, ranked ? ranked + units : NULL, 0};
    for (uint32_t u = 0; !status && u < job->unit_count; u++) all_free[u] = SLC_STRATEGIES;
    if (!status) status = rank(job, all_free, &both);
    if (!status) status = make_joint(r, all_free, out);
    for (uint32_t i = 0; !status && i < r->count; i++) {
        out->count = i + 1;
        status = make_point(r, &both, (double)i / (r->count - 1), out, &out->points[i]);
    }
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
