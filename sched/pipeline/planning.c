/* The request is checked, and the chain of layers is summed up for the programmes. pipeline_plan_test.c covers this
 * file. */
#include "sched/pipeline/planning.h"

#include "lib/base/status.h"
#include "lib/plan/roles.h"
#include "lib/plan/strategy_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Stands for a schedule that does not flush: without idle time at its ends a step is as long as its slowest stage's. */
static const uint32_t MANY_MICRO_BATCHES = 1u << 20;

/* ---- The request ---- */

/* Marks the cuts that would part a layer from one before it whose backward reads what its forward makes: messages back
 * carry gradients. */
static void forbid_cuts_of_readers(slc_pipeline_planning *p)
{
    for (uint32_t a = 0; a < p->job->activation_count; a++) {
        const slc_activation_life *life = &p->job->activations[a];
        if (!slc_slot_is_forward(p->job, life->first_slot)) continue;
        const slc_activation_readers *readers = slc_readers_of(p->job, life);
        for (uint32_t n = 0; readers && n < readers->count; n++)
            for (uint32_t l = readers->at[n].layer; l < life->first_slot; l++) p->uncut[l] = true;
    }
}

/* Marks the cuts that would part the layers of a unit. Returns the unit that forbids most of them; SLC_NONE: none does.
 */
static uint32_t forbid_cuts(slc_pipeline_planning *p)
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

static sluice_status parted(const slc_pipeline_planning *p, uint32_t u)
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

/* Names an activation because of which no cut may lie before this layer; of the whole chain if it is SLC_NONE. */
static sluice_status parts_readers(const slc_pipeline_planning *p, uint32_t before)
{
    for (uint32_t a = 0; a < p->job->activation_count; a++) {
        const slc_activation_life *life = &p->job->activations[a];
        const slc_activation_readers *readers = slc_readers_of(p->job, life);
        const uint32_t made = life->first_slot, reader = readers && readers->count ? readers->at[0].layer : made;
        if (reader < made && (before == SLC_NONE || (reader < before && before <= made)))
            return slc_error(
                SLUICE_ERR_ARGUMENT,
                "activation \"%s\" of layer \"%s\" is read by the backward of \"%s\" before it, and what goes "
                "back between stages are gradients; cut before or after both",
                life->name, p->job->layers[made], p->job->layers[reader]);
    }
    return SLUICE_OK;
}

static sluice_status check_cuts(const slc_pipeline_planning *p, uint32_t widest)
{
    const uint32_t *first = p->request->first_layer;
    uint32_t free_cuts = 0;
    for (uint32_t l = 0; l + 1 < p->layers; l++) free_cuts += !p->uncut[l];
    if (!first && free_cuts + 1 >= p->pieces) return SLUICE_OK;
    if (!first) return widest == SLC_NONE ? parts_readers(p, SLC_NONE) : parted(p, widest);
    for (uint32_t k = 1; k < p->pieces; k++) {
        for (uint32_t u = 0; u < p->job->unit_count; u++) {
            const slc_unit *unit = &p->job->units[u];
            if (unit->uses[0].layer < first[k] && first[k] <= unit->uses[unit->use_count - 1].layer)
                return parted(p, u);
        }
        if (p->uncut[first[k] - 1]) return parts_readers(p, first[k]);
    }
    return SLUICE_OK;
}

static sluice_status check_request(const slc_pipeline_planning *p)
{
    const slc_pipeline_request *r = p->request;
    sluice_status status = slc_pipeline_check(r->schedule, &r->shape);
    if (status) return status;
    if (p->pieces > p->layers)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%u stages of %u chunk%s are %u pieces, the model has %u layers; up to %u stages work",
                         r->shape.stages, r->shape.chunks, r->shape.chunks == 1 ? "" : "s", p->pieces, p->layers,
                         p->layers / r->shape.chunks);
    if (p->job->each && slc_cut_rows(p->job))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "the rows of \"%s\" come back from another stage, which adds them up over the micro-batches "
                         "of a step; make the profile with --accumulate last",
                         slc_cut_rows(p->job)->name);
    if ((r->strategy == SLC_FSDP || r->strategy == SLC_ONEBIT) && !r->schedule->flushes)
        return slc_error(
            SLUICE_ERR_ARGUMENT,
            "strategy %s: %s keeps older values whole on every rank; dp, oss and sdp work, and so does 1f1b",
            slc_strategy_name(r->strategy), r->schedule->name);
    if (r->schedule->splits && r->recompute == 1)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "%s: weight gradients that are put off read what recomputing would drop; "
                         "recompute in another schedule",
                         r->schedule->name);
    return SLUICE_OK;
}

/* ---- The chain ---- */

slc_cut_job slc_pipeline_planning_cut(const slc_pipeline_planning *p, const slc_pipeline_planning_choice *choice)
{
    const slc_pipeline_request *r = p->request;
    return (slc_cut_job){.profile = r->profile,
                         .schedule = r->schedule,
                         .shape = r->shape,
                         .first_layer = choice->first_layer,
                         .strategies = choice->strategies,
                         .held = choice->held,
                         .recompute = choice->recompute};
}

/* Adds the bytes of a unit. Gathered values come and go, unless they are held over a step. */
static void add_unit_bytes(slc_pipeline_planning *p, const slc_cut_job *cut, uint32_t u)
{
    const slc_unit *whole = &p->job->units[u], unit = slc_unit_of_stage(whole);
    slc_buffer_rule rows[SLC_BUFFER_RULES_MAX];
    const uint32_t layer = unit.uses[0].layer;
    if (slc_looks_up(whole)) return;
    for (uint32_t i = slc_buffer_rules(p->job, &unit, slc_cut_strategy(cut, u), rows); i-- > 0;)
        if (rows[i].kind != SLC_BUFFER_GATHERED || slc_cut_holds(cut, u))
            *(rows[i].kind == SLC_BUFFER_VALUE ? &p->values[layer] : &p->fixed[layer]) +=
                slc_buffer_bytes(p->job, &unit, &rows[i]);
}

/* Older versions of values count as bytes that each micro-batch keeps if every micro-batch has an update, and as fixed
 * bytes if steps only run into each other. */
void slc_pipeline_planning_describe(slc_pipeline_planning *p)
{
    const slc_pipeline_request *r = p->request;
    const slc_job *job = p->job;
    const slc_cut_job cut = slc_pipeline_planning_cut(p, &p->trial);
    for (uint32_t l = 0; l < p->layers; l++) {
        p->layer_s[l] = slc_layer_forward_s(r->profile, l) + slc_layer_backward_s(r->profile, cut.recompute, l);
        p->tail_s[l] = slc_layer_tail_s(&cut, l);
        p->fixed[l] = p->values[l] = p->kept[l] = 0;
        if (l + 1 < p->layers)
            p->cut_s[l] = slc_message_s(&r->profile->times, slc_cut_forward_bytes(job, l)) +
                          slc_message_s(&r->profile->times, slc_cut_backward_bytes(job, l));
    }
    for (uint32_t u = 0; u < job->unit_count; u++) add_unit_bytes(p, &cut, u);
    for (uint32_t a = 0; a < job->activation_count; a++) {
        const slc_activation_life *life = &job->activations[a];
        const uint32_t layer = slc_slot_layer(job, life->first_slot);
        const bool again = cut.recompute && life->recomputable && job->can_recompute && job->can_recompute[layer];
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

/* Sets the pace of layers. Looked-up rows are messages of the layer that looks them up and of the one that has the
 * table: each sends them once a micro-batch. */
static void pace_layers(slc_pipeline_planning *p, bool with_messages)
{
    const slc_unit *rows = slc_cut_rows(p->job);
    for (uint32_t l = 0; l < p->layers; l++) p->paced_s[l] = p->layer_s[l] * p->pace[l];
    if (!with_messages || !rows || p->request->shape.stages == 1) return;
    const double rows_s = slc_message_s(&p->request->profile->times, slc_cut_rows_bytes(rows));
    p->paced_s[rows->uses[0].layer] += rows_s;
    p->paced_s[p->job->units[rows->partner].uses[0].layer] += rows_s;
}

slc_flushed_partition slc_pipeline_planning_partition(slc_pipeline_planning *p, bool with_messages)
{
    const slc_pipeline_request *r = p->request;
    pace_layers(p, with_messages);
    return (slc_flushed_partition){.chain = {.layers = p->layers,
                                             .layer_s = p->paced_s,
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

/* ---- Choices ---- */

/* Lists what a unit may have. On a stage of one rank all strategies are the same. */
static void list_levels(slc_pipeline_planning *p)
{
    const slc_pipeline_request *r = p->request;
    const slc_pipeline_planning_level each = {SLC_FSDP, false}, held = {SLC_FSDP, true}, sdp = {SLC_SDP, false},
                                      onebit = {SLC_ONEBIT, false};
    const bool gathers = r->schedule->flushes && p->job->world > 1;
    if (r->strategy == SLC_FSDP && gathers) {
        p->levels[p->level_count++] = each;
        p->levels[p->level_count++] = held;
    } else if (r->strategy != SLC_STRATEGIES) {
        p->levels[p->level_count++] = (slc_pipeline_planning_level){r->strategy, false};
    } else if (p->job->world == 1) {
        p->levels[p->level_count++] = (slc_pipeline_planning_level){SLC_DP, false};
    } else {
        if (gathers) p->levels[p->level_count++] = each;
        p->levels[p->level_count++] = sdp;
        if (gathers && p->job->compressed) p->levels[p->level_count++] = onebit;
    }
}

void slc_pipeline_planning_copy(const slc_pipeline_planning *p, const slc_pipeline_planning_choice *from,
                                slc_pipeline_planning_choice *to)
{
    to->recompute = from->recompute;
    to->step_s = from->step_s;
    memcpy(to->first_layer, from->first_layer, p->pieces * sizeof *to->first_layer);
    memcpy(to->strategies, from->strategies, p->job->unit_count * sizeof *to->strategies);
    memcpy(to->held, from->held, p->job->unit_count * sizeof *to->held);
}

/* ---- The whole ---- */

static bool choice_init(slc_pipeline_planning_choice *c, size_t pieces, size_t units)
{
    *c = (slc_pipeline_planning_choice){.first_layer = calloc(pieces, sizeof *c->first_layer),
                                        .strategies = calloc(units, sizeof *c->strategies),
                                        .held = calloc(units, sizeof *c->held),
                                        .step_s = INFINITY};
    return c->first_layer && c->strategies && c->held;
}

static void choice_fini(slc_pipeline_planning_choice *c)
{
    free(c->held);
    free(c->strategies);
    free(c->first_layer);
}

static sluice_status arrays_init(slc_pipeline_planning *p)
{
    const slc_pipeline_request *r = p->request;
    slc_pipeline_plan *plan = p->plan;
    const size_t layers = (size_t)p->layers + 1, pieces = (size_t)p->pieces + 1, units = (size_t)p->job->unit_count + 1;
    p->uncut = calloc(layers, sizeof *p->uncut);
    p->layer_s = calloc(5 * layers + pieces, sizeof *p->layer_s);
    p->fixed = calloc(3 * layers + pieces, sizeof *p->fixed);
    p->held = calloc(pieces, sizeof *p->held);
    plan->first_layer = calloc(pieces, sizeof *plan->first_layer);
    plan->bytes = calloc((size_t)r->shape.stages + 1, sizeof *plan->bytes);
    plan->older_bytes = calloc((size_t)r->shape.stages + 1, sizeof *plan->older_bytes);
    bool all = choice_init(&p->trial, pieces, units);
    all &= choice_init(&p->now, pieces, units);
    all &= choice_init(&p->best, pieces, units);
    all &= choice_init(&p->base, pieces, units);
    all &= choice_init(&p->moved, pieces, units);
    if (!all || !p->uncut || !p->layer_s || !p->fixed || !p->held || !plan->first_layer || !plan->bytes ||
        !plan->older_bytes)
        return slc_error(SLUICE_ERR_MEMORY, "pipeline of %u layers", p->layers);
    p->tail_s = p->layer_s + layers;
    p->cut_s = p->tail_s + layers;
    p->paced_s = p->cut_s + layers;
    p->pace = p->paced_s + layers;
    p->hidden_s = p->pace + layers;
    p->values = p->fixed + layers;
    p->kept = p->values + layers;
    p->limit = p->kept + layers;
    for (uint32_t l = 0; l < p->layers; l++) p->pace[l] = 1;
    list_levels(p);
    sluice_status status = slc_pipeline_program_init(r->schedule, &r->shape, 1, &p->step);
    return status ? status
                  : slc_pipeline_program_init(r->schedule, &r->shape, slc_pipeline_steady_steps(r->schedule, &r->shape),
                                              &plan->program);
}

void slc_pipeline_planning_fini(slc_pipeline_planning *p)
{
    slc_pipeline_program_fini(&p->step);
    choice_fini(&p->moved);
    choice_fini(&p->base);
    choice_fini(&p->best);
    choice_fini(&p->now);
    choice_fini(&p->trial);
    free(p->held);
    free(p->fixed);
    free(p->layer_s);
    free(p->uncut);
}

sluice_status slc_pipeline_planning_init(slc_pipeline_planning *p, const slc_pipeline_request *request,
                                         slc_pipeline_plan *out)
{
    const slc_job *job = &request->profile->job;
    *p = (slc_pipeline_planning){.request = request,
                                 .plan = out,
                                 .job = job,
                                 .budget_bytes = request->budget_bytes,
                                 .pieces = slc_pipeline_pieces(&request->shape),
                                 .layers = job->layer_count};
    *out = (slc_pipeline_plan){0};
    sluice_status status = check_request(p);
    if (!status) status = arrays_init(p);
    if (status) return status;
    forbid_cuts_of_readers(p);
    return check_cuts(p, forbid_cuts(p));
}
