/* Proposes cuts, holds them against the budget, and moves them by a layer as long as that makes the simulated step
 * shorter. */
#include "sched/pipeline/pipeline_plan.h"

#include "lib/base/status.h"
#include "lib/base/text/size_text.h"
#include "lib/plan/roles.h"
#include "lib/plan/stages.h"
#include "lib/plan/strategy_table.h"
#include "sched/pipeline/partition.h"
#include "sched/pipeline/stage_job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT_ROUNDS = 8, MOVE_PASSES = 8, MANY_PIECES = 24 };

/* Without idle time at its ends a schedule's step is as long as its slowest stage's. */
static const uint32_t MANY_MICRO_BATCHES = 1u << 20;

typedef struct {
    const slc_pipeline_request *request;
    slc_pipeline_plan *plan;
    const slc_job *job;
    uint32_t pieces, layers;
    slc_pipeline_program step; /* one step: what stages hold follows from it */
    bool *uncut;               /* [layers - 1] */
    double *layer_s, *tail_s, *cut_s, *hidden_s;
    uint64_t *fixed, *values, *kept;
    uint64_t *limit;        /* [pieces] for the programme */
    uint32_t *held;         /* [pieces] */
    uint32_t *trial, *even; /* [pieces], [2 pieces] cuts under trial */
    double best_s;          /* step of the best cuts so far; INFINITY: there are none */
} planning;

/* ---- The request ---- */

/* Marks the cuts that would part the layers of a unit. Returns the unit that forbids most of them; SLC_NONE: none does.
 */
static uint32_t forbid_cuts(planning *p)
{
    uint32_t widest = SLC_NONE, most = 0;
    for (uint32_t u = 0; u < p->job->unit_count; u++) {
        const slc_unit *unit = &p->job->units[u];
        const uint32_t first = unit->uses[0].layer, last = unit->uses[unit->use_count - 1].layer;
        for (uint32_t l = first; l < last; l++) p->uncut[l] = true;
        if (last - first > most) {
            most = last - first;
            widest = u;
        }
    }
    return widest;
}

static sluice_status parted(const planning *p, uint32_t u)
{
    const slc_unit *unit = &p->job->units[u];
    const char *first = p->job->layers[unit->uses[0].layer],
               *last = p->job->layers[unit->uses[unit->use_count - 1].layer];
    if (unit->fused)
        return slc_error(
            SLUICE_ERR_ARGUMENT,
            "unit \"%s\" joins the layers \"%s\" to \"%s\", which lie in different stages; make the profile "
            "without fusing (SLUICE_PLAN_FUSE=off), or cut elsewhere",
            unit->name, first, last);
    return slc_error(
        SLUICE_ERR_ARGUMENT,
        "unit \"%s\" is used from layer \"%s\" to \"%s\", which lie in different stages; a table that is looked "
        "up may lie in two (make the profile with --tied split), any other shared parameter in one",
        unit->name, first, last);
}

static sluice_status check_cuts(const planning *p, uint32_t widest)
{
    const uint32_t *first = p->request->first_layer;
    uint32_t free_cuts = 0;
    for (uint32_t l = 0; l + 1 < p->layers; l++) free_cuts += !p->uncut[l];
    if (!first) return free_cuts + 1 >= p->pieces ? SLUICE_OK : parted(p, widest);
    for (uint32_t k = 1; k < p->pieces; k++)
        for (uint32_t u = 0; u < p->job->unit_count; u++) {
            const slc_unit *unit = &p->job->units[u];
            if (unit->uses[0].layer < first[k] && first[k] <= unit->uses[unit->use_count - 1].layer)
                return parted(p, u);
        }
    return SLUICE_OK;
}

static sluice_status check_request(const planning *p)
{
    const slc_pipeline_request *r = p->request;
    sluice_status status = slc_pipeline_check(r->schedule, &r->shape);
    if (status) return status;
    if (p->pieces > p->layers)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%u stages of %u chunk%s are %u pieces, the model has %u layers; up to %u stages work",
                         r->shape.stages, r->shape.chunks, r->shape.chunks == 1 ? "" : "s", p->pieces, p->layers,
                         p->layers / r->shape.chunks);
    if (p->job->each)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "a pipeline adds its micro-batches up in each stage; make the profile with "
                         "--accumulate last");
    if (r->strategy == SLC_FSDP || r->strategy == SLC_ONEBIT)
        return slc_error(SLUICE_ERR_ARGUMENT, "strategy %s: stages have dp, oss or sdp so far",
                         slc_strategy_name(r->strategy));
    if (r->schedule->splits && r->recompute == 1)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s: weight gradients that are put off read what recomputing would drop; "
                         "recompute in another schedule",
                         r->schedule->name);
    return SLUICE_OK;
}

/* ---- The chain ---- */

static void add_unit_bytes(planning *p, const slc_unit *whole)
{
    const slc_unit unit = slc_unit_of_stage(whole);
    slc_buffer_rule rows[SLC_BUFFER_RULES_MAX];
    const uint32_t layer = unit.uses[0].layer;
    if (slc_looks_up(whole)) return;
    for (uint32_t i = slc_buffer_rules(p->job, &unit, p->plan->strategy, rows); i-- > 0;)
        *(rows[i].kind == SLC_BUFFER_VALUE ? &p->values[layer] : &p->fixed[layer]) +=
            slc_buffer_bytes(p->job, &unit, &rows[i]);
}

/* Sums by layer, which the programme cuts by. The values of older versions count as what a micro-batch keeps, or as
 * fixed if their number is. */
static void describe_chain(planning *p, bool recompute)
{
    const slc_pipeline_request *r = p->request;
    const slc_job *job = p->job;
    for (uint32_t l = 0; l < p->layers; l++) {
        p->layer_s[l] = slc_layer_forward_s(r->profile, l) + slc_layer_backward_s(r->profile, recompute, l);
        p->tail_s[l] = slc_layer_tail_s(r->profile, p->plan->strategy, l);
        p->fixed[l] = p->values[l] = p->kept[l] = 0;
        if (l + 1 < p->layers)
            p->cut_s[l] = slc_message_s(&r->profile->times, slc_cut_forward_bytes(job, l)) +
                          slc_message_s(&r->profile->times, slc_cut_backward_bytes(job, l));
    }
    for (uint32_t u = 0; u < job->unit_count; u++) add_unit_bytes(p, &job->units[u]);
    for (uint32_t a = 0; a < job->activation_count; a++) {
        const slc_activation_life *life = &job->activations[a];
        const uint32_t layer = slc_slot_layer(job, life->first_slot);
        const bool again = recompute && life->recomputable && job->can_recompute && job->can_recompute[layer];
        if (slc_slot_is_forward(job, life->first_slot) && !slc_slot_is_forward(job, life->last_slot) && !again)
            p->kept[layer] += life->bytes;
    }
    double sum_s = 0;
    for (uint32_t l = 0; l < p->layers; l++) {
        sum_s += p->layer_s[l];
        if (r->schedule->updates_each)
            p->kept[l] += p->values[l];
        else if (!r->schedule->flushes)
            p->fixed[l] += p->values[l];
    }
    for (uint32_t piece = 0; piece < p->pieces; piece++) {
        const uint32_t stage = piece % r->shape.stages, chunk = piece / r->shape.stages;
        p->held[piece] = slc_pipeline_held_of_chunk(&p->step, stage, chunk, SLC_HELD_UNTIL_DONE);
        p->hidden_s[piece] = sum_s * stage / p->pieces;
        p->limit[piece] = UINT64_MAX;
    }
}

static slc_flushed_partition partition_of(const planning *p, bool with_messages)
{
    const slc_pipeline_request *r = p->request;
    return (slc_flushed_partition){.chain = {.layers = p->layers,
                                             .layer_s = p->layer_s,
                                             .uncut = p->uncut,
                                             .fixed_bytes = p->fixed,
                                             .value_bytes = p->values,
                                             .kept_bytes = p->kept},
                                   .stages = p->pieces,
                                   .micro_batches = r->schedule->flushes ? r->shape.micro_batches : MANY_MICRO_BATCHES,
                                   .cut_s = with_messages ? p->cut_s : NULL,
                                   .tail_s = p->tail_s,
                                   .hidden_s = p->hidden_s,
                                   .held = p->held,
                                   .limit_bytes = p->limit};
}

/* ---- Trying cuts ---- */

static slc_cut_job cut_job(const planning *p, const uint32_t *first_layer, bool recompute)
{
    const slc_pipeline_request *r = p->request;
    return (slc_cut_job){.profile = r->profile,
                         .schedule = r->schedule,
                         .shape = r->shape,
                         .first_layer = first_layer,
                         .strategy = p->plan->strategy,
                         .recompute = recompute};
}

static sluice_status stage_bytes(const planning *p, const slc_cut_job *cut, uint32_t stage, uint64_t *bytes)
{
    slc_stage_job job;
    sluice_status status = slc_stage_job_init(cut, &p->step, stage, &job);
    if (!status) status = slc_stage_bytes(&job, bytes);
    slc_stage_job_fini(&job);
    return status;
}

static sluice_status simulate(const planning *p, const slc_cut_job *cut, double *step_s)
{
    slc_pipeline_costs costs;
    slc_pipeline_forecast forecast = {0};
    sluice_status status = slc_pipeline_costs_init(cut, &costs);
    if (!status) status = slc_pipeline_simulate(&p->plan->program, &costs.times, NULL, &forecast);
    *step_s = forecast.step_s;
    slc_pipeline_forecast_fini(&forecast);
    slc_pipeline_costs_fini(&costs);
    return status;
}

/* Packs all stages. *stage is the one that needs most, *most its bytes; `bytes` [stages]. */
static sluice_status pack_stages(const planning *p, const slc_cut_job *cut, uint64_t *bytes, uint32_t *stage,
                                 uint64_t *most)
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

static bool fits(const planning *p, uint64_t bytes)
{
    return !p->request->budget_bytes || bytes <= p->request->budget_bytes;
}

/* Do all stages fit? Their bytes go to the plan, if there is a budget. */
static sluice_status stages_fit(const planning *p, const slc_cut_job *cut, bool *does)
{
    uint32_t stage;
    uint64_t most = 0;
    *does = true;
    if (!p->request->budget_bytes) return SLUICE_OK;
    sluice_status status = pack_stages(p, cut, p->plan->bytes, &stage, &most);
    *does = fits(p, most);
    return status;
}

static void take_cuts(planning *p, const slc_cut_job *cut, double step_s)
{
    p->best_s = step_s;
    p->plan->recompute = cut->recompute;
    memcpy(p->plan->first_layer, cut->first_layer, p->pieces * sizeof *cut->first_layer);
}

/* Takes cuts that fit if they are faster than the best. */
static sluice_status weigh(planning *p, const slc_cut_job *cut)
{
    double step_s;
    sluice_status status = simulate(p, cut, &step_s);
    if (!status && step_s < p->best_s) take_cuts(p, cut, step_s);
    return status;
}

/* Lowers the programme's limits by what the packer needs more than the sums, until cuts fit or there are none. */
static sluice_status propose(planning *p, bool with_messages, bool recompute)
{
    const uint32_t chunks = p->request->shape.chunks, stages = p->request->shape.stages;
    const uint64_t budget = p->request->budget_bytes, reserved = p->job->reserved_bytes;
    const uint64_t *bytes = p->plan->bytes;
    for (uint32_t k = 0; k < p->pieces; k++)
        p->limit[k] = !budget ? UINT64_MAX : budget > reserved ? (budget - reserved) / chunks : 0;
    for (int round = 0; round < LIMIT_ROUNDS; round++) {
        double cost_s;
        bool does;
        const slc_flushed_partition in = partition_of(p, with_messages);
        sluice_status status = slc_partition_flushed(&in, p->trial, &cost_s);
        if (status || !isfinite(cost_s)) return status;
        const slc_cut_job cut = cut_job(p, p->trial, recompute);
        status = stages_fit(p, &cut, &does);
        if (status) return status;
        if (does) return weigh(p, &cut);
        for (uint32_t k = 0; k < p->pieces; k++) {
            const uint64_t over = bytes[k % stages] > budget ? (bytes[k % stages] - budget + chunks - 1) / chunks : 0;
            p->limit[k] = p->limit[k] > over ? p->limit[k] - over : 0;
        }
    }
    return SLUICE_OK;
}

/* The cuts of least memory. *needs: the budget that they need, of `*stage`; UINT64_MAX: there are no cuts. */
static sluice_status propose_smallest(planning *p, bool recompute, uint64_t *needs, uint32_t *stage)
{
    uint64_t sum;
    const slc_flushed_partition in = partition_of(p, false);
    sluice_status status = slc_partition_least_bytes(&in, p->trial, &sum);
    *needs = UINT64_MAX;
    if (status || sum == UINT64_MAX) return status;
    const slc_cut_job cut = cut_job(p, p->trial, recompute);
    status = pack_stages(p, &cut, p->plan->bytes, stage, needs);
    return status || !fits(p, *needs) ? status : weigh(p, &cut);
}

/* Seconds that the busiest stage computes a micro-batch: a step takes at least M of these. */
static double busiest_s(const planning *p, const uint32_t *first_layer)
{
    const slc_cut_job cut = cut_job(p, first_layer, p->plan->recompute);
    double most_s = 0;
    for (uint32_t s = 0; s < cut.shape.stages; s++) {
        double sum_s = 0;
        for (uint32_t k = s; k < p->pieces; k += cut.shape.stages)
            for (uint32_t l = first_layer[k]; l < slc_piece_end(&cut, k); l++) sum_s += p->layer_s[l];
        most_s = fmax(most_s, sum_s);
    }
    return most_s;
}

/* Moves the cuts before the pieces from `first` to `last` by a layer: one piece beside them gives a layer away, another
 * takes one. False: some piece would be empty, or a cut is not allowed. */
static bool shift_cuts(const planning *p, uint32_t first, uint32_t last, int by, uint32_t *cuts)
{
    memcpy(cuts, p->plan->first_layer, p->pieces * sizeof *cuts);
    for (uint32_t k = first; k <= last; k++) {
        cuts[k] = (uint32_t)((int64_t)cuts[k] + by);
        if (cuts[k] >= p->layers || !cuts[k] || p->uncut[cuts[k] - 1]) return false;
    }
    return cuts[first] > cuts[first - 1] && (last + 1 == p->pieces || cuts[last] < cuts[last + 1]);
}

/* Takes shifted cuts if the step becomes shorter and all stages fit. */
static sluice_status try_shift(planning *p, uint32_t first, uint32_t last, int by, bool *moved)
{
    const slc_cut_job cut = cut_job(p, p->trial, p->plan->recompute);
    const double wanted_s = p->best_s * (1 - 1e-9);
    double step_s;
    bool does;
    if (!shift_cuts(p, first, last, by, p->trial)) return SLUICE_OK;
    if (p->request->shape.micro_batches * busiest_s(p, p->trial) >= wanted_s) return SLUICE_OK;
    sluice_status status = simulate(p, &cut, &step_s);
    if (status || step_s >= wanted_s) return status;
    status = stages_fit(p, &cut, &does);
    if (status || !does) return status;
    *moved = true;
    take_cuts(p, &cut, step_s);
    return SLUICE_OK;
}

/* Any number of cuts beside each other may move together; of many pieces only a few. */
static sluice_status move_cuts(planning *p)
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

/* ---- Planning ---- */

static sluice_status over_budget(const planning *p, uint64_t needs, uint32_t stage)
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

static sluice_status take_given(planning *p, bool recompute, uint64_t *needs, uint32_t *stage)
{
    const slc_cut_job cut = cut_job(p, p->request->first_layer, recompute);
    sluice_status status = pack_stages(p, &cut, p->plan->bytes, stage, needs);
    return status || !fits(p, *needs) ? status : weigh(p, &cut);
}

/* Chunks of a stage are far apart in the chain, so the programme's cuts may be a poor place to move on from: even ones
 * are tried too, and the better of both is kept. */
static sluice_status move_even_cuts(planning *p, bool recompute)
{
    const double before_s = p->best_s;
    uint32_t *const before = p->even + p->pieces;
    bool does;
    memcpy(before, p->plan->first_layer, p->pieces * sizeof *before);
    for (uint32_t k = 0; k < p->pieces; k++) {
        p->even[k] = (uint32_t)((uint64_t)k * p->layers / p->pieces);
        if (k && p->uncut[p->even[k] - 1]) return SLUICE_OK;
    }
    const slc_cut_job cut = cut_job(p, p->even, recompute);
    sluice_status status = stages_fit(p, &cut, &does);
    if (status || !does) return status;
    p->best_s = INFINITY;
    status = weigh(p, &cut);
    if (!status) status = move_cuts(p);
    if (status || p->best_s < before_s) return status;
    p->best_s = before_s;
    memcpy(p->plan->first_layer, before, p->pieces * sizeof *before);
    return SLUICE_OK;
}

/* Finds the best cuts with or without recomputation. If none fit, *needs is what the least of them needs. */
static sluice_status find_cuts(planning *p, bool recompute, uint64_t *needs, uint32_t *stage)
{
    describe_chain(p, recompute);
    if (p->request->first_layer) return take_given(p, recompute, needs, stage);
    sluice_status status = propose(p, false, recompute);
    if (!status) status = propose(p, true, recompute);
    if (!status && p->request->budget_bytes) status = propose_smallest(p, recompute, needs, stage);
    if (status || !isfinite(p->best_s)) return status;
    status = move_cuts(p);
    return status || p->request->shape.chunks == 1 ? status : move_even_cuts(p, recompute);
}

/* The least that any cuts can reach. A stage begins with the first micro-batch when all stages before it have computed
 * its forward, computes M micro-batches, and after its last backward those stages compute theirs: with all layers
 * before a stage taking so long in sum, whatever the cuts. Chunks, weight gradients that are put off, and steps that
 * run into each other leave only the M micro-batches of the slowest stage. */
static sluice_status find_bound(planning *p, double *bound_s)
{
    const slc_pipeline_request *r = p->request;
    const bool whole = r->schedule->flushes && !r->schedule->splits && r->shape.chunks == 1;
    const uint32_t m = r->shape.micro_batches, width = p->layers + 1;
    double *least_s = calloc(2 * (size_t)width, sizeof *least_s), *sum_s = calloc(width, sizeof *sum_s);
    if (!least_s || !sum_s) {
        free(least_s);
        free(sum_s);
        return slc_error(SLUICE_ERR_MEMORY, "bound of %u layers", p->layers);
    }
    for (uint32_t l = 0; l < p->layers; l++) sum_s[l + 1] = sum_s[l] + p->layer_s[l];
    for (uint32_t end = 0; end <= p->layers; end++) least_s[end] = end ? INFINITY : 0;
    for (uint32_t s = 0; s < r->shape.stages; s++) {
        const double *before_s = least_s + (s % 2) * width;
        double *after_s = least_s + ((s + 1) % 2) * width;
        for (uint32_t end = 0; end <= p->layers; end++) {
            after_s[end] = INFINITY;
            for (uint32_t first = 0; first < end; first++)
                after_s[end] = fmin(
                    after_s[end], fmax(before_s[first], (whole ? sum_s[first] : 0) + m * (sum_s[end] - sum_s[first])));
        }
    }
    *bound_s = least_s[(r->shape.stages % 2) * width + p->layers];
    if (r->shape.chunks > 1) *bound_s = m * sum_s[p->layers] / r->shape.stages;
    for (uint32_t l = 0; l < p->layers; l++) *bound_s = fmax(*bound_s, m * p->layer_s[l]);
    free(least_s);
    free(sum_s);
    return SLUICE_OK;
}

/* Makes the plans of all stages and holds them against each other. */
static sluice_status make_stages(planning *p, const slc_cut_job *cut)
{
    const uint32_t stages = cut->shape.stages;
    slc_stage_job *made = calloc(stages, sizeof *made);
    const slc_job **jobs = calloc(stages, sizeof *jobs);
    slc_plan **plans = calloc(stages, sizeof *plans);
    sluice_status status =
        made && jobs && plans ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "plans of %u stages", stages);
    for (uint32_t s = 0; s < stages && !status; s++) {
        status = slc_stage_job_init(cut, &p->step, s, &made[s]);
        if (!status) status = slc_stage_plan(&made[s], &plans[s]);
        if (status) break;
        jobs[s] = &made[s].job;
        p->plan->bytes[s] = plans[s]->arena_bytes + made[s].job.reserved_bytes;
        p->plan->older_bytes[s] = made[s].older_values_bytes;
    }
    if (!status) status = slc_stages_validate(jobs, (const slc_plan *const *)plans, stages);
    for (uint32_t s = 0; s < stages && made && plans; s++) {
        slc_plan_destroy(plans[s]);
        slc_stage_job_fini(&made[s]);
    }
    free(plans);
    free(jobs);
    free(made);
    return status;
}

static sluice_status finish(planning *p)
{
    slc_pipeline_plan *plan = p->plan;
    const slc_cut_job cut = cut_job(p, plan->first_layer, plan->recompute);
    sluice_status status = make_stages(p, &cut);
    if (!status) status = slc_pipeline_costs_init(&cut, &plan->costs);
    if (!status) status = slc_pipeline_simulate(&plan->program, &plan->costs.times, NULL, &plan->forecast);
    describe_chain(p, plan->recompute);
    return status ? status : find_bound(p, &plan->bound_s);
}

static sluice_status find_plan(planning *p)
{
    const uint8_t recompute = p->request->schedule->splits ? 0 : p->request->recompute;
    uint64_t needs = UINT64_MAX, again_needs;
    uint32_t stage = 0, again_stage;
    sluice_status status = find_cuts(p, recompute == 1, &needs, &stage);
    if (!status && !isfinite(p->best_s) && recompute == 2) {
        status = find_cuts(p, true, &again_needs, &again_stage);
        if (!status && !isfinite(p->best_s) && again_needs < needs) {
            needs = again_needs;
            stage = again_stage;
        }
    }
    if (status) return status;
    return isfinite(p->best_s) ? finish(p) : over_budget(p, needs, stage);
}

static sluice_status planning_init(planning *p)
{
    const slc_pipeline_request *r = p->request;
    slc_pipeline_plan *plan = p->plan;
    const size_t layers = (size_t)p->layers + 1, pieces = (size_t)p->pieces + 1;
    p->uncut = calloc(layers, sizeof *p->uncut);
    p->layer_s = calloc(3 * layers + pieces, sizeof *p->layer_s);
    p->fixed = calloc(3 * layers + pieces, sizeof *p->fixed);
    p->held = calloc(4 * pieces, sizeof *p->held);
    plan->first_layer = calloc(pieces, sizeof *plan->first_layer);
    plan->bytes = calloc((size_t)r->shape.stages + 1, sizeof *plan->bytes);
    plan->older_bytes = calloc((size_t)r->shape.stages + 1, sizeof *plan->older_bytes);
    if (!p->uncut || !p->layer_s || !p->fixed || !p->held || !plan->first_layer || !plan->bytes || !plan->older_bytes)
        return slc_error(SLUICE_ERR_MEMORY, "pipeline of %u layers", p->layers);
    p->tail_s = p->layer_s + layers;
    p->cut_s = p->tail_s + layers;
    p->hidden_s = p->cut_s + layers;
    p->values = p->fixed + layers;
    p->kept = p->values + layers;
    p->limit = p->kept + layers;
    p->trial = p->held + pieces;
    p->even = p->trial + pieces;
    sluice_status status = slc_pipeline_program_init(r->schedule, &r->shape, 1, &p->step);
    return status ? status
                  : slc_pipeline_program_init(r->schedule, &r->shape, slc_pipeline_steady_steps(r->schedule, &r->shape),
                                              &plan->program);
}

static void planning_fini(planning *p)
{
    slc_pipeline_program_fini(&p->step);
    free(p->held);
    free(p->fixed);
    free(p->layer_s);
    free(p->uncut);
}

sluice_status slc_pipeline_plan_make(const slc_pipeline_request *request, slc_pipeline_plan *out)
{
    const slc_job *job = &request->profile->job;
    planning p = {.request = request,
                  .plan = out,
                  .job = job,
                  .pieces = slc_pipeline_pieces(&request->shape),
                  .layers = job->layer_count,
                  .best_s = INFINITY};
    *out = (slc_pipeline_plan){.strategy = request->strategy};
    if (out->strategy == SLC_STRATEGIES) out->strategy = job->world > 1 ? SLC_SDP : SLC_DP;
    sluice_status status = check_request(&p);
    if (!status) status = planning_init(&p);
    if (!status) status = check_cuts(&p, forbid_cuts(&p));
    if (!status) status = find_plan(&p);
    planning_fini(&p);
    return status;
}

void slc_pipeline_plan_fini(slc_pipeline_plan *plan)
{
    slc_pipeline_forecast_fini(&plan->forecast);
    slc_pipeline_costs_fini(&plan->costs);
    slc_pipeline_program_fini(&plan->program);
    free(plan->older_bytes);
    free(plan->bytes);
    free(plan->first_layer);
    *plan = (slc_pipeline_plan){0};
}
