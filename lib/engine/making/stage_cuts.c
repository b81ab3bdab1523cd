/* Rank 0 looks for cuts that serve every phase of the optimizer. It takes the cuts that are best for one phase, if all
 * other phases fit with them too. The last phase is tried first, because most steps are made in it.
 * tests/engine/pipeline_test.c covers this file. */
#include "lib/engine/making/stage_cuts.h"

#include "lib/base/file/json_file.h"
#include "lib/base/status.h"
#include "lib/base/text/size_text.h"
#include "lib/engine/model/registration.h"
#include "lib/engine/onebit/phase.h"
#include "lib/engine/replan/replan.h"
#include "lib/engine/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 16 }; /* budgets that are tried to find one that works */

/* ---- Phases ---- */

static bool is_listed(const slc_stage *stage, const slc_job *job, const slc_compressed_phase *phase)
{
    slc_job of = *job;
    slc_job_set_phase(&of, phase);
    for (uint32_t p = 0; p < stage->phase_count; p++)
        if (slc_job_in_phase(&of, &stage->phases[p].phase)) return true;
    return false;
}

/* Lists the phases whose jobs differ. */
static void list_phases(sluice_runtime *rt)
{
    slc_stage *stage = &rt->stage;
    static const slc_compressed_phase exact = {0};
    const uint32_t count = rt->compression.on ? rt->onebit.phase_count : 1;
    for (uint32_t p = 0; p < count; p++) {
        const slc_compressed_phase *phase = rt->compression.on ? &rt->onebit.phases[p] : &exact;
        if (!is_listed(stage, &rt->job, phase)) stage->phases[stage->phase_count++].phase = *phase;
    }
    for (uint32_t p = 0; p < stage->phase_count; p++)
        if (slc_job_in_phase(&rt->job, &stage->phases[p].phase)) stage->now = &stage->phases[p];
}

/* ---- Cuts of all phases, on rank 0 ---- */

static slc_stages_request make_request(const sluice_runtime *rt, uint64_t budget_bytes)
{
    const sluice_config *c = &rt->config;
    return (slc_stages_request){.stages = c->pipeline,
                                .chunks = c->pipeline_chunks,
                                .schedule = rt->stage.schedule,
                                .cuts = rt->stage.cuts,
                                .strategy = rt->planning.strategy,
                                .recompute = c->recompute == SLUICE_RECOMPUTE_ALL    ? 1
                                             : c->recompute == SLUICE_RECOMPUTE_NONE ? 0
                                                                                     : 2,
                                .budget_bytes = budget_bytes};
}

/* Cuts the job of one phase: where that of phase `as` is cut, or, if `as` is NULL, where it is best for this phase. */
static sluice_status cut_phase(sluice_runtime *rt, const slc_stages_request *request, slc_stage_phase *phase,
                               const slc_stage_phase *as)
{
    const slc_planner *planner = &rt->planning.planner;
    slc_stages_request asked = *request;
    slc_job job = rt->job;
    slc_job_set_phase(&job, &phase->phase);
    slc_stages_cut_fini(&phase->cut);
    asked.as = as ? &as->cut : NULL;
    return planner->cut(planner->context, &job, &asked, &phase->cut);
}

/* Cuts all phases where it is best for phase number `base`. After BUDGET, *needs is what the phase that does not fit
 * needs. */
static sluice_status cut_as_for(sluice_runtime *rt, const slc_stages_request *request, uint32_t base, uint64_t *needs)
{
    slc_stage_phase *phases = rt->stage.phases;
    const slc_stage_phase *tried = &phases[base];
    sluice_status status = cut_phase(rt, request, &phases[base], NULL);
    for (uint32_t p = 0; !status && p < rt->stage.phase_count; p++) {
        if (p == base) continue;
        tried = &phases[p];
        status = cut_phase(rt, request, &phases[p], &phases[base]);
    }
    *needs = tried->cut.needs_bytes;
    return status;
}

/* Cuts all phases alike. After BUDGET, *needs is the least that any phase that did not fit needs. */
static sluice_status cut_all(sluice_runtime *rt, const slc_stages_request *request, uint64_t *needs)
{
    sluice_status status = SLUICE_ERR_BUDGET;
    *needs = UINT64_MAX;
    for (uint32_t base = rt->stage.phase_count; status == SLUICE_ERR_BUDGET && base-- > 0;) {
        uint64_t most;
        status = cut_as_for(rt, request, base, &most);
        if (most < *needs) *needs = most;
    }
    return status;
}

/* Makes the error for a budget that does not serve all phases. It tries larger budgets, each of which is what some
 * phase needs, and names the first that serves, or the last that was tried. */
static sluice_status over_budget(sluice_runtime *rt, const slc_stages_request *request, uint64_t needs)
{
    slc_stages_request larger = *request;
    sluice_status status = SLUICE_ERR_BUDGET;
    for (int round = 0; round < ROUNDS && status == SLUICE_ERR_BUDGET && needs < UINT64_MAX; round++) {
        larger.budget_bytes = needs;
        status = cut_all(rt, &larger, &needs);
    }
    if (status == SLUICE_ERR_BUDGET && larger.budget_bytes != request->budget_bytes)
        return slc_error(SLUICE_ERR_BUDGET,
                         "no cuts into %u stages fit a budget of %llu bytes in all phases of optimizer %s, nor one of "
                         "%llu (%s), the largest that was tried; give more, or fewer stages",
                         request->stages, (unsigned long long)request->budget_bytes, rt->optimizer.name,
                         (unsigned long long)larger.budget_bytes, slc_size_of(larger.budget_bytes).text);
    if (status) return status;
    return slc_error(SLUICE_ERR_BUDGET,
                     "no cuts into %u stages fit a budget of %llu bytes in all phases of optimizer %s; the smallest "
                     "that was found is %llu (%s)",
                     request->stages, (unsigned long long)request->budget_bytes, rt->optimizer.name,
                     (unsigned long long)larger.budget_bytes, slc_size_of(larger.budget_bytes).text);
}

static sluice_status find_cuts(sluice_runtime *rt, const slc_stages_request *request)
{
    slc_stages_request timed = *request;
    slc_stages_times times = {.update_s_per_element = rt->stage.told.update_s,
                              .channel = {rt->stage.told.message_latency_s, rt->stage.told.message_bytes_per_s}};
    uint64_t needs;
    slc_kept_error kept; /* cuts that do not serve all phases are no error */
    slc_error_keep(&kept);
    sluice_status status = slc_registration_times(&rt->model, &times.slot_s);
    timed.times = times.slot_s ? &times : NULL;
    if (!status) status = cut_all(rt, &timed, &needs);
    if (status == SLUICE_ERR_BUDGET && rt->stage.phase_count > 1) status = over_budget(rt, &timed, needs);
    free(times.slot_s);
    if (status) return slc_error_context(status, "pipeline %u", request->stages);
    return slc_error_restore(&kept, SLUICE_OK);
}

/* ---- Cuts of all phases, on all ranks ---- */

/* Sends the arrays of rank 0's cut, whose other numbers everybody has. */
static sluice_status share_arrays(sluice_runtime *rt, slc_stages_cut *cut)
{
    const uint32_t units = rt->job.unit_count, stages = rt->stage.stages;
    sluice_status status = rt->rank == 0 ? SLUICE_OK : slc_stages_cut_make_room(cut, units, stages);
    if (!status) status = sluice_world_broadcast(rt->world, cut->strategies, units * sizeof *cut->strategies, 0);
    if (!status) status = sluice_world_broadcast(rt->world, cut->held, units * sizeof *cut->held, 0);
    return status ? status : sluice_world_broadcast(rt->world, cut->steps, stages * sizeof *cut->steps, 0);
}

/* Rank 0 cuts, and all get its cuts, or its error. */
static sluice_status share_cuts(sluice_runtime *rt, const slc_stages_request *request)
{
    sluice_status status = rt->rank ? SLUICE_OK : find_cuts(rt, request);
    for (uint32_t p = 0; p < rt->stage.phase_count; p++) {
        slc_stages_cut *cut = &rt->stage.phases[p].cut;
        const slc_stages_cut own = *cut;
        status = slc_runtime_share(rt, status, cut, sizeof *cut);
        cut->strategies = own.strategies;
        cut->held = own.held;
        cut->steps = own.steps;
        if (!status) status = share_arrays(rt, cut);
        if (status) return status;
    }
    return SLUICE_OK;
}

/* Checks that the program says which forward reads last what may cross a cut: without its word everything that a
 * forward makes seems to be read by the next layer. */
static sluice_status check_readers(const sluice_runtime *rt)
{
    const slc_stage *stage = &rt->stage;
    for (uint32_t a = 0; a < rt->model.activation_count; a++) {
        const sluice_activation *activation = rt->model.activations[a];
        const bool told =
            activation->last_forward_layer || (activation->last_layer && activation->last == SLUICE_FORWARD);
        const uint32_t next = activation->layer + 1;
        if (activation->first != SLUICE_FORWARD || activation->recomputable || told) continue;
        if (next == rt->model.layer_count || slc_stage_piece_of(stage, next) == slc_stage_piece_of(stage, next - 1))
            continue;
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "pipeline %u: activation \"%s\" of layer \"%s\" may cross the cut before layer \"%s\", and "
                         "nothing says which forward reads it last: set last_forward_layer",
                         rt->config.pipeline, activation->name, rt->model.layers[next - 1]->name,
                         rt->model.layers[next]->name);
    }
    return SLUICE_OK;
}

/* ---- The stage ---- */

static sluice_status make_own(sluice_runtime *rt, const slc_stages_request *request, slc_stage_phase *phase)
{
    const slc_planner *planner = &rt->planning.planner;
    slc_job job = rt->job;
    slc_job_set_phase(&job, &phase->phase);
    return planner->stage(planner->context, &job, request, &phase->cut, rt->stage.number, &phase->own);
}

static sluice_status compare_plans(sluice_runtime *rt)
{
    uint64_t own = 0;
    int other;
    for (uint32_t p = 0; p < rt->stage.phase_count; p++) own = own * 31 + rt->stage.phases[p].own.fingerprint;
    sluice_status status = slc_engine_find_other(rt, own, &other);
    if (status || !other) return status;
    return slc_error(SLUICE_ERR_MISMATCH,
                     "rank %d made other plans for the stages than rank 0: are all ranks the same build of Sluice?",
                     other);
}

static sluice_status keep_schedule(slc_stage *stage)
{
    char *schedule = strdup(stage->now->cut.schedule);
    if (!schedule) return slc_error(SLUICE_ERR_MEMORY, "a stage");
    free(stage->schedule);
    stage->schedule = schedule;
    return SLUICE_OK;
}

/* Makes the stages of the request, which is the same on every rank but for a kept plan's text. */
static sluice_status make_all(sluice_runtime *rt, const slc_stages_request *request)
{
    slc_stage *stage = &rt->stage;
    sluice_status status = share_cuts(rt, request);
    if (!status) status = check_readers(rt);
    for (uint32_t p = 0; !status && p < stage->phase_count; p++) status = make_own(rt, request, &stage->phases[p]);
    if (!status) status = compare_plans(rt);
    return status ? status : keep_schedule(stage);
}

/* Gives every rank the text of the plan that is kept, whose file rank 0 has; NULL: none is. The caller frees it, after
 * an error too. */
static sluice_status share_kept(sluice_runtime *rt, char **text)
{
    size_t length = 0;
    *text = NULL;
    if (!rt->planning.kept) return SLUICE_OK;
    sluice_status status = rt->rank ? SLUICE_OK : slc_json_file_read(rt->planning.kept, text, &length);
    status = slc_runtime_share(rt, status, &length, sizeof length);
    if (status) return status;
    char *room = malloc(length + 1);
    if (!room) status = slc_error(SLUICE_ERR_MEMORY, "a plan of %zu bytes", length);
    if (room && *text) memcpy(room, *text, length);
    free(*text);
    *text = room;
    if (status) return status;
    room[length] = 0;
    return sluice_world_broadcast(rt->world, room, length, 0);
}

sluice_status slc_stage_cut(sluice_runtime *rt, uint64_t budget_bytes)
{
    char *kept;
    sluice_status status = share_kept(rt, &kept);
    slc_stages_request request = make_request(rt, budget_bytes);
    request.kept = kept;
    list_phases(rt);
    const bool shared = !status;
    if (shared) status = make_all(rt, &request);
    free(kept);
    return shared && rt->planning.kept ? slc_error_context(status, "plan %s", rt->planning.kept) : status;
}

void slc_stage_phases_free(sluice_runtime *rt)
{
    const slc_planner *planner = &rt->planning.planner;
    for (uint32_t p = 0; p < rt->stage.phase_count; p++) {
        slc_stage_phase *phase = &rt->stage.phases[p];
        slc_plan_destroy(phase->own.plan);
        slc_stages_cut_fini(&phase->cut);
        if (phase->own.owner) planner->free_stage(planner->context, &phase->own);
    }
}
