/* A call of each public function, as a program at any moment of its life makes it (every_moment.h). */
#pragma once

#include "tests/calls/every_moment.h"

#include <string.h>

/* Paths of files that the calls read and write. */
enum { PATH_BYTES = 128 };
static char saved[PATH_BYTES], saves[PATH_BYTES], weights[PATH_BYTES], profile[PATH_BYTES];
static float values[ELEMENTS];

/* A row's call returns the function's status. For a function that returns no status it returns ANSWER if the function
 * answered, or NOTHING if it gave 0, NULL or "none". */
enum { ANSWER = SLUICE_OK, NOTHING = 1000 };

static int answer(bool some)
{
    return some ? ANSWER : NOTHING;
}

/* `null` is the number of the pointer, from 1, that is not given; 0: all are. */
#define GIVE(number, pointer) (null == (number) ? NULL : (pointer))
#define CALL(name, result)                                                                                             \
    static int name(program *p, int null)                                                                              \
    {                                                                                                                  \
        (void)p, (void)null;                                                                                           \
        return result;                                                                                                 \
    }
/* DO makes a call of a function without a result, as CALL does of one with a result. */
#define DO(name, call)                                                                                                 \
    static int name(program *p, int null)                                                                              \
    {                                                                                                                  \
        (void)p, (void)null;                                                                                           \
        call;                                                                                                          \
        return ANSWER;                                                                                                 \
    }

/* version.h, status.h, dtype.h, world.h */
CALL(version, answer(!strcmp(sluice_version(), SLUICE_VERSION)))
CALL(status_name, answer(!strcmp(sluice_status_name(SLUICE_ERR_PATH), "path")))
CALL(last_error, answer(sluice_last_error() != NULL))
CALL(dtype_bytes, answer(sluice_dtype_bytes(SLUICE_BF16) == 2))
CALL(dtype_name, answer(!strcmp(sluice_dtype_name(SLUICE_BF16), "bf16")))
CALL(bf16_from_float, answer(sluice_bf16_from_float(1) == 0x3f80))
CALL(bf16_to_float, answer(sluice_bf16_to_float(0x3f80) == 1))

static sluice_world_config world_config;
CALL(world_config_init, sluice_world_config_init(GIVE(1, &world_config)))
CALL(world_config_init_sized, sluice_world_config_init_sized(GIVE(1, &world_config), sizeof world_config))
CALL(world_config_of_no_size, sluice_world_config_init_sized(GIVE(1, &world_config), 0))
CALL(launcher_name, answer(sluice_launcher_name() != NULL))

static int world_create(program *p, int null)
{
    sluice_world *other = NULL;
    (void)p;
    sluice_world_config_init(&world_config);
    sluice_status status = sluice_world_create(GIVE(1, &world_config), GIVE(2, &other));
    sluice_world_destroy(other);
    return status;
}
DO(world_destroy, sluice_world_destroy(GIVE(1, NULL)))
CALL(world_rank, answer(sluice_world_rank(GIVE(1, p->world)) >= 0))
CALL(world_size, answer(sluice_world_size(GIVE(1, p->world)) > 0))
CALL(world_local_rank, answer(sluice_world_local_rank(GIVE(1, p->world)) >= 0))
CALL(world_local_size, answer(sluice_world_local_size(GIVE(1, p->world)) > 0))
CALL(world_path, answer(strcmp(sluice_world_path(GIVE(1, p->world)), "none") != 0))
CALL(world_transport, answer(strcmp(sluice_world_transport(GIVE(1, p->world)), "none") != 0))
CALL(world_barrier, sluice_world_barrier(GIVE(1, p->world)))
CALL(world_broadcast, sluice_world_broadcast(GIVE(1, p->world), GIVE(2, values), 4, 0))
CALL(world_share, sluice_world_share(GIVE(1, p->world), SLUICE_OK, GIVE(2, values), 4, 0))
CALL(world_all_gather, sluice_world_all_gather(GIVE(1, p->world), GIVE(2, values), 4, GIVE(3, values)))
CALL(world_all_reduce, sluice_world_all_reduce(GIVE(1, p->world), GIVE(2, (double[1]){1}), 1))
CALL(world_same, sluice_world_same(GIVE(1, p->world), GIVE(2, "thing"), 1))
CALL(world_check, sluice_world_check(GIVE(1, p->world)))

/* runtime.h: registration */
static sluice_config config;
DO(config_init, sluice_config_init(GIVE(1, &config)))
DO(config_init_sized, sluice_config_init_sized(GIVE(1, &config), sizeof config))

static int runtime_create(program *p, int null)
{
    sluice_runtime *other = NULL;
    sluice_config_init(&config);
    sluice_status status = sluice_runtime_create(GIVE(1, p->world), GIVE(2, &config), GIVE(3, &other));
    sluice_runtime_destroy(other);
    return status;
}
DO(runtime_destroy, sluice_runtime_destroy(GIVE(1, NULL)))

static const sluice_param_desc other_w = {.struct_size = sizeof other_w, .name = "other w", .count = 1};
static const sluice_activation_desc one = {.struct_size = sizeof one, .name = "one", .bytes = 1};
static const sluice_workspace_desc extra = {.struct_size = sizeof extra, .name = "extra", .bytes = 1};
static const sluice_activation_desc aside = {
    .struct_size = sizeof aside, .name = "aside", .bytes = 1, .last = (sluice_direction)2};
static const sluice_workspace_desc nowhere = {
    .struct_size = sizeof nowhere, .name = "nowhere", .bytes = 1, .direction = (sluice_direction)2};
static sluice_layer *layer_of(program *p)
{
    return p->added ? p->added : p->last;
}
static struct {
    sluice_param *param;
    sluice_activation *activations[1];
    sluice_workspace *workspace;
} made;
CALL(layer_add, sluice_layer_add(GIVE(1, p->rt), GIVE(2, "added"), GIVE(3, &p->added)))
CALL(layer_strategy, sluice_layer_strategy(GIVE(1, layer_of(p)), GIVE(2, "dp")))
CALL(layer_can_recompute, sluice_layer_can_recompute(GIVE(1, layer_of(p)), false))
CALL(layer_precision, sluice_layer_precision(GIVE(1, layer_of(p)), SLUICE_FP32))
CALL(param_add, sluice_param_add(GIVE(1, layer_of(p)), GIVE(2, &other_w), GIVE(3, &made.param)))
CALL(param_use, sluice_param_use(GIVE(1, layer_of(p)), GIVE(2, p->rows)))
CALL(activation_add, sluice_activation_add(GIVE(1, layer_of(p)), GIVE(2, &one), GIVE(3, made.activations)))
CALL(activations_add, sluice_activations_add(GIVE(1, layer_of(p)), GIVE(2, &one), 1, GIVE(3, made.activations)))
CALL(workspace_add, sluice_workspace_add(GIVE(1, layer_of(p)), GIVE(2, &extra), GIVE(3, &made.workspace)))
CALL(activation_shape, sluice_activation_shape(GIVE(1, p->hidden), 1, 1))
CALL(workspace_shape, sluice_workspace_shape(GIVE(1, p->space), 1, 1))
CALL(runtime_shape, answer(sluice_runtime_shape(GIVE(1, p->rt)) == 0))
CALL(activation_aside, sluice_activation_add(GIVE(1, layer_of(p)), GIVE(2, &aside), GIVE(3, made.activations)))
CALL(workspace_nowhere, sluice_workspace_add(GIVE(1, layer_of(p)), GIVE(2, &nowhere), GIVE(3, &made.workspace)))
CALL(reserve, sluice_runtime_reserve(GIVE(1, p->rt), GIVE(2, "inputs"), 1))
CALL(runtime_commit, sluice_runtime_commit(GIVE(1, p->rt)))

/* runtime.h: steps */
static const sluice_step_options options = {.struct_size = sizeof options, .learning_rate = 0.1};
static sluice_step_report step_report = {.struct_size = sizeof step_report};
static int32_t row_numbers[2] = {7, 1};
static bool flag;
CALL(replan, sluice_runtime_replan(GIVE(1, p->rt), GIVE(2, "dp"), GIVE(3, "one_ahead"), 0))
CALL(layer_here, answer(sluice_layer_here(GIVE(1, p->first))))
CALL(layer_runs, answer(sluice_layer_runs(GIVE(1, p->first))))
CALL(recomputes, answer(sluice_layer_recomputes(GIVE(1, p->first))))
CALL(param_dtype, answer(sluice_param_dtype(GIVE(1, p->w)) == SLUICE_BF16))
CALL(gradient_dtype, answer(sluice_param_gradient_dtype(GIVE(1, p->w)) == SLUICE_BF16))
CALL(param_value, answer(sluice_param_value(GIVE(1, p->w)) != NULL))
CALL(param_gradient, answer(sluice_param_gradient(GIVE(1, p->w)) != NULL))
CALL(gradient_fresh, answer(sluice_param_gradient_fresh(GIVE(1, p->w), GIVE(2, &flag)) != NULL))
CALL(activation_data, answer(sluice_activation_data(GIVE(1, p->hidden)) != NULL))
CALL(workspace_data, answer(sluice_workspace_data(GIVE(1, p->space)) != NULL))
CALL(step_begin, sluice_step_begin(GIVE(1, p->rt), GIVE(2, &options)))
CALL(rows_set, sluice_rows_set(GIVE(1, p->rows), GIVE(2, row_numbers), 2, GIVE(3, row_numbers)))
CALL(forward_begin, sluice_forward_begin(GIVE(1, p->first)))
CALL(forward_end, sluice_forward_end(GIVE(1, p->first)))
CALL(recompute_begin, sluice_recompute_begin(GIVE(1, p->first)))
CALL(recompute_end, sluice_recompute_end(GIVE(1, p->first)))
CALL(backward_begin, sluice_backward_begin(GIVE(1, p->first)))
CALL(backward_end, sluice_backward_end(GIVE(1, p->first)))
static sluice_task task = {.struct_size = sizeof task};
CALL(step_next, sluice_step_next(GIVE(1, p->rt), GIVE(2, &task)))
CALL(expect_launches, sluice_runtime_expect_launches(GIVE(1, p->rt)))
CALL(step_end, sluice_step_end(GIVE(1, p->rt), GIVE(2, &step_report)))
CALL(runtime_sync, sluice_runtime_sync(GIVE(1, p->rt)))
CALL(replicas_equal, answer(sluice_runtime_replicas_equal(GIVE(1, p->rt), GIVE(2, &flag))))
CALL(evaluate_begin, sluice_evaluate_begin(GIVE(1, p->rt)))
CALL(evaluate_end, sluice_evaluate_end(GIVE(1, p->rt)))

/* runtime.h: parameters, states, reports */
static char hex[65];
static double number;
static sluice_memory_report memory_report = {.struct_size = sizeof memory_report};
CALL(param_write, sluice_param_write(GIVE(1, p->w), 0, ELEMENTS, GIVE(2, values)))
CALL(param_read, sluice_param_read(GIVE(1, p->w), 0, ELEMENTS, GIVE(2, values)))
CALL(state_write, sluice_param_state_write(GIVE(1, p->w), GIVE(2, "exp_avg"), 0, ELEMENTS, GIVE(3, values)))
CALL(state_read, sluice_param_state_read(GIVE(1, p->w), GIVE(2, "exp_avg"), 0, ELEMENTS, GIVE(3, values)))
static double squares;
CALL(state_extent, sluice_param_state_extent(GIVE(1, p->w), GIVE(2, "exp_avg"), GIVE(3, &squares), GIVE(4, &number)))
CALL(state_count, answer(sluice_param_state_count(GIVE(1, p->w), GIVE(2, "exp_avg"))))
CALL(progress_read, sluice_runtime_progress_read(GIVE(1, p->rt), GIVE(2, NULL), GIVE(3, "frozen_at"), GIVE(4, &number)))
CALL(progress_write, sluice_runtime_progress_write(GIVE(1, p->rt), GIVE(2, NULL), GIVE(3, "frozen_at"), 0))
CALL(param_updates, answer(sluice_param_updates(GIVE(1, p->w)) > 0))
CALL(runtime_step, answer(sluice_runtime_step(GIVE(1, p->rt))))
CALL(step_set, sluice_runtime_step_set(GIVE(1, p->rt), 1))
CALL(param_name, answer(sluice_param_name(GIVE(1, p->w)) != NULL))
CALL(param_count, answer(sluice_param_count(GIVE(1, p->w))))
CALL(runtime_param_count, answer(sluice_runtime_param_count(GIVE(1, p->rt))))
CALL(runtime_param, answer(sluice_runtime_param(GIVE(1, p->rt), 0) != NULL))
CALL(weights_sha256, sluice_runtime_weights_sha256(GIVE(1, p->rt), GIVE(2, hex)))
CALL(runtime_memory, sluice_runtime_memory(GIVE(1, p->rt), GIVE(2, &memory_report)))
CALL(strategy_name, answer(strcmp(sluice_layer_strategy_name(GIVE(1, p->first)), "none") != 0))
CALL(replicas, answer(sluice_runtime_replicas(GIVE(1, p->rt))))
CALL(replica, answer(sluice_runtime_replica(GIVE(1, p->rt))))
CALL(runtime_world, answer(sluice_runtime_world(GIVE(1, p->rt)) != NULL))
CALL(runtime_stream, answer(sluice_runtime_stream(GIVE(1, p->rt)) != NULL))
CALL(stream_native, answer(sluice_stream_native(GIVE(1, sluice_runtime_stream(p->rt))) != NULL))
CALL(runtime_device, answer(strcmp(sluice_runtime_device(GIVE(1, p->rt)), "none") != 0))
CALL(fail_with_success, sluice_runtime_fail(GIVE(1, p->rt), SLUICE_OK, GIVE(2, planted)))
CALL(runtime_fail, sluice_runtime_fail(GIVE(1, p->rt), SLUICE_ERR_SYSTEM, GIVE(2, planted)))
CALL(profile_write, sluice_runtime_profile_write(GIVE(1, p->rt), GIVE(2, profile), GIVE(3, "model")))
CALL(dp_bytes, answer(sluice_runtime_dp_bytes(GIVE(1, p->rt))))
CALL(instruction_set, answer(sluice_instruction_set() != NULL))

/* plan.h, trace.h, checkpoint.h */
static sluice_plan_report plan_report = {.struct_size = sizeof plan_report};
CALL(runtime_plan, sluice_runtime_plan(GIVE(1, p->rt), GIVE(2, &plan_report)))
static sluice_stage_report stage_report = {.struct_size = sizeof stage_report};
static const char *layer_name;
static uint32_t layer_piece;
CALL(runtime_stage, sluice_runtime_stage(GIVE(1, p->rt), GIVE(2, &stage_report)))
CALL(runtime_piece, sluice_runtime_piece(GIVE(1, p->rt), 0, GIVE(2, &layer_name), GIVE(3, &layer_piece)))
static double layer_s[2];
CALL(layer_times, sluice_runtime_layer_times(GIVE(1, p->rt), 0, GIVE(2, &layer_s[0]), GIVE(3, &layer_s[1])))
CALL(layer_times_set, sluice_runtime_layer_times_set(GIVE(1, p->rt), 0, 1, 2))
static sluice_stage_times besides = {.struct_size = sizeof besides};
CALL(stage_times, sluice_runtime_stage_times(GIVE(1, p->rt), GIVE(2, &besides)))
CALL(stage_times_set, sluice_runtime_stage_times_set(GIVE(1, p->rt), GIVE(2, &besides)))
static sluice_plan_trial plan_trial = {.struct_size = sizeof plan_trial};
CALL(trial_count, answer(sluice_runtime_trial_count(GIVE(1, p->rt)) != 0))
CALL(runtime_trial, sluice_runtime_trial(GIVE(1, p->rt), 0, GIVE(2, &plan_trial)))
static sluice_prediction prediction = {.struct_size = sizeof prediction};
CALL(runtime_prediction, sluice_runtime_prediction(GIVE(1, p->rt), GIVE(2, &prediction)))

static int plan_json(program *p, int null)
{
    char *plan = NULL, *made_from = NULL;
    sluice_status status =
        sluice_runtime_plan_json(GIVE(1, p->rt), GIVE(2, "model"), GIVE(3, &plan), GIVE(4, &made_from));
    free(plan);
    free(made_from);
    return status;
}
CALL(runtime_record, sluice_runtime_record(GIVE(1, p->rt)))

static int runtime_trace(program *p, int null)
{
    char *json = NULL;
    sluice_status status = sluice_runtime_trace(GIVE(1, p->rt), GIVE(2, &json));
    free(json);
    return status;
}
CALL(checkpoint_save, sluice_checkpoint_save(GIVE(1, p->rt), GIVE(2, saves), GIVE(3, values), 4))

static int checkpoint_begin(program *p, int null)
{
    sluice_status status = sluice_checkpoint_begin(GIVE(1, p->rt), GIVE(2, saves), GIVE(3, values), 4);
    return status ? status : sluice_checkpoint_end(p->rt, true, NULL);
}

static int checkpoint_end(program *p, int null)
{
    sluice_save_report report = SLUICE_INIT(sluice_save_report);
    return sluice_checkpoint_end(GIVE(1, p->rt), false, GIVE(2, &report));
}
CALL(checkpoint_lock, sluice_checkpoint_lock(GIVE(1, p->rt), GIVE(2, saves)))

static int checkpoint_load(program *p, int null)
{
    void *data = NULL;
    size_t bytes = 0;
    sluice_status status = sluice_checkpoint_load(GIVE(1, p->rt), GIVE(2, saved), GIVE(3, &data), GIVE(4, &bytes));
    free(data);
    return status;
}

static int checkpoint_load_list(program *p, int null)
{
    void *data = NULL;
    size_t bytes = 0;
    const sluice_checkpoint_list list = SLUICE_INIT(sluice_checkpoint_list);
    sluice_status status =
        sluice_checkpoint_load_list(GIVE(1, p->rt), GIVE(2, saved), GIVE(3, &list), GIVE(4, &data), GIVE(5, &bytes));
    free(data);
    return status;
}

static int checkpoint_latest(program *p, int null)
{
    uint64_t step = 0;
    (void)p;
    sluice_status status = sluice_checkpoint_latest(GIVE(1, saved), GIVE(2, &flag), GIVE(3, &step));
    return status ? (int)status : answer(flag && step == 1);
}

static int checkpoint_extra(program *p, int null)
{
    void *data = NULL;
    size_t bytes = 0;
    (void)p;
    sluice_status status = sluice_checkpoint_extra(GIVE(1, saved), GIVE(2, &data), GIVE(3, &bytes));
    free(data);
    return status;
}

/* model.h */
static sluice_model_config model_config = {.struct_size = sizeof model_config};
static const sluice_model_config *small(void)
{
    model_config = small_model();
    return &model_config;
}
static const sluice_model_options model_options = {.struct_size = sizeof model_options, .batch = 1, .length = TOKENS};
static const sluice_batch batch = {.struct_size = sizeof batch, .tokens = tokens, .targets = targets};
static sluice_model *another_model;
static float logits[TOKENS * 32];
CALL(config_named, sluice_model_config_named(GIVE(1, "gpt2"), GIVE(2, "nano"), GIVE(3, &model_config)))
CALL(family_name, answer(sluice_model_family_name(0) && !sluice_model_family_name(SLUICE_MODEL_FAMILIES)))
CALL(size_name, answer(sluice_model_size_name(SLUICE_GPT2, 0) && !sluice_model_size_name((sluice_model_family)99, 0)))
CALL(config_check, sluice_model_config_check(GIVE(1, small())))
CALL(model_param_count, answer(sluice_model_param_count(GIVE(1, small()))))
CALL(model_tokens, answer(sluice_model_tokens(GIVE(1, small()), TOKENS)))
CALL(model_targets, answer(sluice_model_targets(GIVE(1, small()), TOKENS)))
CALL(model_create,
     sluice_model_create(GIVE(1, p->rt), GIVE(2, small()), GIVE(3, &model_options), GIVE(4, &another_model)))
DO(model_destroy, sluice_model_destroy(GIVE(1, NULL)))
CALL(model_shape, answer(sluice_model_shape(GIVE(1, p->model), 1) == 0))
CALL(get_config, answer(sluice_model_get_config(GIVE(1, p->model)) != NULL))
CALL(model_init, sluice_model_init(GIVE(1, p->model), 1))
CALL(config_read, sluice_model_config_read(GIVE(1, weights), GIVE(2, &model_config)))
CALL(model_load, sluice_model_load(GIVE(1, p->model), GIVE(2, weights), false))
CALL(model_init_new, sluice_model_init_new(GIVE(1, p->model), 1))
CALL(model_new_param, answer(sluice_model_new_param(GIVE(1, p->model), 0) != NULL))
CALL(model_save, sluice_model_save(GIVE(1, p->model), GIVE(2, saves)))
CALL(model_forward, sluice_model_forward(GIVE(1, p->model), GIVE(2, &batch)))
CALL(model_backward, sluice_model_backward(GIVE(1, p->model), GIVE(2, &number)))
CALL(model_loss, sluice_model_loss(GIVE(1, p->model), GIVE(2, &number)))
CALL(model_observe, sluice_model_observe(GIVE(1, p->model), true))
CALL(model_observed, sluice_model_observed(GIVE(1, p->model), 0, GIVE(2, &squares), GIVE(3, &number)))
CALL(model_step, sluice_model_step(GIVE(1, p->model), GIVE(2, &batch), GIVE(3, &flag)))
CALL(model_evaluate, sluice_model_evaluate(GIVE(1, p->model), GIVE(2, &batch), GIVE(3, &number), GIVE(4, logits)))
CALL(model_block, answer(sluice_model_block(GIVE(1, p->model), 0) != NULL))
CALL(scale_branches, sluice_model_scale_branches(GIVE(1, p->model), 0, 2))
CALL(model_extend, sluice_model_extend(GIVE(1, p->model), GIVE(2, tokens), 1, GIVE(3, logits)))
CALL(model_cached, answer(sluice_model_cached(GIVE(1, p->model))))
CALL(model_rewind, sluice_model_rewind(GIVE(1, p->model), 0))
DO(model_check, sluice_model_check(GIVE(1, p->model), GIVE(2, NULL), GIVE(3, NULL)))
