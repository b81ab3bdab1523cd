/* Proposes cuts, holds them against the budget, gives units the fastest strategies that fit, and moves cuts by a layer
 * as long as that makes the simulated step shorter. Then the simulated stages' times go back into the proposals.
 * pipeline_plan_test.c covers this file. */
#include "sched/pipeline/planning.h"

#include "lib/base/status.h"
#include "lib/base/text/size_text.h"
#include "lib/plan/roles.h"
#include "sched/pipeline/stage_order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT_ROUNDS = 8, MOVE_PASSES = 8, MANY_PIECES = 24, TIMES_ROUNDS = 4, RAISED_PASSES = 3 };

/* ---- Trying cuts ---- */

static sluice_status stage_bytes(const slc_pipeline_planning *p, const slc_cut_job *cut, uint32_t stage,
                                 uint64_t *bytes)
{
    slc_stage_job job;
    sluice_status status = slc_stage_job_init(cut, &p->step, stage, &job);
    if (!status) status = slc_stage_bytes(&job, bytes);
    slc_stage_job_fini(&job);
    return status;
}

/* The caller frees the forecast by slc_pipeline_forecast_fini, after an error too. */
static sluice_status forecast_cuts(const slc_pipeline_planning *p, const slc_cut_job *cut, slc_pipeline_forecast *out)
{
    slc_pipeline_costs costs;
    *out = (slc_pipeline_forecast){0};
    sluice_status status = slc_pipeline_costs_init(cut, &costs);
    if (!status) status = slc_pipeline_simulate(&p->plan->program, &costs.times, NULL, out);
    slc_pipeline_costs_fini(&costs);
    return status;
}

static sluice_status simulate(const slc_pipeline_planning *p, const slc_cut_job *cut, double *step_s)
{
    slc_pipeline_forecast forecast;
    sluice_status status = forecast_cuts(p, cut, &forecast);
    *step_s = forecast.step_s;
    slc_pipeline_forecast_fini(&forecast);
    return status;
}

/* Packs all stages. *stage is the one that needs most, *most its bytes; `bytes` [stages]. */
static sluice_status pack_stages(const slc_pipeline_planning *p, const slc_cut_job *cut, uint64_t *bytes,
                                 uint32_t *stage, uint64_t *most)
{
    *most = 0;
    for (uint32_t s = 0; s < cut->shape.stages; s++) {
        sluice_status status = stage_bytes(p, cut, s, &bytes[s]);
        if (status) return status;
        if (bytes[s] <= *most) continue;
        *most = bytes[s];
        *stage = s;
    }
    return SLUICE_OK;
}

static bool fits(const slc_pipeline_planning *p, uint64_t bytes)
{
    return !p->budget_bytes || bytes <= p->budget_bytes;
}

/* Finds whether all stages fit. Their bytes go to the plan, if there is a budget. */
static sluice_status stages_fit(const slc_pipeline_planning *p, const slc_cut_job *cut, bool *does)
{
    uint32_t stage;
    uint64_t most = 0;
    *does = true;
    if (!p->budget_bytes) return SLUICE_OK;
    sluice_status status = pack_stages(p, cut, p->plan->bytes, &stage, &most);
    *does = fits(p, most);
    return status;
}

static void take_trial(slc_pipeline_planning *p, double step_s)
{
    p->trial.step_s = step_s;
    slc_pipeline_planning_copy(p, &p->trial, &p->now);
}

/* Puts the choice that was taken last on trial again. */
static void ask_about_now(slc_pipeline_planning *p)
{
    slc_pipeline_planning_copy(p, &p->now, &p->trial);
}

/* Takes the choice on trial, which fits, if it is faster than the one taken so far. */
static sluice_status weigh(slc_pipeline_planning *p)
{
    const slc_cut_job cut = slc_pipeline_planning_cut(p, &p->trial);
    double step_s;
    sluice_status status = simulate(p, &cut, &step_s);
    if (!status && step_s < p->now.step_s) take_trial(p, step_s);
    return status;
}

/* Puts the programme's cuts on trial. While they do not fit, lowers its limits by what the packed stages need beyond
 * the budget, and asks again until cuts fit or there are none. */
static sluice_status propose(slc_pipeline_planning *p, bool with_messages)
{
    const uint32_t chunks = p->request->shape.chunks, stages = p->request->shape.stages;
    const uint64_t budget = p->budget_bytes, reserved = p->job->reserved_bytes;
    const uint64_t *bytes = p->plan->bytes;
    for (uint32_t k = 0; k < p->pieces; k++)
        p->limit[k] = !budget ? UINT64_MAX : budget > reserved ? (budget - reserved) / chunks : 0;
    for (int round = 0; round < LIMIT_ROUNDS; round++) {
        double cost_s;
        bool does;
        const slc_flushed_partition in = slc_pipeline_planning_partition(p, with_messages);
        sluice_status status = slc_partition_flushed(&in, p->trial.first_layer, &cost_s);
        if (status || !isfinite(cost_s)) return status;
        const slc_cut_job cut = slc_pipeline_planning_cut(p, &p->trial);
        status = stages_fit(p, &cut, &does);
        if (status) return status;
        if (does) return weigh(p);
        for (uint32_t k = 0; k < p->pieces; k++) {
            const uint64_t over = bytes[k % stages] > budget ? (bytes[k % stages] - budget + chunks - 1) / chunks : 0;
            p->limit[k] = p->limit[k] > over ? p->limit[k] - over : 0;
        }
    }
    return SLUICE_OK;
}

/* Tries the cuts of least memory. *needs becomes the budget that they need, which is that of stage *stage; UINT64_MAX:
 * there are no cuts. */
static sluice_status propose_smallest(slc_pipeline_planning *p, uint64_t *needs, uint32_t *stage)
{
    uint64_t sum;
    const slc_flushed_partition in = slc_pipeline_planning_partition(p, false);
    sluice_status status = slc_partition_least_bytes(&in, p->trial.first_layer, &sum);
    *needs = UINT64_MAX;
    if (status || sum == UINT64_MAX) return status;
    const slc_cut_job cut = slc_pipeline_planning_cut(p, &p->trial);
    status = pack_stages(p, &cut, p->plan->bytes, stage, needs);
    return status || !fits(p, *needs) ? status : weigh(p);
}

/* Seconds that the busiest stage computes a micro-batch: a step takes at least M of these. */
static double busiest_s(const slc_pipeline_planning *p, const slc_cut_job *cut)
{
    double most_s = 0;
    for (uint32_t s = 0; s < cut->shape.stages; s++) {
        double sum_s = 0;
        for (uint32_t k = s; k < p->pieces; k += cut->shape.stages)
            for (uint32_t l = cut->first_layer[k]; l < slc_piece_end(cut, k); l++) sum_s += p->layer_s[l];
        most_s = fmax(most_s, sum_s);
    }
    return most_s;
}

/* Puts the cuts taken so far on trial, with those before the pieces `first` to `last` moved by `by` layers: a piece on
 * one side gives layers away, and a piece on the other side takes them. False: some piece would be empty, or a cut is
 * not allowed. */
static bool shift_cuts(const slc_pipeline_planning *p, uint32_t first, uint32_t last, int by)
{
    uint32_t *const cuts = p->trial.first_layer;
    memcpy(cuts, p->now.first_layer, p->pieces * sizeof *cuts);
    for (uint32_t k = first; k <= last; k++) {
        cuts[k] = (uint32_t)((int64_t)cuts[k] + by);
        if (cuts[k] >= p->layers || !cuts[k] || p->uncut[cuts[k] - 1]) return false;
    }
    return cuts[first] > cuts[first - 1] && (last + 1 == p->pieces || cuts[last] < cuts[last + 1]);
}

/* Takes shifted cuts if the step becomes shorter and all stages fit. */
static sluice_status try_shift(slc_pipeline_planning *p, uint32_t first, uint32_t last, int by, bool *moved)
{
    const slc_cut_job cut = slc_pipeline_planning_cut(p, &p->trial);
    const double wanted_s = p->now.step_s * (1 - 1e-9);
    double step_s;
    bool does;
    if (!shift_cuts(p, first, last, by)) return SLUICE_OK;
    if (p->request->shape.micro_batches * busiest_s(p, &cut) >= wanted_s) return SLUICE_OK;
    sluice_status status = simulate(p, &cut, &step_s);
    if (status || step_s >= wanted_s) return status;
    status = stages_fit(p, &cut, &does);
    if (status || !does) return status;
    *moved = true;
    take_trial(p, step_s);
    return SLUICE_OK;
}

/* Moves cuts while that makes the step shorter, in a few passes. Any number of cuts beside each other may move
 * together; of many pieces only a few. */
static sluice_status move_cuts(slc_pipeline_planning *p)
{
    const uint32_t longest = p->pieces <= MANY_PIECES ? p->pieces - 1 : 2;
    bool moved = true;
    for (int pass = 0; pass < MOVE_PASSES && moved; pass++) {
        moved = false;
        for (uint32_t length = 1; length <= longest; length++)
            for (uint32_t k = 1; k + length <= p->pieces; k++)
                for (int by = -1; by <= 1; by += 2) {
                    sluice_status status = try_shift(p, k, k + length - 1, by, &moved);
                    if (status) return status;
                }
    }
    return SLUICE_OK;
}

/* ---- Refusals and bounds ---- */

static sluice_status over_budget(const slc_pipeline_planning *p, uint64_t needs, uint32_t stage)
{
    const slc_pipeline_shape *shape = &p->request->shape;
    if (p->request->first_layer)
        return slc_error(SLUICE_ERR_BUDGET,
                         "stage %u of %u needs %llu bytes (%s) with these cuts, the budget is %llu; %llu bytes work",
                         stage, shape->stages, (unsigned long long)needs, slc_size_of(needs).text,
                         (unsigned long long)p->request->budget_bytes, (unsigned long long)needs);
    return slc_error(
        SLUICE_ERR_BUDGET,
        "no cuts into %u stages fit a budget of %llu bytes; the smallest that was found is %llu (%s), which "
        "stage %u needs",
        shape->stages, (unsigned long long)p->request->budget_bytes, (unsigned long long)needs, slc_size_of(needs).text,
        stage);
}

static sluice_status take_given(slc_pipeline_planning *p, uint64_t *needs, uint32_t *stage)
{
    const slc_cut_job cut = slc_pipeline_planning_cut(p, &p->trial);
    memcpy(p->trial.first_layer, p->request->first_layer, p->pieces * sizeof *p->trial.first_layer);
    sluice_status status = pack_stages(p, &cut, p->plan->bytes, stage, needs);
    return status || !fits(p, *needs) ? status : weigh(p);
}

/* Chunks of a stage are far apart in the chain, so the programme's cuts may be a poor place to move on from: even ones
 * are tried too, and the better of both is kept. */
static sluice_status move_even_cuts(slc_pipeline_planning *p)
{
    const slc_cut_job cut = slc_pipeline_planning_cut(p, &p->trial);
    uint32_t *const even = p->trial.first_layer;
    bool does;
    for (uint32_t k = 0; k < p->pieces; k++) {
        even[k] = (uint32_t)((uint64_t)k * p->layers / p->pieces);
        if (k && p->uncut[even[k] - 1]) return SLUICE_OK;
    }
    sluice_status status = stages_fit(p, &cut, &does);
    if (status || !does) return status;
    slc_pipeline_planning_copy(p, &p->now, &p->moved);
    p->now.step_s = INFINITY;
    status = weigh(p);
    if (!status) status = move_cuts(p);
    if (!status && p->now.step_s >= p->moved.step_s) slc_pipeline_planning_copy(p, &p->moved, &p->now);
    return status;
}

static sluice_status search_cuts(slc_pipeline_planning *p, uint64_t *needs, uint32_t *stage)
{
    sluice_status status = propose(p, false);
    if (!status) status = propose(p, true);
    if (!status && p->budget_bytes) status = propose_smallest(p, needs, stage);
    if (status || !isfinite(p->now.step_s)) return status;
    status = move_cuts(p);
    return status || p->request->shape.chunks == 1 ? status : move_even_cuts(p);
}

/* Finds the best cuts for the strategies on trial. If none fit, *needs is what the least of them needs. Those that are
 * best without a budget are the best within it, if they fit. */
static sluice_status find_cuts(slc_pipeline_planning *p, uint64_t *needs, uint32_t *stage)
{
    bool does = false;
    sluice_status status = SLUICE_OK;
    slc_pipeline_planning_describe(p);
    if (p->request->first_layer) return take_given(p, needs, stage);
    if (p->budget_bytes) {
        p->budget_bytes = 0;
        status = search_cuts(p, needs, stage);
        p->budget_bytes = p->request->budget_bytes;
        const slc_cut_job cut = slc_pipeline_planning_cut(p, &p->now);
        if (!status && isfinite(p->now.step_s)) status = stages_fit(p, &cut, &does);
        if (!does) p->now.step_s = INFINITY;
    }
    return status || does ? status : search_cuts(p, needs, stage);
}

/* ---- Strategies ---- */

static void ask_for(slc_pipeline_planning *p, uint32_t unit, const slc_pipeline_planning_level *l)
{
    p->trial.strategies[unit] = l->strategy;
    p->trial.held[unit] = l->held;
}

static bool lies_in(const slc_cut_job *cut, uint32_t stage, const slc_unit *unit)
{
    for (uint32_t k = stage; k < slc_pipeline_pieces(&cut->shape); k += cut->shape.stages)
        if (unit->uses[0].layer >= cut->first_layer[k] && unit->uses[0].layer < slc_piece_end(cut, k)) return true;
    return false;
}

/* Gives the `count` largest units of a stage the level `up`, the others the one that they had. */
static void raise_largest(slc_pipeline_planning *p, const uint32_t *units, uint32_t unit_count, uint32_t count,
                          const slc_pipeline_planning_level *up)
{
    for (uint32_t n = 0; n < unit_count; n++) {
        const uint32_t u = units[n];
        ask_for(p, u, n < count ? up : &(slc_pipeline_planning_level){p->base.strategies[u], p->base.held[u]});
    }
}

/* Lists the units of a stage, the largest first: what the next level saves is in proportion to that, and so is what it
 * needs.
 */
static uint32_t list_largest(const slc_pipeline_planning *p, const slc_cut_job *cut, uint32_t stage, uint32_t *units)
{
    uint32_t count = 0;
    for (uint32_t u = 0; u < p->job->unit_count; u++) {
        if (slc_looks_up(&p->job->units[u]) || !lies_in(cut, stage, &p->job->units[u])) continue;
        uint32_t at = count++;
        for (; at && p->job->units[units[at - 1]].elements < p->job->units[u].elements; at--) units[at] = units[at - 1];
        units[at] = u;
    }
    return count;
}

/* Gives as many units of a stage a faster level as fit, the largest first. */
static sluice_status raise_stage(slc_pipeline_planning *p, const slc_cut_job *cut, uint32_t stage,
                                 const slc_pipeline_planning_level *up, uint32_t *units)
{
    const uint32_t unit_count = list_largest(p, cut, stage, units);
    uint32_t low = 0, high = unit_count;
    slc_pipeline_planning_copy(p, &p->trial, &p->base);
    while (low < high) {
        const uint32_t middle = (low + high + 1) / 2;
        uint64_t bytes;
        raise_largest(p, units, unit_count, middle, up);
        sluice_status status = stage_bytes(p, cut, stage, &bytes);
        if (status) return status;
        if (fits(p, bytes))
            low = middle;
        else
            high = middle - 1;
    }
    raise_largest(p, units, unit_count, low, up);
    return SLUICE_OK;
}

/* Goes through the levels above the one that all units have, and takes what makes the step shorter. */
static sluice_status raise_all(slc_pipeline_planning *p, int from)
{
    uint32_t *units = calloc((size_t)p->job->unit_count + 1, sizeof *units);
    sluice_status status = units ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "%u units", p->job->unit_count);
    ask_about_now(p);
    const slc_cut_job cut = slc_pipeline_planning_cut(p, &p->trial);
    for (int up = from + 1; !status && up < p->level_count; up++) {
        for (uint32_t s = 0; !status && s < p->request->shape.stages; s++)
            status = raise_stage(p, &cut, s, &p->levels[up], units);
        if (!status) status = weigh(p);
        ask_about_now(p);
    }
    free(units);
    return status;
}

/* Gives both stages at a cut strategies anew, from the level `from` on. *fit: they have room for that level. */
static sluice_status raise_anew(slc_pipeline_planning *p, const slc_cut_job *cut, const uint32_t stages[2], int from,
                                uint32_t *units, bool *fit)
{
    sluice_status status = SLUICE_OK;
    const int count = stages[0] == stages[1] ? 1 : 2;
    *fit = true;
    for (uint32_t u = 0; u < p->job->unit_count; u++)
        if (lies_in(cut, stages[0], &p->job->units[u]) || lies_in(cut, stages[1], &p->job->units[u]))
            ask_for(p, u, &p->levels[from]);
    for (int k = 0; k < count && !status && *fit; k++) {
        uint64_t bytes = 0;
        status = stage_bytes(p, cut, stages[k], &bytes);
        *fit = fits(p, bytes);
    }
    for (int up = from + 1; *fit && up < p->level_count; up++)
        for (int k = 0; k < count && !status; k++) status = raise_stage(p, cut, stages[k], &p->levels[up], units);
    return status;
}

/* Moves the cut before a piece by a layer, with strategies anew on both sides, if that makes the step shorter. */
static sluice_status try_raised(slc_pipeline_planning *p, uint32_t piece, int by, int from, uint32_t *units,
                                bool *moved)
{
    const uint32_t count = p->request->shape.stages, stages[2] = {(piece - 1) % count, piece % count};
    const slc_cut_job cut = slc_pipeline_planning_cut(p, &p->trial);
    const double wanted_s = p->now.step_s * (1 - 1e-9);
    double step_s = INFINITY;
    bool fit = false;
    if (!shift_cuts(p, piece, piece, by)) return SLUICE_OK;
    sluice_status status = raise_anew(p, &cut, stages, from, units, &fit);
    if (!status && fit) status = simulate(p, &cut, &step_s);
    if (!status && step_s < wanted_s) {
        take_trial(p, step_s);
        *moved = true;
    }
    ask_about_now(p);
    return status;
}

/* Moves cuts with strategies anew. The programme's cuts are for stages whose units all have one level. If some have a
 * faster one others may be better.
 */
static sluice_status move_raised(slc_pipeline_planning *p, int from)
{
    bool moved = from + 1 < p->level_count && !p->request->first_layer && p->pieces <= MANY_PIECES;
    uint32_t *units = calloc((size_t)p->job->unit_count + 1, sizeof *units);
    sluice_status status = units ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "%u units", p->job->unit_count);
    for (int pass = 0; pass < RAISED_PASSES && moved && !status; pass++) {
        moved = false;
        for (uint32_t k = 1; k < p->pieces && !status; k++)
            for (int by = -1; by <= 1 && !status; by += 2) status = try_raised(p, k, by, from, units, &moved);
    }
    free(units);
    return status;
}

/* ---- Back into the programme ---- */

/* Gives layers the pace at which their stage was simulated, for the programme: operations and gathers hold a stage up.
 * *any becomes true if some stage was held up at all. */
static sluice_status take_pace(slc_pipeline_planning *p, bool *any)
{
    const slc_cut_job cut = slc_pipeline_planning_cut(p, &p->now);
    slc_pipeline_forecast f;
    sluice_status status = forecast_cuts(p, &cut, &f);
    *any = false;
    for (uint32_t k = 0; !status && k < p->pieces; k++) {
        const slc_stage_forecast *stage = &f.stages[k % cut.shape.stages];
        const double pace = stage->compute_s > 0 ? 1 + stage->exposed_s / stage->compute_s : 1;
        *any |= stage->exposed_s > 0;
        for (uint32_t l = cut.first_layer[k]; l < slc_piece_end(&cut, k); l++) p->pace[l] = pace;
    }
    slc_pipeline_forecast_fini(&f);
    return status;
}

/* Asks the programme again with the times of simulated stages, until it proposes nothing faster. */
static sluice_status repeat_with_times(slc_pipeline_planning *p, int from)
{
    sluice_status status = SLUICE_OK;
    for (int round = 0; round < TIMES_ROUNDS && !status && !p->request->first_layer; round++) {
        const double before_s = p->now.step_s;
        bool any;
        status = take_pace(p, &any);
        if (status || !any) break;
        p->plan->rounds++;
        slc_pipeline_planning_describe(p);
        status = propose(p, true);
        if (!status) status = move_cuts(p);
        if (!status) status = raise_all(p, from);
        if (p->now.step_s >= before_s * (1 - 1e-9)) break;
    }
    for (uint32_t l = 0; l < p->layers; l++) p->pace[l] = 1;
    return status;
}

/* ---- Planning ---- */

/* Finds the fastest choice that fits, with or without recomputation as `recompute` says. All units get the highest
 * level that they can all have, then as many as fit get the levels above it. If nothing fits, *needs and *stage are
 * those of the lowest level. */
static sluice_status search(slc_pipeline_planning *p, bool recompute, uint64_t *needs, uint32_t *stage)
{
    int from = p->level_count;
    sluice_status status = SLUICE_OK;
    p->now.step_s = INFINITY;
    p->trial.recompute = recompute;
    while (!status && from-- > 0 && !isfinite(p->now.step_s)) {
        for (uint32_t u = 0; u < p->job->unit_count; u++) ask_for(p, u, &p->levels[from]);
        status = find_cuts(p, needs, stage);
        if (isfinite(p->now.step_s)) break;
    }
    p->lacks_room |= from + 1 < p->level_count;
    if (status || !isfinite(p->now.step_s)) return status;
    status = raise_all(p, from);
    if (!status) status = repeat_with_times(p, from);
    if (!status) status = move_raised(p, from);
    if (!status && p->now.step_s < p->best.step_s) slc_pipeline_planning_copy(p, &p->now, &p->best);
    return status;
}

/* Searches exact strategies before the lossy one, which has to make the step shorter. */
static sluice_status search_levels(slc_pipeline_planning *p, bool recompute, uint64_t *needs, uint32_t *stage)
{
    const int all = p->level_count;
    const bool lossy = all > 1 && p->levels[all - 1].strategy == SLC_ONEBIT;
    p->level_count -= lossy;
    sluice_status status = search(p, recompute, needs, stage);
    p->level_count = all;
    return status || !lossy ? status : search(p, recompute, needs, stage);
}

/* Finds the plan. Recomputation is tried if without it not all units could have the highest level: it makes room, and
 * nothing else. */
static sluice_status find_plan(slc_pipeline_planning *p)
{
    const uint8_t recompute = p->request->schedule->splits ? 0 : p->request->recompute;
    uint64_t needs = UINT64_MAX, again_needs = UINT64_MAX;
    uint32_t stage = 0, again_stage = 0;
    sluice_status status = search_levels(p, recompute == 1, &needs, &stage);
    if (!status && recompute == 2 && p->lacks_room) {
        status = search_levels(p, true, &again_needs, &again_stage);
        if (again_needs < needs) {
            needs = again_needs;
            stage = again_stage;
        }
    }
    if (status) return status;
    p->plan->needs_bytes = needs;
    return isfinite(p->best.step_s) ? slc_pipeline_planning_finish(p) : over_budget(p, needs, stage);
}

sluice_status slc_pipeline_plan_make(const slc_pipeline_request *request, slc_pipeline_plan *out)
{
    slc_pipeline_planning p;
    sluice_status status = slc_pipeline_planning_init(&p, request, out);
    if (!status) status = find_plan(&p);
    slc_pipeline_planning_fini(&p);
    return status;
}
