/* tests/engine/pipeline_test.c covers this file. */
#include "lib/engine/making/stage.h"

#include "lib/base/file/json_file.h"
#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/comm/groups.h"
#include "lib/engine/model/registration.h"
#include "lib/engine/replan/replan.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/stage_rows.h"
#include "lib/engine/units/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 1 }; /* number of the stage's group */

/* ---- Before the job ---- */

/* Writes the numbers of stages that the world has ranks for. */
static void write_divisors(int ranks, char *out, size_t bytes)
{
    size_t used = 0;
    *out = 0;
    for (int p = 2; p <= ranks && used + 16 < bytes; p++)
        if (ranks % p == 0) used += (size_t)snprintf(out + used, bytes - used, "%s%d", used ? ", " : "", p);
}

static sluice_status check_ranks(const sluice_runtime *rt)
{
    const int stages = (int)rt->config.pipeline;
    char divisors[200];
    write_divisors(rt->size, divisors, sizeof divisors);
    if (rt->size % stages == 0) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT, "pipeline %d: %d rank%s no multiple of %d stages; %s%s", stages, rt->size,
                     rt->size == 1 ? " is" : "s are", stages,
                     stages > rt->size ? "start more ranks" : "these work: ", stages > rt->size ? "" : divisors);
}

/* Makes the group of the ranks that hold the same stage: rank = stage * R + replica. */
static sluice_status make_group(sluice_runtime *rt)
{
    const int replicas = rt->size / (int)rt->config.pipeline, stage = rt->rank / replicas;
    int *members = calloc((size_t)replicas, sizeof *members);
    if (!members) return slc_error(SLUICE_ERR_MEMORY, "group of %d replicas", replicas);
    for (int r = 0; r < replicas; r++) members[r] = stage * replicas + r;
    sluice_status status = slc_comm_group_create(rt->comm, GROUP, members, replicas, &rt->stage.group);
    free(members);
    if (status) return status;
    rt->stage.number = (uint32_t)stage;
    rt->lane = rt->stage.group;
    rt->replica = rt->rank % replicas;
    rt->replicas = replicas;
    return SLUICE_OK;
}

static const char *what_does_not_go(const sluice_runtime *rt)
{
    const sluice_config *c = &rt->config;
    if (strcmp(c->device, "cpu")) return "device cuda";
    if (rt->compression.on) return "a compressed optimizer";
    if (rt->check) return "SLUICE_ENGINE_CHECK";
    for (uint32_t l = 0; l < rt->model.layer_count; l++)
        if (rt->model.layers[l]->forced != SLC_STRATEGIES) return "a layer's own strategy (sluice_layer_strategy)";
    return NULL;
}

/* Checks the tables that are looked up by rows. Joint uses in two stages would exchange all of a table in each step. */
static sluice_status check_shared(const sluice_runtime *rt)
{
    uint32_t tables = 0;
    for (uint32_t p = 0; p < rt->model.param_count; p++) {
        const sluice_param *param = rt->model.params[p];
        if (!param->row_elements) continue;
        if (rt->config.tied != SLUICE_TIED_SPLIT)
            return slc_error(SLUICE_ERR_UNSUPPORTED,
                             "pipeline %u: parameter \"%s\" is looked up in one stage and used in another; use tied "
                             "split (--tied split), so that only its rows travel",
                             rt->config.pipeline, param->name);
        if (rt->config.accumulate == SLUICE_ACCUMULATE_EACH)
            return slc_error(SLUICE_ERR_UNSUPPORTED,
                             "pipeline %u: accumulate each, but the rows of \"%s\" come back from another stage, "
                             "which adds them up over the micro-batches of a step; use accumulate last",
                             rt->config.pipeline, param->name);
        if (++tables > 1)
            return slc_error(SLUICE_ERR_UNSUPPORTED,
                             "pipeline %u: \"%s\" is the second table that is looked up by rows; stages exchange the "
                             "rows of one",
                             rt->config.pipeline, param->name);
    }
    return SLUICE_OK;
}

sluice_status slc_stage_begin(sluice_runtime *rt)
{
    if (rt->config.pipeline < 2) return SLUICE_OK;
    const char *what = what_does_not_go(rt);
    sluice_status status =
        what ? slc_error(SLUICE_ERR_UNSUPPORTED, "pipeline %u: not with %s", rt->config.pipeline, what) : SLUICE_OK;
    if (!status && !rt->planning.planner.cut) status = slc_error(SLUICE_ERR_UNSUPPORTED, "pipeline: not in this build");
    if (!status) status = check_ranks(rt);
    if (!status) status = check_shared(rt);
    if (!status) status = make_group(rt);
    if (status) return status;
    slc_gate_init(&rt->stage.agreed);
    rt->stage.stages = rt->config.pipeline;
    slc_comm_name_stages(rt->comm, rt->stage.stages);
    slc_stage_rows_reserve(rt);
    rt->planning.fuse_bytes = 0; /* a unit of several layers could not be cut */
    return SLUICE_OK;
}

/* ---- Cuts ---- */

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
    const slc_planner *planner = &rt->planning.planner;
    slc_stages_cut *cut = &rt->stage.cut;
    slc_stages_request timed = *request;
    slc_stages_times times = {.update_s_per_element = rt->stage.told.update_s,
                              .channel = {rt->stage.told.message_latency_s, rt->stage.told.message_bytes_per_s}};
    sluice_status status = rt->rank ? SLUICE_OK : slc_registration_times(&rt->model, &times.slot_s);
    timed.times = times.slot_s ? &times : NULL;
    if (!status && !rt->rank) status = planner->cut(planner->context, &rt->job, &timed, cut);
    slc_error_context(status, "pipeline %u", request->stages);
    free(times.slot_s);
    const slc_stages_cut own = *cut;
    status = slc_runtime_share(rt, status, cut, sizeof *cut);
    cut->strategies = own.strategies;
    cut->held = own.held;
    cut->steps = own.steps;
    return status ? status : share_arrays(rt, cut);
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

static sluice_status compare_plans(sluice_runtime *rt)
{
    uint64_t *all;
    sluice_status status = slc_engine_gather_numbers(rt, rt->stage.own.fingerprint, &all);
    for (int r = 1; !status && r < rt->size; r++)
        if (all[r] != all[0])
            status = slc_error(SLUICE_ERR_MISMATCH,
                               "rank %d made other plans for the stages than rank 0: are all ranks the same build of "
                               "Sluice?",
                               r);
    free(all);
    return status;
}

/* ---- From the whole model to the stage ---- */

static uint32_t local_layer(const slc_stage *stage, uint32_t layer)
{
    for (uint32_t l = 0; l < stage->own.job.layer_count; l++)
        if (stage->own.layers[l] == layer) return l;
    return SLC_NONE;
}

/* Leaves the stage's layers alone in model.layers, in the stage's order; an object of another layer loses its index. */
static sluice_status take_layers(sluice_runtime *rt)
{
    slc_stage *stage = &rt->stage;
    slc_registration *model = &rt->model;
    sluice_layer **own = calloc((size_t)model->layer_count + 1, sizeof(sluice_layer *));
    if (!own) return slc_error(SLUICE_ERR_MEMORY, "layers");
    for (uint32_t p = 0; p < model->param_count; p++) {
        sluice_param *param = model->params[p];
        param->holder = slc_stage_piece_of(stage, rt->job.units[param->unit].uses[0].layer) % stage->stages;
        param->layer = local_layer(stage, param->layer);
    }
    for (uint32_t w = 0; w < model->workspace_count; w++)
        model->workspaces[w]->layer = local_layer(stage, model->workspaces[w]->layer);
    for (uint32_t l = 0; l < model->layer_count; l++) {
        sluice_layer *layer = model->layers[l];
        layer->index = local_layer(stage, l);
        free(layer->units);
        layer->units = NULL;
        layer->unit_count = 0;
        if (layer->index != SLC_NONE) own[layer->index] = layer;
    }
    stage->layers = model->layers;
    stage->layer_count = model->layer_count;
    model->layers = own;
    model->layer_count = stage->own.job.layer_count;
    return SLUICE_OK;
}

static sluice_status take_units(sluice_runtime *rt)
{
    slc_stage *stage = &rt->stage;
    const slc_job *job = &stage->own.job;
    slc_unit_state *units = calloc((size_t)job->unit_count + 1, sizeof *units);
    if (!units) return slc_error(SLUICE_ERR_MEMORY, "units");
    for (uint32_t p = 0; p < rt->model.param_count; p++)
        rt->model.params[p]->unit = rt->model.params[p]->rows_unit = SLC_NONE;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        units[u].params = rt->units[stage->own.units[u]].params;
        units[u].param_count = rt->units[stage->own.units[u]].param_count;
        for (uint32_t p = 0; p < units[u].param_count; p++) units[u].params[p]->unit = u;
    }
    stage->whole_units = rt->units;
    rt->units = units;
    return SLUICE_OK;
}

static sluice_status take_regions(sluice_runtime *rt)
{
    slc_stage *stage = &rt->stage;
    const slc_job *job = &stage->own.job;
    slc_region *regions = calloc(2 * (size_t)job->layer_count + 1, sizeof *regions);
    if (!regions) return slc_error(SLUICE_ERR_MEMORY, "workspaces");
    for (uint32_t s = 0; s < slc_job_slots(job); s++) {
        const uint32_t layer = stage->own.layers[slc_slot_layer(job, s)];
        regions[s] =
            rt->regions[slc_slot_is_forward(job, s) ? slc_forward_slot(layer) : slc_backward_slot(&rt->job, layer)];
        regions[s].workspace = SLC_NONE;
    }
    for (uint32_t w = 0; w < job->workspace_count; w++) regions[job->workspaces[w].slot].workspace = w;
    stage->whole_regions = rt->regions;
    rt->regions = regions;
    return SLUICE_OK;
}

/* Lists the lives that each slot lies in. Of one activation that lives in several chunks the last one counts, which
 * lies inside of the others. */
static sluice_status list_lives(slc_stage *stage)
{
    const slc_job *job = &stage->own.job;
    const uint32_t slots = slc_job_slots(job);
    uint32_t count = 0;
    for (int pass = 0; pass < 2; pass++) {
        count = 0;
        for (uint32_t s = 0; s < slots; s++) {
            if (pass) stage->first_life[s] = count;
            for (uint32_t a = 0; a < job->activation_count; a++) {
                const slc_activation_life *life = &job->activations[a];
                if (stage->own.activations[a] == SLC_NONE || s < life->first_slot || s > life->last_slot) continue;
                if (pass) stage->lives[count] = a;
                count++;
            }
        }
        if (pass) break;
        stage->lives = calloc((size_t)count + 1, sizeof *stage->lives);
        stage->first_life = calloc((size_t)slots + 1, sizeof *stage->first_life);
        if (!stage->lives || !stage->first_life) return slc_error(SLUICE_ERR_MEMORY, "activations");
    }
    stage->first_life[slots] = count;
    return SLUICE_OK;
}

static bool carries(const slc_job *job, uint32_t channel, uint32_t activation)
{
    const slc_activation_turn *turn = &job->turns[activation];
    return (job->channels[channel].receives ? turn->receive : turn->send) == channel + 1;
}

static sluice_status list_messages(slc_stage *stage)
{
    const slc_job *job = &stage->own.job;
    const size_t channels = (size_t)job->channel_count + 1;
    stage->channels = calloc(channels, sizeof(slc_channel *));
    stage->carried = calloc(channels, sizeof *stage->carried);
    stage->carried_count = calloc(channels, sizeof *stage->carried_count);
    stage->transfers = calloc(channels, sizeof *stage->transfers);
    stage->next_transfer = calloc(channels, sizeof *stage->next_transfer);
    stage->places = calloc((size_t)job->activation_count + 1, sizeof *stage->places);
    if (!stage->channels || !stage->carried || !stage->carried_count || !stage->transfers || !stage->next_transfer ||
        !stage->places)
        return slc_error(SLUICE_ERR_MEMORY, "channels");
    for (uint32_t c = 0; c < job->channel_count; c++) {
        stage->carried[c] = calloc((size_t)job->activation_count + 1, sizeof **stage->carried);
        if (!stage->carried[c]) return slc_error(SLUICE_ERR_MEMORY, "channels");
        for (uint32_t a = 0; a < job->activation_count; a++) {
            if (!carries(job, c, a)) continue;
            stage->carried[c][stage->carried_count[c]++] = a;
            stage->transfers[c] += job->turns[a].turn == 0;
        }
        if (job->channels[c].slot == SLC_NONE) stage->transfers[c] = 1; /* of a table's rows */
        if (!stage->transfers[c])
            return slc_error(SLUICE_ERR_ARGUMENT,
                             "pipeline %u: nothing is said to cross the cut before layer \"%s\" %s; declare what does "
                             "by the lives of activations, or cut elsewhere",
                             stage->stages,
                             stage->whole.layers[stage->cut.first_layer[job->channels[c].number / 2 + 1]],
                             job->channels[c].number % 2 ? "in backward" : "in forward");
    }
    return SLUICE_OK;
}

static sluice_status make_words(sluice_runtime *rt)
{
    const uint64_t count = slc_agreement_words(&rt->job);
    rt->stage.words = calloc(count, sizeof *rt->stage.words);
    rt->stage.all_words = calloc(count * (size_t)rt->size, sizeof *rt->stage.all_words);
    return rt->stage.words && rt->stage.all_words ? SLUICE_OK
                                                  : slc_error(SLUICE_ERR_MEMORY, "words of %d ranks", rt->size);
}

/* From here on slc_stage_destroy gives the whole job back. */
static sluice_status take_stage(sluice_runtime *rt)
{
    slc_stage *stage = &rt->stage;
    sluice_status status = take_layers(rt);
    if (!status) status = take_units(rt);
    if (!status) status = take_regions(rt);
    if (status) return status;
    stage->whole = rt->job;
    rt->job = stage->own.job;
    status = list_lives(stage);
    if (!status) status = list_messages(stage);
    if (!status) status = make_words(rt);
    if (!status) status = slc_stage_rows_create(rt);
    return status ? status : slc_units_list_by_layer(rt);
}

static void warn_of_idle(const sluice_runtime *rt)
{
    const double stages = rt->stage.stages, micro_batches = rt->config.micro_batches;
    if (rt->rank == 0 && micro_batches < stages)
        slc_log(SLC_LOG_WARN,
                "pipeline %u: with %u micro-batch%s a step its stages are idle for about %.0f %% of the time; give as "
                "many as stages, or more",
                rt->stage.stages, rt->config.micro_batches, rt->config.micro_batches == 1 ? "" : "es",
                100 * (stages - 1) / (micro_batches + stages - 1));
}

/* Keeps the predicted step, in parts as they are on the rank that computes longest. Without measured times nothing is
 * predicted. */
static void keep_prediction(sluice_runtime *rt)
{
    const slc_stages_cut *cut = &rt->stage.cut;
    const slc_stage_step *slowest = cut->steps;
    if (!cut->timed) return;
    for (uint32_t s = 1; s < rt->stage.stages; s++)
        if (cut->steps[s].compute_s > slowest->compute_s) slowest = &cut->steps[s];
    const double waiting_s = slowest->idle_s + slowest->exposed_s;
    rt->current.predicted = (sluice_step_parts){.step_s = cut->step_s,
                                                .compute_s = slowest->compute_s,
                                                .waiting_s = waiting_s,
                                                .outside_s = cut->step_s - slowest->compute_s - waiting_s,
                                                .transfer_s = slowest->transfer_s};
}

/* Gives every rank the text of the plan that is kept, whose file rank 0 has; NULL: none is. */
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

/* Makes the stages of the request, which is the same on every rank but for a kept plan's text. */
static sluice_status make_own(sluice_runtime *rt, const slc_stages_request *request)
{
    slc_stage *stage = &rt->stage;
    const slc_planner *planner = &rt->planning.planner;
    sluice_status status = share_cuts(rt, request);
    if (!status) status = check_readers(rt);
    if (!status) status = planner->stage(planner->context, &rt->job, request, &stage->cut, stage->number, &stage->own);
    if (!status) status = compare_plans(rt);
    char *schedule = status ? NULL : strdup(stage->cut.schedule);
    if (!status && !schedule) status = slc_error(SLUICE_ERR_MEMORY, "a stage");
    if (status) return status;
    free(stage->schedule);
    stage->schedule = schedule;
    return SLUICE_OK;
}

sluice_status slc_stage_make(sluice_runtime *rt)
{
    slc_stage *stage = &rt->stage;
    uint64_t budget_bytes = rt->config.budget_bytes;
    char *kept;
    sluice_status status = slc_engine_least_budget(rt, &budget_bytes);
    if (!status) status = share_kept(rt, &kept);
    if (status) return status;
    slc_stages_request request = make_request(rt, budget_bytes);
    request.kept = kept;
    status = make_own(rt, &request);
    free(kept);
    if (kept) slc_error_context(status, "plan %s", rt->planning.kept);
    if (!status) status = take_stage(rt);
    if (status) return status;
    const slc_plan_answer answer = {
        .plan = stage->own.plan, .budget_bytes = budget_bytes, .forecast = {.step_s = stage->cut.step_s}};
    stage->own.plan = NULL;
    slc_engine_begin_plan(rt, &answer, NULL);
    keep_prediction(rt);
    warn_of_idle(rt);
    return SLUICE_OK;
}

/* ---- Channels ---- */

sluice_status slc_stage_open(sluice_runtime *rt)
{
    slc_channel_desc descs[SLC_STAGE_CHANNELS_MAX];
    if (!slc_is_stage(&rt->stage)) return SLUICE_OK;
    for (uint32_t c = 0; c < rt->job.channel_count; c++) {
        const slc_stage_channel *channel = &rt->job.channels[c];
        const int other = (int)channel->stage * rt->replicas + rt->replica;
        descs[c] = (slc_channel_desc){.from = channel->receives ? other : rt->rank,
                                      .to = channel->receives ? rt->rank : other,
                                      .number = channel->number,
                                      .name = channel->number % 2 ? "gradients of a cut" : "activations of a cut"};
    }
    return slc_channels_open(rt->comm, descs, rt->job.channel_count, rt->stage.channels);
}

void slc_stage_close(sluice_runtime *rt)
{
    slc_stage *stage = &rt->stage;
    if (stage->channels) slc_channels_close(stage->channels, rt->job.channel_count);
    for (uint32_t c = 0; stage->channels && c < rt->job.channel_count; c++) stage->channels[c] = NULL;
    slc_comm_group_destroy(stage->group);
    stage->group = NULL;
    rt->lane = rt->comm;
}

static void give_back(sluice_runtime *rt)
{
    slc_stage *stage = &rt->stage;
    if (stage->layers) {
        free(rt->model.layers);
        rt->model.layers = stage->layers;
        rt->model.layer_count = stage->layer_count;
    }
    if (stage->whole_units) {
        for (uint32_t u = 0; u < stage->own.job.unit_count; u++) free(rt->units[u].gathered);
        free(rt->units);
        rt->units = stage->whole_units;
    }
    if (stage->whole_regions) {
        free(rt->regions);
        rt->regions = stage->whole_regions;
    }
    if (stage->whole.layers) rt->job = stage->whole;
}

void slc_stage_destroy(sluice_runtime *rt)
{
    slc_stage *stage = &rt->stage;
    free(stage->schedule);
    free(stage->cuts);
    if (!slc_is_stage(stage)) return;
    slc_comm_name_stages(rt->comm, 0);
    for (uint32_t c = 0; stage->carried && c < stage->own.job.channel_count; c++) free(stage->carried[c]);
    free(stage->carried);
    free(stage->carried_count);
    free(stage->channels);
    free(stage->transfers);
    free(stage->next_transfer);
    free(stage->places);
    free(stage->lives);
    free(stage->first_life);
    free(stage->words);
    free(stage->all_words);
    slc_stage_rows_destroy(rt);
    give_back(rt);
    slc_plan_destroy(stage->own.plan);
    slc_stages_cut_fini(&stage->cut);
    if (stage->own.owner) rt->planning.planner.free_stage(rt->planning.planner.context, &stage->own);
}
