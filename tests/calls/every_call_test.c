/* Every public function is called at every moment of a program's life at which it does not belong there, and with NULL
 * for every pointer. The table says what comes back, as the headers promise it; nothing crashes, and afterwards the
 * runtime goes on, or what follows it does. A function of the headers without a row fails the test. */
#include "tests/calls/every_moment.h"
#include "tests/support/public_functions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <sys/stat.h>

enum { LIMIT_S = 120, PATH_BYTES = 128 };

static char work[] = "/tmp/sluice-every-call-XXXXXX";
static char saved[PATH_BYTES], saves[PATH_BYTES], weights[PATH_BYTES], profile[PATH_BYTES];
static float values[ELEMENTS];

/* ---- The calls ---- */

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

/* ---- The table ---- */

/* `nulls` has a letter for each pointer of the function, which says what comes back if it is NULL, at the first
 * moment of the row at which the call belongs there: a letter of the columns, or "." for one that may be NULL and whose
 * effect the programs (every_moment.h) have. The columns are the moments in their order:
 *   k  it belongs there: SLUICE_OK, or an answer       -  the same, with an effect that they have
 *   N  no answer: 0, false, NULL, "none"
 *   O  ORDER, and everything goes on                   X  ORDER, and the runtime has failed
 *   A  ARGUMENT                                        U  UNSUPPORTED
 *   F  the failure of the runtime                      P  PEER
 *   (blank) such a program has no such moment */
typedef struct {
    kind kind;
    const char *name;
    int (*call)(program *p, int null);
    const char *nulls, *cells;
} row;

#define ALWAYS "kkkkkkkkkkkkk"
#define IN_A_HEALTHY_WORLD "kkkkkkkkkkkkP"
#define BEFORE_COMMIT "kOOOOOOOOOFFO"
#define BETWEEN_STEPS "OkOOOOOOOOFFP"
#define AFTER_COMMIT "OkkkkkkkkkkOk"
#define ANSWERS_AFTER_COMMIT "NkkkkkkkkkkNk"

static const row table[] = {
    /*                                                                     RCSfrdbEevFGP */
    {HOOKS, "sluice_version", version, "", ALWAYS},
    {HOOKS, "sluice_status_name", status_name, "", ALWAYS},
    {HOOKS, "sluice_last_error", last_error, "", ALWAYS},
    {HOOKS, "sluice_dtype_bytes", dtype_bytes, "", ALWAYS},
    {HOOKS, "sluice_dtype_name", dtype_name, "", ALWAYS},
    {HOOKS, "sluice_bf16_from_float", bf16_from_float, "", ALWAYS},
    {HOOKS, "sluice_bf16_to_float", bf16_to_float, "", ALWAYS},

    {HOOKS, "sluice_world_config_init", world_config_init, "A", ALWAYS},
    {HOOKS, "sluice_world_config_init_sized", world_config_init_sized, "A", ALWAYS},
    {HOOKS, "sluice_world_config_init_sized", world_config_of_no_size, "A", "AAAAAAAAAAAAA"},
    {HOOKS, "sluice_launcher_name", launcher_name, "", ALWAYS},
    {HOOKS, "sluice_world_create", world_create, ".A", "kkkkkkkkkkkk-"},
    {HOOKS, "sluice_world_destroy", world_destroy, "k", "-------------"},
    {HOOKS, "sluice_world_rank", world_rank, "N", ALWAYS},
    {HOOKS, "sluice_world_size", world_size, "N", ALWAYS},
    {HOOKS, "sluice_world_local_rank", world_local_rank, "N", ALWAYS},
    {HOOKS, "sluice_world_local_size", world_local_size, "N", ALWAYS},
    {HOOKS, "sluice_world_path", world_path, "N", ALWAYS},
    {HOOKS, "sluice_world_transport", world_transport, "N", "NNNNNNNNNNNNN"},
    {HOOKS, "sluice_world_barrier", world_barrier, "A", IN_A_HEALTHY_WORLD},
    {HOOKS, "sluice_world_broadcast", world_broadcast, "AA", IN_A_HEALTHY_WORLD},
    {HOOKS, "sluice_world_share", world_share, "AA", IN_A_HEALTHY_WORLD},
    {HOOKS, "sluice_world_all_gather", world_all_gather, "AAA", IN_A_HEALTHY_WORLD},
    {HOOKS, "sluice_world_all_reduce", world_all_reduce, "AA", IN_A_HEALTHY_WORLD},
    {HOOKS, "sluice_world_same", world_same, "AA", IN_A_HEALTHY_WORLD},
    {HOOKS, "sluice_world_check", world_check, "A", IN_A_HEALTHY_WORLD},

    {HOOKS, "sluice_config_init", config_init, "k", ALWAYS},
    {HOOKS, "sluice_config_init_sized", config_init_sized, "k", ALWAYS},
    {HOOKS, "sluice_runtime_create", runtime_create, "AAA", ALWAYS},
    {HOOKS, "sluice_runtime_destroy", runtime_destroy, "k", "-------------"},
    {HOOKS, "sluice_layer_add", layer_add, "AAA", BEFORE_COMMIT},
    {HOOKS, "sluice_layer_strategy", layer_strategy, "AA", BEFORE_COMMIT},
    {HOOKS, "sluice_layer_can_recompute", layer_can_recompute, "A", BEFORE_COMMIT},
    {HOOKS, "sluice_layer_precision", layer_precision, "A", BEFORE_COMMIT},
    {HOOKS, "sluice_param_add", param_add, "AAA", BEFORE_COMMIT},
    {HOOKS, "sluice_layer_precision", layer_precision, "A", "OOOOOOOOOOFFO"}, /* the layer has a parameter */
    {HOOKS, "sluice_param_use", param_use, "AA", BEFORE_COMMIT},
    {HOOKS, "sluice_activation_add", activation_add, "AAA", BEFORE_COMMIT},
    {HOOKS, "sluice_activations_add", activations_add, "AAA", BEFORE_COMMIT},
    {HOOKS, "sluice_workspace_add", workspace_add, "AAA", BEFORE_COMMIT},
    {HOOKS, "sluice_activation_shape", activation_shape, "A", BEFORE_COMMIT},
    {HOOKS, "sluice_workspace_shape", workspace_shape, "A", BEFORE_COMMIT},
    {HOOKS, "sluice_activation_add", activation_aside, "AAA", "AOOOOOOOOOFFO"}, /* a direction that is none */
    {HOOKS, "sluice_workspace_add", workspace_nowhere, "AAA", "AOOOOOOOOOFFO"},
    {HOOKS, "sluice_runtime_reserve", reserve, "Ak", BEFORE_COMMIT},
    {HOOKS, "sluice_runtime_commit", runtime_commit, "A", "-OOOOOOOOOFFP"},

    {HOOKS, "sluice_runtime_replan", replan, "Akk", BETWEEN_STEPS},
    {HOOKS, "sluice_runtime_shape", runtime_shape, "k", ALWAYS},
    {HOOKS, "sluice_layer_here", layer_here, "N", ALWAYS},
    {HOOKS, "sluice_layer_runs", layer_runs, "N", ALWAYS},
    {HOOKS, "sluice_layer_recomputes", recomputes, "N", ANSWERS_AFTER_COMMIT},
    {HOOKS, "sluice_param_dtype", param_dtype, "N", ALWAYS},
    {HOOKS, "sluice_param_gradient_dtype", gradient_dtype, "N", ALWAYS},
    {HOOKS, "sluice_param_value", param_value, "N", "NNNkkNkNNkNNN"},
    {HOOKS, "sluice_param_gradient", param_gradient, "N", "NNNNNNkNNNNNN"},
    {HOOKS, "sluice_param_gradient_fresh", gradient_fresh, "NN", "NNNNNNkNNNNNN"},
    {HOOKS, "sluice_activation_data", activation_data, "N", ANSWERS_AFTER_COMMIT},
    {HOOKS, "sluice_workspace_data", workspace_data, "N", "NNNkkNNNNkNNN"},
    {HOOKS, "sluice_step_begin", step_begin, "AA", "O-OOOOOOOOFFP"},
    {HOOKS, "sluice_rows_set", rows_set, "AAA", "OO-OOOOO-OFFP"},
    {HOOKS, "sluice_forward_begin", forward_begin, "A", "OXXXXXXXXXFFP"}, /* without rows too */
    {HOOKS, "sluice_forward_end", forward_end, "A", "OXX-XXXXX-FFP"},
    {HOOKS, "sluice_recompute_begin", recompute_begin, "A", "OXXXXXXXXXFFP"},
    {HOOKS, "sluice_recompute_end", recompute_end, "A", "OXXX-XXXXXFFP"},
    {HOOKS, "sluice_backward_begin", backward_begin, "A", "OXXXX-XXXXFFP"},
    {HOOKS, "sluice_backward_end", backward_end, "A", "OXXXXX-XXXFFP"},
    {HOOKS, "sluice_step_next", step_next, "AA", "OOkOOkOkOOFFP"},
    {HOOKS, "sluice_step_end", step_end, "A.", "OOXXXXX-OOFFP"},
    {HOOKS, "sluice_runtime_sync", runtime_sync, "A", BETWEEN_STEPS},
    {HOOKS, "sluice_runtime_replicas_equal", replicas_equal, "Nk", ALWAYS},
    {HOOKS, "sluice_evaluate_begin", evaluate_begin, "A", "O-OOOOOOOOFFP"},
    {HOOKS, "sluice_evaluate_end", evaluate_end, "A", "OOOOOOOO-XFFP"},

    {HOOKS, "sluice_param_write", param_write, "AA", BETWEEN_STEPS},
    {HOOKS, "sluice_param_read", param_read, "AA", BETWEEN_STEPS},
    {HOOKS, "sluice_param_state_write", state_write, "AAA", BETWEEN_STEPS},
    {HOOKS, "sluice_param_state_read", state_read, "AAA", BETWEEN_STEPS},
    {HOOKS, "sluice_param_state_extent", state_extent, "AAAA", BETWEEN_STEPS},
    {HOOKS, "sluice_param_state_count", state_count, "NN", ANSWERS_AFTER_COMMIT},
    {HOOKS, "sluice_runtime_progress_read", progress_read, "AkAA", BETWEEN_STEPS},
    {HOOKS, "sluice_runtime_progress_write", progress_write, "AkA", BETWEEN_STEPS},
    {HOOKS, "sluice_param_updates", param_updates, "N", ANSWERS_AFTER_COMMIT},
    {HOOKS, "sluice_runtime_step", runtime_step, "N", ANSWERS_AFTER_COMMIT},
    {HOOKS, "sluice_runtime_step_set", step_set, "A", BETWEEN_STEPS},
    {HOOKS, "sluice_param_name", param_name, "N", ALWAYS},
    {HOOKS, "sluice_param_count", param_count, "N", ALWAYS},
    {HOOKS, "sluice_runtime_param_count", runtime_param_count, "N", ALWAYS},
    {HOOKS, "sluice_runtime_param", runtime_param, "N", ALWAYS},
    {HOOKS, "sluice_runtime_weights_sha256", weights_sha256, "AA", BETWEEN_STEPS},
    {HOOKS, "sluice_runtime_memory", runtime_memory, "AA", AFTER_COMMIT},
    {HOOKS, "sluice_layer_strategy_name", strategy_name, "N", ANSWERS_AFTER_COMMIT},
    {HOOKS, "sluice_runtime_replicas", replicas, "N", ALWAYS},
    {HOOKS, "sluice_runtime_replica", replica, "N", "NNNNNNNNNNNNN"}, /* the only rank is number 0 */
    {HOOKS, "sluice_runtime_world", runtime_world, "N", ALWAYS},
    {HOOKS, "sluice_runtime_stream", runtime_stream, "N", ALWAYS},
    {HOOKS, "sluice_stream_native", stream_native, "N", "NNNNNNNNNNNNN"},
    {HOOKS, "sluice_runtime_device", runtime_device, "N", ALWAYS},
    {HOOKS, "sluice_runtime_fail", fail_with_success, "AA", "AAAAAAAAAAAAA"},
    {HOOKS, "sluice_runtime_fail", runtime_fail, "A.", "----------FF-"},
    {HOOKS, "sluice_runtime_profile_write", profile_write, "AAA", "O-OOOOOOOOFFP"},
    {HOOKS, "sluice_runtime_dp_bytes", dp_bytes, "N", ANSWERS_AFTER_COMMIT},
    {HOOKS, "sluice_instruction_set", instruction_set, "", ALWAYS},

    {HOOKS, "sluice_runtime_plan", runtime_plan, "AA", AFTER_COMMIT},
    {HOOKS, "sluice_runtime_plan_json", plan_json, "AAAA", AFTER_COMMIT},
    {HOOKS, "sluice_runtime_trial_count", trial_count, "N", "NNNNNNNNNNNNN"},
    {HOOKS, "sluice_runtime_stage", runtime_stage, "AA", AFTER_COMMIT},
    {HOOKS, "sluice_runtime_piece", runtime_piece, "AAA", "OAAAAAAAAAAOA"}, /* there is no pipeline */
    {HOOKS, "sluice_runtime_layer_times", layer_times, "AAA", AFTER_COMMIT},
    {HOOKS, "sluice_runtime_layer_times_set", layer_times_set, "A", BEFORE_COMMIT},
    {HOOKS, "sluice_runtime_stage_times", stage_times, "AA", BETWEEN_STEPS},
    {HOOKS, "sluice_runtime_stage_times_set", stage_times_set, "AA", BEFORE_COMMIT},
    {HOOKS, "sluice_runtime_trial", runtime_trial, "AA", "AAAAAAAAAAAAA"}, /* no plan was tried */
    {HOOKS, "sluice_runtime_prediction", runtime_prediction, "AA", BETWEEN_STEPS},
    {HOOKS, "sluice_runtime_trace", runtime_trace, "AA", "OOOOOOOOOOFFP"}, /* nothing is recorded */
    {HOOKS, "sluice_runtime_record", runtime_record, "A", BETWEEN_STEPS},
    {HOOKS, "sluice_runtime_record", runtime_record, "A", BETWEEN_STEPS}, /* once more */
    {HOOKS, "sluice_runtime_trace", runtime_trace, "AA", BETWEEN_STEPS},
    {HOOKS, "sluice_checkpoint_lock", checkpoint_lock, "AA", "kkkkkkkkkkFFP"},
    {HOOKS, "sluice_checkpoint_save", checkpoint_save, "AAk", BETWEEN_STEPS},
    {HOOKS, "sluice_checkpoint_begin", checkpoint_begin, "AAk", BETWEEN_STEPS},
    {HOOKS, "sluice_checkpoint_end", checkpoint_end, "Ak", BETWEEN_STEPS}, /* nothing is under way */
    {HOOKS, "sluice_checkpoint_load", checkpoint_load, "AAkk", BETWEEN_STEPS},
    {HOOKS, "sluice_checkpoint_load_list", checkpoint_load_list, "AAAUU", "OUOOOOOOOOFFP"}, /* compressed */
    {HOOKS, "sluice_checkpoint_latest", checkpoint_latest, "AAA", ALWAYS},
    {HOOKS, "sluice_checkpoint_extra", checkpoint_extra, "AAA", ALWAYS},

    {HOOKS, "sluice_model_config_named", config_named, "AAA", ALWAYS},
    {HOOKS, "sluice_model_family_name", family_name, "", ALWAYS},
    {HOOKS, "sluice_model_size_name", size_name, "", ALWAYS},
    {HOOKS, "sluice_model_config_check", config_check, "A", ALWAYS},
    {HOOKS, "sluice_model_param_count", model_param_count, "N", ALWAYS},
    {HOOKS, "sluice_model_tokens", model_tokens, "N", ALWAYS},
    {HOOKS, "sluice_model_targets", model_targets, "N", ALWAYS},
    {HOOKS, "sluice_model_create", model_create, "AAAA", "-OOOOOOOOOFFO"},
    {HOOKS, "sluice_model_destroy", model_destroy, "k", "-------------"},
    /*                                                                     RCSf   Ee FGP */
    {MODEL, "sluice_model_config_read", config_read, "AA", "kkkk   kk kkk"},
    {MODEL, "sluice_model_shape", model_shape, "k", "kkkk   kk kkk"},
    {MODEL, "sluice_model_get_config", get_config, "N", "kkkk   kk kkk"},
    {MODEL, "sluice_model_init", model_init, "A", "OkOO   OO FFP"},
    {MODEL, "sluice_model_load", model_load, "AA", "OkOO   OO FFP"},
    {MODEL, "sluice_model_init_new", model_init_new, "A", "kkkk   kk kkk"}, /* no parameter is new */
    {MODEL, "sluice_model_new_param", model_new_param, "N", "NNNN   NN NNN"},
    {MODEL, "sluice_model_save", model_save, "AA", "OkOO   OO FFP"},
    {MODEL, "sluice_model_forward", model_forward, "AA", "OO-O   O- FFP"},
    {MODEL, "sluice_model_backward", model_backward, "A.", "OXX-   XX FFP"},
    {MODEL, "sluice_model_loss", model_loss, "AA", "OkkO   kk kOk"},
    {MODEL, "sluice_model_observe", model_observe, "A", "UUUU   UU UUU"}, /* it was made without */
    {MODEL, "sluice_model_observed", model_observed, "AAA", "UUUU   UU UUU"},
    {MODEL, "sluice_model_step", model_step, "AAA", "UUUU   UU UUU"}, /* it was made for one micro-batch */
    {MODEL, "sluice_model_block", model_block, "N", "kkkk   kk kkk"},
    {MODEL, "sluice_model_scale_branches", scale_branches, "A", "UUUU   UU UUU"}, /* it was made without */
    {MODEL, "sluice_model_evaluate", model_evaluate, "AAAk", "OkOO   OO FFP"},
    {MODEL, "sluice_model_extend", model_extend, "AUU", "UUUU   UU UUU"},
    {MODEL, "sluice_model_cached", model_cached, "N", "NNNN   NN NNN"},
    {MODEL, "sluice_model_rewind", model_rewind, "A", "UUUU   UU UUU"},
    {MODEL, "sluice_model_check", model_check, "kkk", "kkkk   kk kkk"},
    {CACHE, "sluice_model_extend", model_extend, "AAk", "Ok      O FFP"},
    {CACHE, "sluice_model_cached", model_cached, "N", "Nk      N NNN"},
    {CACHE, "sluice_model_rewind", model_rewind, "A", "kk      k kkk"},
    {CACHE, "sluice_model_cached", model_cached, "N", "NN      N NNN"},
    {CACHE, "sluice_model_forward", model_forward, "AA", "UU      U UUU"},
    {CACHE, "sluice_model_evaluate", model_evaluate, "AAAU", "UU      U UUU"},
};
enum { TABLE_ROWS = sizeof table / sizeof *table };

/* ---- Going through it ---- */

static bool is_outcome(char wanted, int got)
{
    switch (wanted) {
    case 'k': return got == ANSWER;
    case 'N': return got == NOTHING;
    case 'O':
    case 'X': return got == SLUICE_ERR_ORDER;
    case 'A': return got == SLUICE_ERR_ARGUMENT;
    case 'U': return got == SLUICE_ERR_UNSUPPORTED;
    case 'F': return got == SLUICE_ERR_SYSTEM && strstr(sluice_last_error(), planted);
    case 'P': return got == SLUICE_ERR_PEER;
    default: return false;
    }
}

/* A crash ends the rank, not the test program's copy in it, and names the call. */
static const char *now_called = "";

static void crash(int signal)
{
    char line[128];
    const int length = snprintf(line, sizeof line, "%s crashes\n", now_called);
    (void)!write(STDERR_FILENO, line, (size_t)length);
    _exit(128 + signal);
}

/* Makes a row's call; returns 1 if something else comes back than is promised. */
static int makes(program *p, const row *r, int null, char wanted)
{
    now_called = r->name;
    const int got = r->call(p, null);
    if (is_outcome(wanted, got)) return 0;
    const char *name = got == NOTHING ? "nothing" : sluice_status_name((sluice_status)got);
    fprintf(stderr, "%s %s, pointer %d NULL (0: none): %s where '%c' is promised; last error: %s\n", r->name,
            moment_names[p->now], null, name, wanted, sluice_last_error());
    return 1;
}

static moment moment_of_nulls(const row *r)
{
    const size_t at = strcspn(r->cells, "kA-");
    return at < MOMENTS ? (moment)at : IDLE;
}

/* Makes the calls of a moment that leave the program able to go on. */
static int makes_calls(program *p)
{
    int failed = 0;
    for (size_t i = 0; i < TABLE_ROWS; i++) {
        const row *r = &table[i];
        if (r->kind != p->kind) continue;
        if (!strchr("- X", r->cells[p->now])) failed += makes(p, r, 0, r->cells[p->now]);
        for (int n = 0; moment_of_nulls(r) == p->now && r->nulls[n]; n++)
            if (r->nulls[n] != '.') failed += makes(p, r, n + 1, r->nulls[n]);
    }
    return failed;
}

/* A call that makes the runtime fail: later ones say the same, and a new runtime can be made. */
static int makes_last_call(program *p, const row *r)
{
    char line[2048];
    int failed = makes(p, r, 0, 'X');
    snprintf(line, sizeof line, "%s", sluice_last_error());
    if (failed) return failed;
    RANK_CHECK(sluice_runtime_sync(p->rt) == SLUICE_ERR_ORDER);
    RANK_CHECK(!strcmp(line, sluice_last_error()));
    return 0;
}

static bool has_models(void)
{
    char path[PATH_BYTES + 16];
    snprintf(path, sizeof path, "%s/config.json", weights);
    return !access(path, R_OK);
}

static int at_moment(sluice_world **world, kind of, moment at)
{
    program p = {.kind = of, .world = *world};
    if (!there_is(of, at) || (of != HOOKS && !has_models())) return 0;
    RANK_CHECK(!reach(&p, at));
    int failed = makes_calls(&p);
    failed += goes_on(&p);
    RANK_CHECK(!end(&p));
    for (size_t i = 0; i < TABLE_ROWS; i++) {
        if (table[i].kind != of || table[i].cells[at] != 'X') continue;
        RANK_CHECK(!reach(&p, at));
        failed += makes_last_call(&p, &table[i]);
        RANK_CHECK(!end(&p));
    }
    *world = p.world;
    return failed;
}

static int alone(int rank, int size, void *context)
{
    sluice_world *world;
    int failed = 0;
    (void)rank, (void)size, (void)context;
    signal(SIGSEGV, crash);
    RANK_CHECK(!sluice_world_create(NULL, &world));
    for (int k = HOOKS; k <= CACHE; k++)
        for (int m = 0; m < PEER_FAILED; m++) failed += at_moment(&world, (kind)k, (moment)m);
    sluice_world_destroy(world);
    return failed > 100 ? 100 : failed;
}

/* Rank 1 fails, and each call of rank 0 says so. */
static int beside_a_peer(int rank, int size, void *context)
{
    program p = {.kind = *(const kind *)context};
    (void)size;
    signal(SIGSEGV, crash);
    RANK_CHECK(!sluice_world_create(NULL, &p.world));
    sluice_world *world = p.world;
    RANK_CHECK(!reach(&p, PEER_FAILED));
    int failed = rank ? 0 : makes_calls(&p);
    (void)end(&p);
    sluice_world_destroy(world);
    return failed > 100 ? 100 : failed;
}

static void what_is_promised_comes_back(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(1, alone, NULL, LIMIT_S), 0);
}

static void after_the_failure_of_a_rank_too(void **state)
{
    (void)state;
    for (int k = HOOKS; k <= MODEL; k++) {
        kind of = (kind)k;
        if (of == HOOKS || has_models()) assert_int_equal(run_ranks(2, beside_a_peer, &of, LIMIT_S), 0);
    }
}

/* ---- The table is whole ---- */

static int rows_of(const public_function *function)
{
    int count = 0;
    for (size_t i = 0; i < TABLE_ROWS; i++) {
        if (strcmp(table[i].name, function->name)) continue;
        count++;
        if ((int)strlen(table[i].nulls) == function->pointers && strlen(table[i].cells) == MOMENTS) continue;
        fail_msg("%s takes %d pointers; its row has \"%s\" for them, and \"%s\" for %d moments", function->name,
                 function->pointers, table[i].nulls, table[i].cells, MOMENTS);
    }
    return count;
}

static void each_public_function_has_a_row(void **state)
{
    static public_function functions[PUBLIC_FUNCTIONS_MAX];
    const int count = read_public_functions(SLUICE_HEADERS, functions);
    int rows = 0;
    (void)state;
    assert_in_range(count, 100, PUBLIC_FUNCTIONS_MAX - 1);
    for (int i = 0; i < count; i++) {
        const int own = rows_of(&functions[i]);
        if (!own) fail_msg("%s of include/sluice has no row in this test's table: add one", functions[i].name);
        rows += own;
    }
    assert_int_equal(rows, TABLE_ROWS); /* each row is of a function that there is */
}

/* ---- Files to read ---- */

static int write_files(int rank, int size, void *context)
{
    program p = {.kind = HOOKS}, m = {.kind = MODEL};
    (void)rank, (void)size, (void)context;
    RANK_CHECK(!sluice_world_create(NULL, &p.world));
    sluice_world *world = m.world = p.world;
    RANK_CHECK(!reach(&p, IDLE) && !sluice_checkpoint_save(p.rt, saved, "extra", 5) && !end(&p));
    sluice_status status = begin(&m);
    if (status == SLUICE_ERR_UNSUPPORTED) printf("SKIP: models in the table: %s\n", sluice_last_error());
    if (!status) RANK_CHECK(!commit(&m) && !sluice_model_init(m.model, 1) && !sluice_model_save(m.model, weights));
    RANK_CHECK(!status || status == SLUICE_ERR_UNSUPPORTED);
    RANK_CHECK(!end(&m));
    sluice_world_destroy(world);
    return 0;
}

static int make_files(void **state)
{
    (void)state;
    if (!mkdtemp(work)) return -1;
    snprintf(saved, sizeof saved, "%s/saved", work);
    snprintf(saves, sizeof saves, "%s/saves", work);
    snprintf(weights, sizeof weights, "%s/weights", work);
    snprintf(profile, sizeof profile, "%s/profile.json", work);
    if (mkdir(saves, 0700) || mkdir(weights, 0700)) return -1;
    setenv("SLUICE_LOG_LEVEL", "error", 1);
    return run_ranks(1, write_files, NULL, LIMIT_S);
}

static int remove_files(void **state)
{
    (void)state;
    char command[PATH_BYTES];
    snprintf(command, sizeof command, "rm -r %s", work);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_public_function_has_a_row),
                                       cmocka_unit_test(what_is_promised_comes_back),
                                       cmocka_unit_test(after_the_failure_of_a_rank_too)};
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
