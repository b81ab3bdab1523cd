/* tests/engine/pipeline_test.c covers this file. */
#include "lib/engine/making/stage.h"

#include "lib/base/integer.h"
#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/base/text/divisors.h"
#include "lib/comm/groups.h"
#include "lib/engine/making/stage_cuts.h"
#include "lib/engine/replan/replan.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/agreement.h"
#include "lib/engine/step/stage_rows.h"
#include "lib/engine/units/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 1 }; /* number of the stage's group */

/* ---- Before the job ---- */

static sluice_status check_ranks(const sluice_runtime *rt)
{
    const int stages = (int)rt->config.pipeline;
    char divisors[200];
    slc_divisors_text((uint32_t)rt->size, divisors, sizeof divisors);
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
    if (rt->compression.on && rt->onebit.phases[0].fuses)
        return "one tensor of all parameters, as this optimizer exchanges it with compat; leave compat out";
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

/* ---- From the whole model to the stage ---- */

static uint32_t local_layer(const slc_stage *stage, uint32_t layer)
{
    for (uint32_t l = 0; l < stage->now->own.job.layer_count; l++)
        if (stage->now->own.layers[l] == layer) return l;
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
    model->layer_count = stage->now->own.job.layer_count;
    return SLUICE_OK;
}

static sluice_status take_units(sluice_runtime *rt)
{
    slc_stage *stage = &rt->stage;
    const slc_job *job = &stage->now->own.job;
    slc_unit_state *units = calloc((size_t)job->unit_count + 1, sizeof *units);
    if (!units) return slc_error(SLUICE_ERR_MEMORY, "units");
    for (uint32_t p = 0; p < rt->model.param_count; p++)
        rt->model.params[p]->unit = rt->model.params[p]->rows_unit = SLC_NONE;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        units[u].params = rt->units[stage->now->own.units[u]].params;
        units[u].param_count = rt->units[stage->now->own.units[u]].param_count;
        units[u].onebit = rt->units[stage->now->own.units[u]].onebit;
        for (uint32_t p = 0; p < units[u].param_count; p++) units[u].params[p]->unit = u;
    }
    stage->whole_units = rt->units;
    rt->units = units;
    return SLUICE_OK;
}

static sluice_status take_regions(sluice_runtime *rt)
{
    slc_stage *stage = &rt->stage;
    const slc_job *job = &stage->now->own.job;
    slc_region *regions = calloc(2 * (size_t)job->layer_count + 1, sizeof *regions);
    if (!regions) return slc_error(SLUICE_ERR_MEMORY, "workspaces");
    for (uint32_t s = 0; s < slc_job_slots(job); s++) {
        const uint32_t layer = stage->now->own.layers[slc_slot_layer(job, s)];
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
    const slc_job *job = &stage->now->own.job;
    const uint32_t slots = slc_job_slots(job);
    uint32_t count = 0;
    for (int pass = 0; pass < 2; pass++) {
        count = 0;
        for (uint32_t s = 0; s < slots; s++) {
            if (pass) stage->first_life[s] = count;
            for (uint32_t a = 0; a < job->activation_count; a++) {
                const slc_activation_life *life = &job->activations[a];
                if (stage->now->own.activations[a] == SLC_NONE || s < life->first_slot || s > life->last_slot) continue;
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
    const slc_job *job = &stage->now->own.job;
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
                             stage->whole.layers[stage->now->cut.first_layer[job->channels[c].number / 2 + 1]],
                             job->channels[c].number % 2 ? "in backward" : "in forward");
    }
    return SLUICE_OK;
}

static sluice_status make_words(sluice_runtime *rt)
{
    const uint64_t count = slc_agreement_stage_words(rt);
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
    rt->job = stage->now->own.job;
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

/* Gives the job the scratch of the stage that needs most: some reach their replicas by messages, others through memory,
 * and all ranks cut one job. */
static sluice_status share_scratch(sluice_runtime *rt)
{
    uint64_t *all;
    sluice_status status = slc_engine_gather_numbers(rt, rt->job.scratch_bytes, &all);
    for (int r = 0; !status && r < rt->size; r++) rt->job.scratch_bytes = slc_most(rt->job.scratch_bytes, all[r]);
    free(all);
    return status;
}

sluice_status slc_stage_make(sluice_runtime *rt)
{
    slc_stage *stage = &rt->stage;
    uint64_t budget_bytes = rt->config.budget_bytes;
    sluice_status status = slc_engine_least_budget(rt, &budget_bytes);
    if (!status) status = share_scratch(rt);
    if (!status) status = slc_stage_cut(rt, budget_bytes);
    if (!status) status = take_stage(rt);
    if (status) return status;
    const slc_plan_answer answer = slc_stage_take_plan(stage->now, budget_bytes);
    slc_engine_begin_plan(rt, &answer, NULL);
    slc_stage_keep_prediction(rt);
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
        for (uint32_t u = 0; u < stage->now->own.job.unit_count; u++) free(rt->units[u].gathered);
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
    for (uint32_t c = 0; stage->carried && c < stage->now->own.job.channel_count; c++) free(stage->carried[c]);
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
    slc_stage_phases_free(rt);
}
