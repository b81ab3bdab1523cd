/* Creation, commit, destruction. */
#include "lib/engine/runtime.h"

#include "lib/base/sized.h"
#include "lib/base/status.h"
#include "lib/engine/check/check.h"
#include "lib/engine/checkpoint/lock.h"
#include "lib/plan/request.h"
#include "lib/engine/measure/measure.h"
#include "lib/engine/onebit/phase.h"
#include "lib/engine/replan/replan.h"
#include "lib/engine/settings.h"
#include "lib/optim/adamw.h"
#include "lib/optim/lamb.h"
#include "lib/optim/onebit_adam.h"
#include "lib/optim/onebit_lamb.h"
#include "lib/optim/zero_one_adam.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void sluice_config_init_sized(sluice_config *config, size_t struct_size)
{
    const sluice_config defaults = {
        .strategy = "auto",
        .schedule = SLC_SCHEDULE_DEFAULT,
        .optimizer_name = "adamw",
        .adamw = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01},
        .lamb = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-6, .weight_decay = 0.01, .norm_max = INFINITY},
        .onebit = {.freeze_change = 0.04,
                   .coefficient_beta = 0.9,
                   .trust_min = 0.01,
                   .trust_max = 10,
                   .factor_min = 0.5,
                   .factor_max = 4,
                   .factor_threshold = 0.1,
                   .var_freeze_step = 100000,
                   .var_update_scaler = 16,
                   .local_step_scaler = 32678,
                   .local_step_clipper = 16},
        .wire = SLUICE_BF16,
        .micro_batches = 1,
        .block_bytes = 1 << 20,
        .threads = 1,
        .device = "cpu",
    };
    config->struct_size = struct_size;
    slc_sized_write(&defaults, sizeof defaults, config);
}

static sluice_status check_config(const sluice_config *config)
{
    if (!config->micro_batches)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "micro_batches is 0; a step has at least one: was the config filled by sluice_config_init?");
    if (!(config->clip >= 0) || isinf(config->clip))
        return slc_error(SLUICE_ERR_ARGUMENT, "clip is %g; give a norm above 0, or 0 for none", config->clip);
    if (config->block_bytes < 64 || config->block_bytes > (uint64_t)1 << 32)
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
    if ((unsigned)config->precision > SLUICE_BF16 || (unsigned)config->wire > SLUICE_BF16)
        return slc_error(SLUICE_ERR_ARGUMENT, "precision or wire is no type; there are fp32 and bf16");
    return SLUICE_OK;
}

static sluice_status create_onebit_adam(sluice_runtime *rt)
{
    const sluice_onebit *o = &rt->config.onebit;
    const slc_onebit_adam_settings settings = {.adam = rt->config.adamw,
                                               .freeze_step = o->freeze_step,
                                               .freeze_change = o->freeze_change,
                                               .compat = o->compat,
                                               .mask = o->compat_mask};
    return slc_onebit_adam_create(&settings, &rt->updates, &rt->onebit);
}

static sluice_status create_onebit_lamb(sluice_runtime *rt)
{
    const sluice_onebit *o = &rt->config.onebit;
    const slc_onebit_lamb_settings settings = {.lamb = rt->config.lamb,
                                               .freeze_step = o->freeze_step,
                                               .freeze_change = o->freeze_change,
                                               .compat = o->compat,
                                               .mask = o->compat_mask,
                                               .coefficient_beta = o->coefficient_beta,
                                               .trust_min = o->trust_min,
                                               .trust_max = o->trust_max,
                                               .factor_min = o->factor_min,
                                               .factor_max = o->factor_max,
                                               .factor_threshold = o->factor_threshold};
    return slc_onebit_lamb_create(&settings, &rt->updates, &rt->onebit);
}

static sluice_status create_zero_one_adam(sluice_runtime *rt)
{
    const sluice_onebit *o = &rt->config.onebit;
    const slc_zero_one_adam_settings settings = {.adam = rt->config.adamw,
                                                 .var_freeze_step = o->var_freeze_step,
                                                 .var_update_scaler = o->var_update_scaler,
                                                 .local_step_scaler = o->local_step_scaler,
                                                 .local_step_clipper = o->local_step_clipper,
                                                 .compat = o->compat,
                                                 .mask = o->compat_mask};
    return slc_zero_one_adam_create(&settings, &rt->updates, &rt->onebit);
}

static sluice_status compressed_optimizer(sluice_runtime *rt)
{
    const char *name = rt->config.optimizer_name;
    if (rt->config.accumulate == SLUICE_ACCUMULATE_EACH)
        return slc_error(SLUICE_ERR_UNSUPPORTED,
                         "optimizer %s compresses what each rank has added up over its micro-batches, which accumulate "
                         "each reduces one by one; use accumulate last",
                         name);
    sluice_status status = !strcmp(name, "onebit_adam")   ? create_onebit_adam(rt)
                           : !strcmp(name, "onebit_lamb") ? create_onebit_lamb(rt)
                                                          : create_zero_one_adam(rt);
    rt->compressed = !status;
    rt->optimizer = rt->onebit.optimizer;
    return status;
}

static sluice_status bundled_optimizer(sluice_runtime *rt)
{
    static const char *const compressed[] = {"onebit_adam", "onebit_lamb", "zero_one_adam"};
    const char *name = rt->config.optimizer_name;
    if (!strcmp(name, "lamb")) {
        rt->destroy_optimizer = slc_lamb_destroy;
        return slc_lamb_create(&rt->config.lamb, &rt->updates, &rt->optimizer);
    }
    if (!strcmp(name, "adamw")) {
        rt->destroy_optimizer = slc_adamw_destroy;
        return slc_adamw_create(&rt->config.adamw, &rt->updates, &rt->optimizer);
    }
    for (size_t i = 0; i < sizeof compressed / sizeof *compressed; i++)
        if (!strcmp(name, compressed[i])) return compressed_optimizer(rt);
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "there is no optimizer \"%s\"; give adamw, lamb, onebit_adam, onebit_lamb or zero_one_adam", name);
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

sluice_status slc_engine_allow_onebit(const sluice_runtime *rt, const char *what)
{
    if (rt->compressed) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "%s onebit with optimizer %s: onebit needs a compressed optimizer: onebit_adam, onebit_lamb or "
                     "zero_one_adam",
                     what, rt->optimizer.name);
}

static sluice_status set_optimizer(sluice_runtime *rt)
{
    sluice_status status =
        slc_sized_read("sluice_optimizer", NULL, rt->config.optimizer, sizeof rt->optimizer, &rt->optimizer);
    if (!status) status = rt->config.optimizer ? check_optimizer(&rt->optimizer) : bundled_optimizer(rt);
    if (!status && !strcmp(rt->strategy, "onebit")) status = slc_engine_allow_onebit(rt, "strategy");
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
    slc_comm_call(rt->comm, "runtime_create", NULL);
    rt->config = *config;
    rt->planner = planner;
    rt->cancel = (slc_cancel){world_has_failed, world};
    rt->bad_exchange = rt->bad_local = SLC_NONE;
    rt->rank = sluice_world_rank(world);
    rt->size = sluice_world_size(world);
    rt->strategy = strdup(config->strategy);
    rt->schedule = strdup(config->schedule);
    slc_gate_init(&rt->computed);
    uint32_t threads = config->threads ? config->threads : 1;

    status = SLUICE_ERR_MEMORY;
    if (!rt->strategy || !rt->schedule)
        slc_error(status, "runtime");
    else
        status = slc_engine_fuse_bytes(config->fuse, &rt->fuse_bytes);
    if (!status) status = slc_engine_updates(config->updates, &rt->updates_lane);
    if (!status) status = slc_device_open(config->device, &rt->device);
    if (!status) status = slc_check_create(rt->device, &rt->check);
    if (!status) status = slc_stream_create(rt->device, threads, &rt->compute);
    if (!status) status = slc_stream_create(rt->device, 1, &rt->updates);
    if (!status) status = set_optimizer(rt);
    if (status) {
        sluice_runtime_destroy(rt);
        return status;
    }
    *out = rt;
    return SLUICE_OK;
}

sluice_status sluice_runtime_commit(sluice_runtime *rt)
{
    sluice_status status = slc_runtime_require(rt, false, "commit");
    if (status) return status;
    if (!rt->layer_count || !rt->param_count)
        return slc_error(SLUICE_ERR_ARGUMENT, "commit: there is no layer or no parameter; register the model first");

    status = slc_engine_compare_registration(rt);
    if (!status) status = slc_engine_make_job(rt);
    if (!status) status = slc_check_commit(rt);
    if (!status) status = slc_measure_create(&rt->job, &rt->measure);
    if (!status) status = slc_engine_first_plan(rt);
    if (!status) {
        const slc_plan_request request = slc_engine_standing_request(rt);
        status = slc_phase_check_plans(rt, &request);
    }
    if (!status) status = slc_engine_make_arena(rt);
    if (status) return slc_runtime_fail(rt, status);
    rt->committed = true;
    return SLUICE_OK;
}

static void destroy_registration(sluice_runtime *rt)
{
    for (uint32_t i = 0; i < rt->layer_count; i++) {
        free(rt->layers[i]->name);
        free(rt->layers[i]->units);
        free(rt->layers[i]->uses);
        free(rt->layers[i]);
    }
    for (uint32_t i = 0; i < rt->param_count; i++) {
        free(rt->params[i]->name);
        free(rt->params[i]->marks);
        free(rt->params[i]);
    }
    for (uint32_t i = 0; i < rt->activation_count; i++) {
        free(rt->activations[i]->name);
        free(rt->activations[i]->last_layer);
        free(rt->activations[i]->last_forward_layer);
        free(rt->activations[i]);
    }
    for (uint32_t i = 0; i < rt->workspace_count; i++) {
        free(rt->workspaces[i]->name);
        free(rt->workspaces[i]);
    }
    free(rt->layers);
    free(rt->params);
    free(rt->activations);
    free(rt->workspaces);
}

/* Operations in flight use the arena and the contexts: they are dropped, or finish, before anything is freed. */
static void stop_operations(sluice_runtime *rt)
{
    if (!rt->arena) return;
    bool idle = slc_gate_passed(slc_comm_completed(rt->comm), rt->next_operation);
    if (rt->mode != SLC_IDLE && !idle)
        slc_comm_fail(rt->comm, SLUICE_ERR_ORDER, "the runtime was destroyed inside a step");
    else if (!idle && !sluice_world_check(rt->world))
        (void)slc_comm_wait(rt->comm, rt->next_operation);
    slc_comm_attach(rt->comm, NULL, NULL, 0);
}

void sluice_runtime_destroy(sluice_runtime *rt)
{
    if (!rt) return;
    slc_comm_end_names(rt->comm);
    stop_operations(rt);
    slc_checkpoint_lock_release(rt);
    slc_pass_fini(&rt->train);
    slc_pass_fini(&rt->evaluate);
    slc_arena_destroy(rt->arena);
    slc_plan_destroy(rt->plan);
    slc_measure_destroy(rt->measure);
    slc_recording_destroy(rt->recording);
    slc_check_destroy(rt->check);
    slc_engine_destroy_job(rt);
    destroy_registration(rt);
    if (rt->destroy_optimizer) rt->destroy_optimizer(&rt->optimizer);
    if (rt->onebit.destroy) rt->onebit.destroy(rt->onebit.context);
    slc_norms_destroy(rt);
    if (rt->device) {
        slc_stream_destroy(&rt->compute);
        slc_stream_destroy(&rt->updates);
        slc_device_close(rt->device);
    }
    free(rt->strategy);
    free(rt->schedule);
    free(rt->strategy_now);
    free(rt->schedule_now);
    free(rt->failed_line);
    free(rt);
}
