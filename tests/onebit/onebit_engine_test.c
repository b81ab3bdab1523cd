/* Units under onebit, whatever the plan: replicas stay equal, the same units give the same weights under any schedule,
 * block, budget and re-plan, a skipped step changes nothing, a gradient that is not finite is named on every rank, and
 * a state that is saved by hand goes on to the same bits. */
#include "lib/plan/request.h"
#include "lib/engine/engine.h"
#include "sched/planner/parts.h"
#include "tests/support/draw.h"
#include "tests/support/onebit_model.h"
#include "tests/support/planner_of.h"
#include "tests/support/random_order.h"
#include "tests/support/scale.h"
#include "sched/layout/make_plan.h"

#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <setjmp.h>
#include <cmocka.h>

static void passes(int ranks, rank_function function, const trial *t)
{
    assert_int_equal(run_ranks(ranks, function, (void *)(uintptr_t)t, 60), 0);
}

/* ---- Replicas ---- */

enum { MOST_STEPS = 400, LEAST_STEPS = 50 };

/* Each rank chains the hashes of its values after every step; every 50 steps all ranks compare, states too. */
static int many_steps(int rank, int size, void *context)
{
    model m;
    uint64_t hash, chain = 0, all[RANKS_MAX];
    const int scaled = (int)test_rounds(MOST_STEPS), steps = scaled < LEAST_STEPS ? LEAST_STEPS : scaled;
    if (model_world(context, rank, size, &m) || model_build(&m)) return 1;
    for (int step = 1; step <= steps; step++) {
        if (model_step(&m, NULL) || model_hash(&m, false, &hash)) return 1;
        chain = mix(chain ^ hash);
        if (step % 50) continue;
        RANK_CHECK(!sluice_world_all_gather(m.world, &chain, sizeof chain, all));
        for (int r = 0; r < size; r++) RANK_CHECK(all[r] == chain);
        if (model_replicas_equal(&m, &hash)) return 1;
    }
    return model_peak_is_planned(&m) || model_leave(&m);
}

static void replicas_are_equal_for_many_steps(void **state)
{
    (void)state;
    passes(2, many_steps, &(trial){.seed = 21, .freeze_step = 20, .schedule = "one_ahead"});
    passes(4, many_steps, &(trial){.seed = 28, .freeze_step = 20, .onebit_layers = 9, .other = "oss"});
    passes(2, many_steps, &(trial){.seed = 46, .freeze_step = 20, .optimizer = "onebit_lamb"});
    passes(4, many_steps, &(trial){.seed = 47, .freeze_step = 20, .optimizer = "onebit_lamb", .compat = true});
}

/* ---- The same units, other plans ---- */

enum { STEPS = 12 };

static int weights_of(const trial *t, model *m, uint64_t *hash)
{
    m->t = t;
    if (model_build(m)) return 1;
    for (int step = 1; step <= STEPS; step++)
        if (model_step(m, NULL)) return 1;
    if (model_replicas_equal(m, hash) || model_peak_is_planned(m)) return 1;
    model_end(m);
    return 0;
}

static int any_schedule(int rank, int size, void *context)
{
    static const char *const schedules[] = {"one_ahead", "bucketed", "random", "greedy",
                                            slc_schedule_default}; /* the last two measure */
    const trial *t = context;
    model m;
    uint64_t expected, hash;
    if (model_world(t, rank, size, &m) || weights_of(t, &m, &expected)) return 1;
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        if (i >= 3 && !t->adapts) break;
        trial other = *t;
        other.schedule = schedules[i];
        if (i % 2) other.block = 512;
        if (weights_of(&other, &m, &hash)) return 1;
        RANK_CHECK(hash == expected);
    }
    sluice_world_destroy(m.world);
    return 0;
}

static void any_schedule_gives_the_same_weights(void **state)
{
    (void)state;
    passes(2, any_schedule, &(trial){.seed = 22, .freeze_step = 4, .adapts = true});
    passes(2, any_schedule, &(trial){.seed = 23, .freeze_step = 4, .onebit_layers = 6, .other = "fsdp", .clip = 0.4});
    passes(3, any_schedule,
           &(trial){
               .seed = 24, .freeze_step = 5, .onebit_layers = 5, .other = "sdp", .micro_batches = 2, .bf16_layers = 3});
}

/* "order/SEED" draws a random legal order of what the strategies ask for, with late operations and cut in runs. */
static sluice_status plan_random_order(void *context, const slc_job *job, const slc_plan_request *request,
                                       slc_plan_answer *answer)
{
    (void)context;
    const char *seed = strchr(request->schedule, '/');
    slc_strategy strategies[2 * LAYERS];
    slc_order order = {0};
    *answer = (slc_plan_answer){0};
    sluice_status status = slc_strategies_parse(job, request->strategy, strategies);
    if (status) return status;
    slc_strategies_force(job, request->forced, strategies);
    slc_scheduling in = {.job = job,
                         .strategies = strategies,
                         .limit = UINT64_MAX,
                         .seed = (seed ? strtoull(seed + 1, NULL, 10) : 0) + job->compressed};
    random_order_make(&in, &order);
    status = slc_plan_from_order(&in, &order, &slc_scheduler_one_ahead, &answer->plan);
    slc_order_fini(&order);
    return status;
}

static sluice_status create_with_orders(sluice_world *world, const sluice_config *config, sluice_runtime **out)
{
    return slc_engine_create(world, config, planner_of(plan_random_order), out);
}

static int random_orders(int rank, int size, void *context)
{
    trial t = *(const trial *)context;
    model m;
    uint64_t expected, hash;
    if (model_world(&t, rank, size, &m) || weights_of(&t, &m, &expected)) return 1;
    m.create = create_with_orders;
    const unsigned orders = 1 + test_rounds(14);
    for (unsigned seed = 1; seed <= orders; seed++) {
        char schedule[16];
        snprintf(schedule, sizeof schedule, "order/%u", seed);
        t.schedule = schedule;
        t.block = 256 << seed % 5;
        if (weights_of(&t, &m, &hash)) return 1;
        RANK_CHECK(hash == expected);
    }
    sluice_world_destroy(m.world);
    return 0;
}

static void any_order_gives_the_same_weights(void **state)
{
    (void)state;
    passes(2, random_orders, &(trial){.seed = 42, .freeze_step = 4});
    passes(2, random_orders,
           &(trial){.seed = 43, .freeze_step = 4, .onebit_layers = 5, .other = "fsdp", .micro_batches = 2});
    passes(3, random_orders, &(trial){.seed = 44, .freeze_step = 4, .onebit_layers = 6, .other = "sdp", .clip = 0.4});
    passes(2, random_orders,
           &(trial){.seed = 48, .freeze_step = 4, .optimizer = "onebit_lamb", .onebit_layers = 6, .other = "fsdp"});
    passes(2, random_orders, &(trial){.seed = 49, .freeze_step = 4, .optimizer = "onebit_lamb", .compat = true});
    passes(2, random_orders, &(trial){.seed = 45, .freeze_step = 4, .bf16_layers = 15, .messages = true});
}

static int other_strategies(int rank, int size, void *context)
{
    return model_beside_any_strategy(rank, size, context, weights_of);
}

static void other_layers_may_be_sharded_in_any_way(void **state)
{
    (void)state;
    passes(3, other_strategies, &(trial){.seed = 25, .freeze_step = 3, .onebit_layers = 6});
    passes(2, other_strategies,
           &(trial){.seed = 26, .freeze_step = 3, .onebit_layers = 9, .clip = 0.3, .micro_batches = 2});
}

/* ---- Re-plans ---- */

/* Another plan of the same units after every step changes nothing: residues move with their units. */
static int moved(int rank, int size, void *context)
{
    static const char *const schedules[] = {"one_ahead", "serial", "bucketed", "random"};
    trial t = *(const trial *)context;
    model m;
    uint64_t expected, hash;
    if (model_world(&t, rank, size, &m) || weights_of(&t, &m, &expected) || model_build(&m)) return 1;
    for (int step = 1; step <= STEPS; step++) {
        if (model_step(&m, NULL)) return 1;
        RANK_CHECK(!sluice_runtime_replan(m.rt, NULL, schedules[step % 4], 0));
    }
    if (model_replicas_equal(&m, &hash) || model_peak_is_planned(&m)) return 1;
    RANK_CHECK(hash == expected);
    return model_leave(&m);
}

static void residues_move_with_their_units(void **state)
{
    (void)state;
    passes(2, moved, &(trial){.seed = 27, .freeze_step = 3});
    passes(2, moved, &(trial){.seed = 50, .freeze_step = 3, .optimizer = "onebit_lamb"});
    passes(3, moved, &(trial){.seed = 51, .freeze_step = 3, .optimizer = "onebit_lamb", .compat = true});
    passes(3, moved, &(trial){.seed = 28, .freeze_step = 3, .onebit_layers = 10, .other = "fsdp"});
}

static int errors_are_zero(known *k)
{
    static const char *const names[] = {"error_worker", "error_server"};
    float x[PADDED_MAX];
    for (int s = 0; s < 2; s++) {
        uint64_t count = sluice_param_state_count(k->param, names[s]);
        RANK_CHECK(!count || !sluice_param_state_read(k->param, names[s], 0, count, x));
        for (uint64_t i = 0; i < count; i++) RANK_CHECK(x[i] == 0);
    }
    return 0;
}

/* Units become onebit, without errors at first, and stop being it: values and moments keep their bits. */
static int other_units(int rank, int size, void *context)
{
    static const char *const strategies[] = {"fsdp", "onebit", "random:2", "random:3", "dp", "random:4", "onebit"};
    model m;
    uint64_t before, after;
    if (model_world(context, rank, size, &m) || model_build(&m)) return 1;
    for (int step = 1; step <= STEPS; step++) {
        if (model_step(&m, NULL) || model_replicas_equal(&m, &before)) return 1;
        bool onebit[PARAMS_MAX];
        for (uint32_t p = 0; p < m.param_count; p++) onebit[p] = model_is_onebit(&m.params[p]);
        RANK_CHECK(!sluice_runtime_replan(m.rt, strategies[step % 7], NULL, 0));
        for (uint32_t p = 0; p < m.param_count; p++)
            if (!onebit[p] && errors_are_zero(&m.params[p])) return 1;
        if (model_replicas_equal(&m, &after)) return 1;
        RANK_CHECK(before == after);
    }
    return model_peak_is_planned(&m) || model_leave(&m);
}

static void units_may_become_onebit_and_stop(void **state)
{
    (void)state;
    passes(2, other_units, &(trial){.seed = 29, .freeze_step = 2});
    passes(4, other_units, &(trial){.seed = 30, .freeze_step = 2, .bf16_layers = 6, .clip = 0.5});
}

/* ---- Gradients that are not finite ---- */

/* A hash of the errors of this rank. */
static int errors_of(model *m, uint64_t *hash)
{
    static const char *const names[] = {"error_worker", "error_server"};
    float x[PADDED_MAX];
    *hash = 1;
    for (uint32_t p = 0; p < m->param_count; p++)
        for (int s = 0; s < 2; s++) {
            uint64_t count = sluice_param_state_count(m->params[p].param, names[s]);
            if (!count) continue;
            RANK_CHECK(!sluice_param_state_read(m->params[p].param, names[s], 0, count, x));
            for (uint64_t i = 0; i < count; i++) {
                uint32_t bits;
                memcpy(&bits, &x[i], 4);
                *hash = mix(*hash ^ bits);
            }
        }
    return 0;
}

static int skip_steps(int rank, int size, void *context)
{
    model m;
    uint64_t weights[2], errors[2], random = ((const trial *)context)->seed, updates = 0;
    if (model_world(context, rank, size, &m) || model_build(&m)) return 1;
    for (uint64_t call = 1; call <= 30; call++) {
        sluice_step_report report = SLUICE_INIT(sluice_step_report);
        bool bad = draw(&random, 3) == 0;
        m.bad_rank = (int)draw(&random, (uint64_t)size);
        m.bad_param = (uint32_t)draw(&random, m.param_count);
        m.bad_call = bad ? call : 0;
        if (model_replicas_equal(&m, &weights[0]) || errors_of(&m, &errors[0]) || model_step(&m, &report)) return 1;
        if (model_replicas_equal(&m, &weights[1]) || errors_of(&m, &errors[1])) return 1;
        updates += !bad;
        RANK_CHECK(report.skipped == bad && sluice_runtime_step(m.rt) == updates);
        RANK_CHECK(bad == (weights[0] == weights[1]));
        RANK_CHECK(!bad || errors[0] == errors[1]);
    }
    return model_peak_is_planned(&m) || model_leave(&m);
}

static void a_skipped_step_changes_nothing(void **state)
{
    (void)state;
    passes(2, skip_steps, &(trial){.seed = 31, .freeze_step = 5, .skip_nan = true});
    passes(4, skip_steps,
           &(trial){.seed = 32, .freeze_step = 5, .skip_nan = true, .clip = 0.5, .onebit_layers = 5, .other = "fsdp"});
    passes(2, skip_steps,
           &(trial){.seed = 33, .freeze_step = 5, .skip_nan = true, .bf16_layers = 15, .micro_batches = 2});
}

static int stop_at_once(int rank, int size, void *context)
{
    model m;
    if (model_world(context, rank, size, &m) || model_build(&m)) return 1;
    m.bad_call = 6;
    m.bad_rank = size - 1;
    m.bad_param = (uint32_t)(m.t->seed % m.param_count);
    char layer[16];
    snprintf(layer, sizeof layer, "layer \"l%u\"", m.params[m.bad_param].layer);
    for (int step = 1; step < 6; step++)
        if (model_step(&m, NULL)) return 1;
    if (model_compute(&m)) return 1;
    sluice_status status = sluice_step_end(m.rt, NULL);
    if (!status) status = sluice_runtime_sync(m.rt);
    RANK_CHECK(status == SLUICE_ERR_NON_FINITE);
    RANK_CHECK(strstr(sluice_last_error(), layer));
    RANK_CHECK(sluice_runtime_sync(m.rt) == SLUICE_ERR_NON_FINITE);
    return model_leave(&m);
}

static void a_gradient_that_is_not_finite_is_named_on_every_rank(void **state)
{
    (void)state;
    passes(2, stop_at_once, &(trial){.seed = 34, .freeze_step = 3});
    passes(3, stop_at_once, &(trial){.seed = 35, .freeze_step = 3, .schedule = "one_ahead", .clip = 1});
    passes(2, stop_at_once,
           &(trial){.seed = 36, .freeze_step = 3, .onebit_layers = 7, .other = "sdp", .bf16_layers = 15});
}

/* The errors of finite gradients add up until a momentum overflows: that exchange must change nothing, or be an
 * error. */
static int overflow(int rank, int size, void *context)
{
    const trial *t = context;
    model m;
    uint64_t hash, failed_at = 0;
    if (model_world(t, rank, size, &m) || model_build(&m)) return 1;
    m.huge_from = t->freeze_step + 1;
    for (uint64_t step = 1; step <= 30 && !failed_at; step++) {
        if (model_compute(&m)) return 1;
        sluice_status status = sluice_step_end(m.rt, NULL);
        if (!status) status = sluice_runtime_sync(m.rt);
        if (status == SLUICE_ERR_NON_FINITE && !t->skip_nan) failed_at = step;
        RANK_CHECK(!status || failed_at);
        for (uint32_t p = 0; !status && p < m.param_count; p++) {
            float x[COUNT_MAX];
            RANK_CHECK(!sluice_param_read(m.params[p].param, 0, m.params[p].count, x));
            for (uint64_t i = 0; i < m.params[p].count; i++) RANK_CHECK(isfinite(x[i]));
        }
        if (!status && model_replicas_equal(&m, &hash)) return 1;
    }
    RANK_CHECK(failed_at || t->skip_nan);
    RANK_CHECK(!failed_at || strstr(sluice_last_error(), "\"l0"));
    return model_leave(&m);
}

static void what_overflows_is_no_step(void **state)
{
    (void)state;
    passes(2, overflow, &(trial){.seed = 52, .freeze_step = 3, .skip_nan = true});
    passes(3, overflow, &(trial){.seed = 53, .freeze_step = 3, .skip_nan = true, .schedule = "one_ahead"});
    passes(2, overflow, &(trial){.seed = 54, .freeze_step = 3});
    passes(2, overflow, &(trial){.seed = 52, .freeze_step = 3, .clip = 3e38});
}

/* ---- The freeze ---- */

/* The freeze by the criterion comes at the step that the variance's norm says, under any strategy. */
static int freeze_by_criterion(int rank, int size, void *context)
{
    static const char *const strategies[] = {"onebit", "fsdp", "random:5"};
    trial t = *(const trial *)context;
    model m;
    uint64_t frozen[3] = {0};
    if (model_world(&t, rank, size, &m)) return 1;
    for (int i = 0; i < 3; i++) {
        double norm = 0, before = 0, at;
        uint64_t expected = 0;
        t.strategy = strategies[i];
        if (model_build(&m)) return 1;
        for (uint64_t step = 1; step <= 60; step++) {
            sluice_step_report report = SLUICE_INIT(sluice_step_report);
            float v[COUNT_MAX];
            if (model_step(&m, &report)) return 1;
            RANK_CHECK(report.compressed == (frozen[i] != 0));
            RANK_CHECK(!sluice_runtime_progress_read(m.rt, NULL, "frozen_at", &at));
            if (at > 0 && !frozen[i]) frozen[i] = (uint64_t)at;
            if (step % 10 || expected) continue;
            double sum = 0;
            for (uint32_t p = 0; p < m.param_count; p++) {
                RANK_CHECK(!sluice_param_state_read(m.params[p].param, "exp_avg_sq", 0, m.params[p].count, v));
                for (uint64_t j = 0; j < m.params[p].count; j++) sum += (double)v[j] * v[j];
            }
            norm = sqrt(sum) / (1 - pow(t.beta2, (double)step));
            if (before > 0 && fabs(norm - before) <= t.freeze_change * norm) expected = step;
            before = norm;
        }
        RANK_CHECK(expected && frozen[i] == expected);
        model_end(&m);
    }
    sluice_world_destroy(m.world);
    return 0;
}

static void the_criterion_freezes_under_any_strategy(void **state)
{
    (void)state;
    passes(2, freeze_by_criterion, &(trial){.seed = 37, .beta2 = 0.9, .freeze_change = 0.1});
    passes(3, freeze_by_criterion, &(trial){.seed = 38, .beta2 = 0.9, .freeze_change = 0.06});
}

/* ---- State by hand ---- */

typedef struct {
    float value[COUNT_MAX], state[4][PADDED_MAX];
    uint64_t counts[4];
} kept;

static const char *const names[] = {"exp_avg", "exp_avg_sq", "error_worker", "error_server"};

static int keep(model *m, kept *all)
{
    for (uint32_t p = 0; p < m->param_count; p++) {
        sluice_param *param = m->params[p].param;
        RANK_CHECK(!sluice_param_read(param, 0, m->params[p].count, all[p].value));
        for (int s = 0; s < 4; s++) {
            all[p].counts[s] = sluice_param_state_count(param, names[s]);
            if (all[p].counts[s])
                RANK_CHECK(!sluice_param_state_read(param, names[s], 0, all[p].counts[s], all[p].state[s]));
        }
    }
    return 0;
}

static int restore(model *m, const kept *all, uint64_t step, double frozen_at)
{
    RANK_CHECK(!sluice_runtime_progress_write(m->rt, NULL, "frozen_at", frozen_at));
    RANK_CHECK(!sluice_runtime_step_set(m->rt, step));
    for (uint32_t p = 0; p < m->param_count; p++) {
        sluice_param *param = m->params[p].param;
        RANK_CHECK(!sluice_param_write(param, 0, m->params[p].count, all[p].value));
        for (int s = 0; s < 4; s++) {
            RANK_CHECK(sluice_param_state_count(param, names[s]) == all[p].counts[s]);
            if (all[p].counts[s])
                RANK_CHECK(!sluice_param_state_write(param, names[s], 0, all[p].counts[s], all[p].state[s]));
        }
    }
    return 0;
}

static int go_on(int rank, int size, void *context)
{
    static kept all[PARAMS_MAX];
    const trial *t = context;
    model m;
    uint64_t expected, hash;
    double frozen_at, missing;
    if (model_world(t, rank, size, &m) || model_build(&m)) return 1;
    for (int step = 1; step <= 10; step++)
        if (model_step(&m, NULL)) return 1;
    RANK_CHECK(!sluice_runtime_progress_read(m.rt, NULL, "frozen_at", &frozen_at));
    RANK_CHECK(frozen_at == (double)t->freeze_step);
    RANK_CHECK(sluice_runtime_progress_read(m.rt, NULL, "thawed_at", &missing) == SLUICE_ERR_ARGUMENT);
    if (keep(&m, all)) return 1;
    for (int step = 11; step <= 15; step++)
        if (model_step(&m, NULL)) return 1;
    if (model_replicas_equal(&m, &expected)) return 1;
    model_end(&m);

    if (model_build(&m) || restore(&m, all, 10, frozen_at)) return 1;
    m.calls = 10;
    for (int step = 11; step <= 15; step++)
        if (model_step(&m, NULL)) return 1;
    if (model_replicas_equal(&m, &hash)) return 1;
    RANK_CHECK(hash == expected);
    return model_leave(&m);
}

static void state_written_back_goes_on_to_the_same_bits(void **state)
{
    (void)state;
    passes(2, go_on, &(trial){.seed = 39, .freeze_step = 4});
    passes(3, go_on, &(trial){.seed = 40, .freeze_step = 4, .onebit_layers = 3, .other = "fsdp", .bf16_layers = 6});
}

/* ---- The budget ---- */

static int too_small(int rank, int size, void *context)
{
    trial t = *(const trial *)context;
    model m;
    sluice_memory_report memory = SLUICE_INIT(sluice_memory_report);
    uint64_t hash;
    if (model_world(&t, rank, size, &m) || model_build(&m)) return 1;
    RANK_CHECK(!sluice_runtime_memory(m.rt, &memory));
    const uint64_t warm_up = memory.planned_bytes;
    for (int step = 1; step <= 4; step++) {
        if (model_step(&m, NULL)) return 1;
        if (step > 1) continue;
        RANK_CHECK(sluice_runtime_replan(m.rt, NULL, NULL, warm_up) == SLUICE_ERR_BUDGET);
        RANK_CHECK(strstr(sluice_last_error(), "compressed phase"));
    }
    RANK_CHECK(!sluice_runtime_memory(m.rt, &memory));
    const uint64_t compressed = memory.planned_bytes;
    RANK_CHECK(compressed > warm_up);
    model_end(&m);

    t.budget = compressed; /* exactly enough */
    if (weights_of(&t, &m, &hash)) return 1;
    sluice_config config = model_config(&t);
    config.budget_bytes = warm_up; /* enough for the warm-up alone */
    m.param_count = 0;
    uint64_t random = t.seed;
    RANK_CHECK(!sluice_runtime_create(m.world, &config, &m.rt));
    if (model_layers(&m, &random)) return 1;
    RANK_CHECK(sluice_runtime_commit(m.rt) == SLUICE_ERR_BUDGET);
    RANK_CHECK(strstr(sluice_last_error(), "compressed phase"));
    return model_leave(&m);
}

static void a_budget_must_hold_every_phase(void **state)
{
    (void)state;
    passes(2, too_small, &(trial){.seed = 41, .freeze_step = 2});
}

/* The planner chooses, and plans again with measured times in both phases. */
static int chosen(int rank, int size, void *context)
{
    model m;
    uint64_t hash;
    return model_world(context, rank, size, &m) || weights_of(context, &m, &hash) || (sluice_world_destroy(m.world), 0);
}

static void the_planner_keeps_to_the_budget_in_every_phase(void **state)
{
    (void)state;
    passes(
        2, chosen,
        &(trial){
            .seed = 55, .freeze_step = 5, .strategy = "auto", .schedule = slc_schedule_default, .budget_of_dp = 0.9});
    passes(2, chosen,
           &(trial){.seed = 56,
                    .freeze_step = 2,
                    .strategy = "auto",
                    .schedule = slc_schedule_default,
                    .budget_of_dp = 1.2,
                    .clip = 1});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas_are_equal_for_many_steps),
        cmocka_unit_test(any_schedule_gives_the_same_weights),
        cmocka_unit_test(any_order_gives_the_same_weights),
        cmocka_unit_test(other_layers_may_be_sharded_in_any_way),
        cmocka_unit_test(residues_move_with_their_units),
        cmocka_unit_test(units_may_become_onebit_and_stop),
        cmocka_unit_test(a_skipped_step_changes_nothing),
        cmocka_unit_test(a_gradient_that_is_not_finite_is_named_on_every_rank),
        cmocka_unit_test(what_overflows_is_no_step),
        cmocka_unit_test(the_criterion_freezes_under_any_strategy),
        cmocka_unit_test(state_written_back_goes_on_to_the_same_bits),
        cmocka_unit_test(a_budget_must_hold_every_phase),
        cmocka_unit_test(the_planner_keeps_to_the_budget_in_every_phase),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
