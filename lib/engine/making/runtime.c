/* Creation, commit, destruction. tests/calls/engine_check_test.c covers this file. */
#include "lib/base/numbers/floats.h"
#include "lib/base/sized.h"
#include "lib/base/status.h"
#include "lib/engine/check/check.h"
#include "lib/engine/checkpoint/lock.h"
#include "lib/engine/checkpoint/saving.h"
#include "lib/engine/making/base_block.h"
#include "lib/engine/making/device.h"
#include "lib/engine/making/host_memory.h"
#include "lib/engine/making/job.h"
#include "lib/engine/making/stage.h"
#include "lib/engine/engine.h"
#include "lib/engine/measure/marks.h"
#include "lib/engine/measure/measure.h"
#include "lib/engine/model/registration.h"
#include "lib/engine/onebit/phase.h"
#include "lib/engine/replan/regroup.h"
#include "lib/engine/replan/replan.h"
#include "lib/engine/runtime.h"
#include "lib/engine/settings.h"
#include "lib/engine/step/agreement.h"
#include "lib/engine/step/left_out.h"
#include "lib/engine/step/messages.h"
#include "lib/engine/step/pass.h"
#include "lib/engine/step/progress.h"
#include "lib/optim/optimizers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void sluice_config_init_sized(sluice_config *config, size_t struct_size)
{
    sluice_config defaults = {
        .strategy = "auto",
        .schedule = slc_schedule_default,
        .wire = SLUICE_BF16,
        .micro_batches = 1,
        .threads = 1,
        .device = "cpu",
    };
    slc_optimizer_defaults(&defaults);
    (void)slc_sized_begin("sluice_config", &defaults, sizeof defaults, config, struct_size);
}

static sluice_status check_config(const sluice_config *config)
{
    if (!config->micro_batches)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "micro_batches is 0; a step has at least one: was the config filled by sluice_config_init?");
    if (!(config->clip >= 0) || isinf(config->clip))
        return slc_error(SLUICE_ERR_ARGUMENT, "clip is %g; give a norm above 0, or 0 for none", config->clip);
    if (config->block_bytes && (config->block_bytes < 64 || config->block_bytes > (uint64_t)1 << 32))
        return slc_error(SLUICE_ERR_ARGUMENT, "block is %llu bytes; give 64 bytes to 4 GiB",
                         (unsigned long long)config->block_bytes);
    if (!config->strategy || !config->schedule || !config->device || !config->optimizer_name)
        return slc_error(SLUICE_ERR_ARGUMENT, "strategy, schedule, device and optimizer_name must be given: "
                                              "use sluice_config_init");
    if ((unsigned)config->recompute > SLUICE_RECOMPUTE_ALL)
        return slc_error(SLUICE_ERR_ARGUMENT, "recompute holds no value of its type; give auto, none or all");
    if ((unsigned)config->updates > SLUICE_UPDATES_BOTH)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "updates holds no value of its type; give auto, communication, compute or both");
    if ((unsigned)config->nan > SLUICE_NAN_SKIP || (unsigned)config->accumulate > SLUICE_ACCUMULATE_EACH)
        return slc_error(SLUICE_ERR_ARGUMENT, "nan or accumulate holds no value of its type");
    if ((unsigned)config->tied > SLUICE_TIED_SPLIT)
        return slc_error(SLUICE_ERR_ARGUMENT, "tied holds no value of its type; there are joint and split");
    if ((unsigned)config->sums > SLUICE_SUMS_NCCL)
        return slc_error(SLUICE_ERR_ARGUMENT, "sums holds no value of its type; there are ordered and nccl");
    if ((unsigned)config->precision > SLUICE_BF16 || (unsigned)config->wire > SLUICE_BF16)
        return slc_error(SLUICE_ERR_ARGUMENT, "precision or wire is no type; there are fp32 and bf16");
    return SLUICE_OK;
}

static sluice_status check_optimizer(const sluice_optimizer *o)
{
    if (!o->update || !o->name)
        return slc_error(SLUICE_ERR_ARGUMENT, "the optimizer lacks a name or an update function");
    if (o->state_count > SLUICE_OPTIMIZER_STATES_MAX)
        return slc_error(SLUICE_ERR_ARGUMENT, "optimizer %s has %u states; at most %d", o->name, o->state_count,
                         SLUICE_OPTIMIZER_STATES_MAX);
    if (o->norm_count > SLUICE_OPTIMIZER_NORMS_MAX || o->maximum_count > SLUICE_OPTIMIZER_NORMS_MAX - o->norm_count ||
        (o->norm_count && (!o->measure || !o->mixed_precision)))
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "optimizer %s wants %u norms; at most %d, with a measure function and mixed_precision",
                         o->name, o->norm_count, SLUICE_OPTIMIZER_NORMS_MAX);
    for (uint32_t s = 0; s < o->state_count; s++)
        if (!o->state_name[s]) return slc_error(SLUICE_ERR_ARGUMENT, "optimizer %s: state %u has no name", o->name, s);
    return SLUICE_OK;
}

static sluice_status create_optimizer(sluice_runtime *rt)
{
    const sluice_config *c = &rt->config;
    if (c->accumulate == SLUICE_ACCUMULATE_EACH && slc_optimizer_is_compressed(c->optimizer_name))
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "optimizer %s compresses what each rank has added up over its micro-batches, which accumulate "
                         "each reduces one by one; use accumulate last",
                         c->optimizer_name);
    sluice_status status = slc_optimizer_create(c, &rt->updates, &rt->optimizer, &rt->onebit);
    rt->compression.on = rt->onebit.commit != NULL;
    return status;
}

static sluice_status set_optimizer(sluice_runtime *rt)
{
    sluice_status status =
        slc_sized_read("sluice_optimizer", NULL, rt->config.optimizer, sizeof rt->optimizer, &rt->optimizer);
    if (!status) status = rt->config.optimizer ? check_optimizer(&rt->optimizer) : create_optimizer(rt);
    if (!status) status = slc_engine_check_optimizer_device(rt);
    if (!status && rt->planning.kept && rt->compression.on)
        status =
            slc_error(SLUICE_ERR_UNSUPPORTED,
                      "config.plan_file \"%s\": optimizer %s has a plan for each of its phases, and a file holds one; "
                      "leave it out",
                      rt->planning.kept, rt->optimizer.name);
    if (!status && !strcmp(rt->planning.strategy, "onebit")) status = slc_engine_allow_onebit(rt, "strategy");
    if (!status && rt->optimizer.norm_count && rt->config.clip > 0)
        status =
            slc_error(SLUICE_ERR_UNSUPPORTED,
                      "clip is %g, but the norms of optimizer %s are measured before the gradient's norm is known; "
                      "use clip 0",
                      rt->config.clip, rt->optimizer.name);
    return status;
}

static bool world_has_failed(void *context)
{
    return sluice_world_check(context) != SLUICE_OK;
}

sluice_status slc_engine_create(sluice_world *world, const sluice_config *given, slc_planner planner,
                                sluice_runtime **out)
{
    if (!world || !given || !out) return slc_error(SLUICE_ERR_ARGUMENT, "runtime_create: world, config and result");
    sluice_config full;
    const sluice_config *config = &full;
    sluice_config_init(&full);
    sluice_status status = slc_sized_read("sluice_config", "sluice_config_init", given, sizeof full, &full);
    if (!status) status = check_config(config);
    if (status) return status;
    sluice_runtime *rt = calloc(1, sizeof *rt);
    if (!rt) return slc_error(SLUICE_ERR_MEMORY, "runtime");
    rt->world = world;
    rt->comm = slc_world_comm(world);
    slc_world_hold(world);
    slc_comm_call(rt->comm, "runtime_create", NULL);
    rt->config = *config;
    rt->planning.planner = planner;
    rt->planning.cancel = (slc_cancel){world_has_failed, world};
    rt->rank = sluice_world_rank(world);
    rt->size = sluice_world_size(world);
    rt->lane = rt->comm;
    rt->replica = rt->rank;
    rt->replicas = rt->size;
    rt->planning.strategy = strdup(config->strategy);
    rt->planning.schedule = strdup(config->schedule);
    rt->planning.kept = config->plan_file ? strdup(config->plan_file) : NULL;
    rt->stage.schedule = strdup(config->pipeline_schedule ? config->pipeline_schedule : "1f1b");
    rt->stage.cuts = strdup(config->pipeline_cuts ? config->pipeline_cuts : "auto");
    slc_gate_init(&rt->lanes.computed);
    uint32_t threads = config->threads ? config->threads : 1;

    status = SLUICE_ERR_MEMORY;
    if (!rt->planning.strategy || !rt->planning.schedule || !rt->stage.schedule || !rt->stage.cuts ||
        (config->plan_file && !rt->planning.kept))
        slc_error(status, "runtime");
    else
        status = slc_engine_fuse_bytes(config->fuse, &rt->planning.fuse_bytes);
    if (!status) status = slc_engine_updates(config->updates, &rt->planning.updates);
    if (!status) status = slc_setting_count(&slc_engine_settings, "SLUICE_PLAN_DRIFT", &rt->planning.drift);
    if (!status) status = slc_engine_open_device(rt);
    if (!status) status = slc_check_create(rt->device, &rt->check);
    if (!status) status = slc_stream_create(rt->device, threads, &rt->compute);
    /* On a device that runs ahead, updates get the communication thread's stream later (replan/place.c). */
    rt->updates.device = rt->device;
    if (!status && !slc_device_runs_ahead(rt->device)) status = slc_stream_create(rt->device, 1, &rt->updates);
    if (!status) status = slc_lane_events_create(rt->device, SLC_LANE_PLACES, &rt->lanes.events);
    if (!status) status = set_optimizer(rt);
    if (status) {
        sluice_runtime_destroy(rt);
        return status;
    }
    *out = rt;
    return SLUICE_OK;
}

/* Makes memory for the rates of groups, once for each of the two steps that may be under way at the same time. */
static sluice_status make_group_rates(sluice_runtime *rt)
{
    for (int i = 0; i < 2; i++) {
        rt->steps[i].group_rates = calloc(rt->model.group_count, sizeof *rt->steps[i].group_rates);
        if (!rt->steps[i].group_rates) return slc_error(SLUICE_ERR_MEMORY, "rates of %u groups", rt->model.group_count);
    }
    return SLUICE_OK;
}

sluice_status sluice_runtime_commit(sluice_runtime *rt)
{
    SLC_HOLD_FLOATS;
    slc_host_look host;
    sluice_status status = slc_runtime_require(rt, false, "commit");
    if (status) return status;
    if (slc_comm_is_attached(rt->comm))
        return slc_error(
            SLUICE_ERR_ORDER,
            "commit: another runtime of this world is committed, and a world serves one at a time; destroy "
            "that one first, or give this one a world of its own (sluice_world_create, with another port)");
    if (!rt->model.layer_count || !rt->model.param_count)
        return slc_error(SLUICE_ERR_ARGUMENT, "commit: there is no layer or no parameter; register the model first");

    status = slc_engine_compare_registration(rt);
    if (!status) status = make_group_rates(rt);
    if (!status) status = slc_left_out_create(rt);
    if (!status) status = slc_stage_begin(rt);
    if (!status) status = slc_engine_choose_block(rt);
    if (!status) status = slc_engine_make_job(rt);
    if (!status && slc_is_stage(&rt->stage)) status = slc_stage_make(rt);
    if (!status) status = slc_check_commit(rt);
    if (!status) status = slc_measure_create(&rt->job, &rt->measure);
    if (!status) status = slc_marks_create(rt, &rt->marks);
    if (!status) status = slc_progress_create(rt);
    if (!status) status = slc_engine_look_at_host(rt, &host);
    if (!status && !slc_is_stage(&rt->stage)) status = slc_engine_first_plan(rt);
    if (!status && !slc_is_stage(&rt->stage)) {
        const slc_plan_request request = slc_engine_standing_request(rt);
        status = slc_phase_check_plans(rt, &request);
    }
    if (!status) slc_engine_warn_of_memory(rt, &host);
    if (!status) status = slc_engine_explain_memory(rt, &host, slc_engine_make_arena(rt));
    if (!status) status = slc_stage_open(rt);
    if (status) return slc_runtime_fail(rt, status);
    rt->committed = true;
    return SLUICE_OK;
}

/* Stops the operations before anything is freed: those in flight use the arena and the contexts, so they are dropped,
 * or finish. */
static void stop_operations(sluice_runtime *rt)
{
    if (!rt->memory.arena) return;
    bool idle =
        slc_gate_passed(slc_comm_completed(rt->lane), rt->lanes.next_operation) && slc_stage_messages_have_arrived(rt);
    /* After a failure of this rank's own, what operations wait for may never come. */
    const bool stuck = rt->mode != SLC_IDLE || (rt->failure.status && !rt->failure.alike);
    if (stuck && !idle)
        slc_comm_fail(rt->comm, SLUICE_ERR_ORDER, "the runtime was destroyed inside a step");
    else if (!idle && !sluice_world_check(rt->world))
        (void)slc_comm_wait(rt->lane, rt->lanes.next_operation);
    /* Kernels that are issued but not done still use the arena. A device that has failed does not make this wait. */
    (void)slc_stream_synchronize(&rt->compute);
    slc_stage_close(rt);
    slc_comm_attach(rt->comm, NULL, NULL, 0);
}

void sluice_runtime_destroy(sluice_runtime *rt)
{
    if (!rt) return;
    slc_comm_end_names(rt->comm);
    stop_operations(rt);
    slc_saving_destroy(rt);
    slc_checkpoint_lock_release(rt);
    slc_pass_fini(&rt->train);
    slc_pass_fini(&rt->evaluate);
    slc_arena_destroy(rt->memory.arena);
    slc_bounce_destroy(&rt->memory.bounce);
    slc_shapes_fini(rt);
    slc_plan_destroy(rt->current.plan);
    slc_times_fini(&rt->current.times);
    slc_measure_destroy(rt->measure);
    slc_marks_destroy(rt->marks);
    slc_pinned_destroy(&rt->progress);
    slc_recording_destroy(rt->recording);
    slc_check_destroy(rt->check);
    slc_stage_close(rt);
    slc_stage_destroy(rt);
    slc_engine_destroy_job(rt);
    slc_registration_fini(&rt->model);
    if (!rt->config.optimizer) slc_optimizer_destroy(&rt->optimizer, &rt->onebit);
    slc_phase_destroy(rt);
    slc_norms_destroy(rt);
    for (int i = 0; i < 2; i++) free(rt->steps[i].group_rates);
    slc_left_out_destroy(rt);
    if (rt->device) {
        slc_lane_events_destroy(&rt->lanes.events);
        slc_stream_destroy(&rt->compute);
        if (!slc_device_runs_ahead(rt->device)) slc_stream_destroy(&rt->updates);
        slc_device_close(rt->device);
    }
    slc_trials_end(rt);
    free(rt->planning.strategy);
    free(rt->planning.schedule);
    free(rt->planning.strategy_now);
    free(rt->planning.schedule_now);
    free(rt->planning.kept);
    free(rt->failure.line);
    slc_world_release(rt->world);
    free(rt);
}
