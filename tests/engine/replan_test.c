/* A re-plan in the middle of training leaves values and optimizer states equal to the bit, whatever plan follows
 * whatever other, and training goes on as in a run that never planned again. Plans are made on rank 0 alone. */
#include "lib/base/element.h"
#include "lib/base/status.h"
#include "lib/engine/engine.h"
#include "sched/planner.h"
#include "tests/support/draw.h"
#include "tests/support/planner_of.h"
#include "tests/support/ranks.h"
#include "tests/support/scale.h"

#include <sluice/sluice.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { LAYERS = 4, PARAMS_MAX = 12 };

typedef struct {
    uint64_t seed;
    uint32_t micro_batches;
    bool each, direct;
    double clip;
    uint64_t block;
    const char *schedule, *strategy; /* strategy NULL: sdp */
    uint32_t bf16_layers;            /* bit l: layer l computes in bf16 */
    bool fp32_wire;
    bool moves;                /* plans again between all steps */
    uint32_t trials;           /* plans that are tried beside the planner's */
    bool short_run;            /* it says that it has too few steps to pay for any of them */
    slc_plan_function planner; /* NULL: the library's own, which must be asked on rank 0 only */
} trial;

typedef struct {
    sluice_param *param;
    uint32_t layer;
    uint64_t count;
    bool frozen;
} known;

typedef struct {
    const trial *t;
    int rank;
    sluice_runtime *rt;
    sluice_layer *layers[LAYERS];
    sluice_activation *activations[LAYERS];
    known params[PARAMS_MAX];
    uint32_t param_count;
} model;

/* Any plan will do here, so a planning takes little. */
static const double EFFORT_S = 0.02;

static sluice_status plan_on_rank_0(void *context, const slc_job *job, const slc_plan_request *request,
                                    slc_plan_answer *answer)
{
    slc_plan_request quick = *request;
    (void)context;
    quick.effort_s = EFFORT_S;
    if (strcmp(getenv("RANK"), "0")) return slc_error(SLUICE_ERR_ARGUMENT, "rank %s plans", getenv("RANK"));
    return slc_plan_for_budget(job, &quick, answer);
}

static int add_params(model *m, uint64_t *random)
{
    for (uint32_t l = 0; l < LAYERS; l++)
        for (uint64_t k = 1 + draw(random, 3); k > 0; k--) {
            known *p = &m->params[m->param_count++];
            char name[8];
            snprintf(name, sizeof name, "p%u", (unsigned)k);
            *p = (known){.layer = l, .count = 1 + draw(random, 3000), .frozen = draw(random, 6) == 0};
            RANK_CHECK(!sluice_param_add(
                m->layers[l], &SLUICE_INIT(sluice_param_desc, .name = name, .count = p->count, .frozen = p->frozen),
                &p->param));
        }
    return 0;
}

static int build(model *m, sluice_world *world)
{
    const trial *t = m->t;
    uint64_t random = t->seed;
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = t->strategy ? t->strategy : "sdp";
    config.schedule = t->schedule;
    config.micro_batches = t->micro_batches;
    config.accumulate = t->each ? SLUICE_ACCUMULATE_EACH : SLUICE_ACCUMULATE_LAST;
    config.clip = t->clip;
    config.block_bytes = t->block;
    config.wire = t->fp32_wire ? SLUICE_FP32 : SLUICE_BF16;
    config.replan_trials = t->trials;
    config.steps = t->short_run ? 10 : 1000000;
    RANK_CHECK(!slc_engine_create(world, &config, planner_of(t->planner ? t->planner : plan_on_rank_0), &m->rt));
    for (uint32_t l = 0; l < LAYERS; l++) {
        char name[8];
        snprintf(name, sizeof name, "l%u", l);
        RANK_CHECK(!sluice_layer_add(m->rt, name, &m->layers[l]));
        RANK_CHECK(!sluice_layer_precision(m->layers[l], t->bf16_layers >> l & 1 ? SLUICE_BF16 : SLUICE_FP32));
        RANK_CHECK(!sluice_activation_add(m->layers[l],
                                          &SLUICE_INIT(sluice_activation_desc, .name = "a",
                                                       .bytes = 64 + draw(&random, 9000), .last = SLUICE_BACKWARD),
                                          &m->activations[l]));
    }
    if (add_params(m, &random)) return 1;
    RANK_CHECK(!sluice_runtime_commit(m->rt));
    for (uint32_t p = 0; p < m->param_count; p++) {
        float *values = malloc(m->params[p].count * sizeof *values);
        for (uint64_t i = 0; i < m->params[p].count; i++) values[i] = noise(t->seed + p, i);
        RANK_CHECK(!sluice_param_write(m->params[p].param, 0, m->params[p].count, values));
        free(values);
    }
    return 0;
}

static int backward(model *m, uint32_t layer, uint64_t key)
{
    RANK_CHECK(!sluice_backward_begin(m->layers[layer]));
    RANK_CHECK(*(uint64_t *)sluice_activation_data(m->activations[layer]) == key + layer);
    for (uint32_t p = 0; p < m->param_count; p++) {
        known *k = &m->params[p];
        if (k->layer != layer || k->frozen) continue;
        sluice_dtype dtype = sluice_param_dtype(k->param), narrow = sluice_param_gradient_dtype(k->param);
        const void *value = sluice_param_value(k->param);
        void *gradient = sluice_param_gradient(k->param);
        RANK_CHECK(value && gradient);
        for (uint64_t i = 0; i < k->count; i++) {
            float add = slc_element_value(value, dtype, i) * 0.01f + noise(key * 64 + (uint64_t)m->rank * 16 + p, i);
            float sum = slc_element_value(gradient, narrow, i) + add;
            if (narrow == SLUICE_BF16)
                ((uint16_t *)gradient)[i] = sluice_bf16_from_float(sum);
            else
                ((float *)gradient)[i] = sum;
        }
    }
    RANK_CHECK(!sluice_backward_end(m->layers[layer]));
    return 0;
}

static int step(model *m, uint64_t number, sluice_step_report *report)
{
    RANK_CHECK(!sluice_step_begin(m->rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 0.01)));
    for (uint32_t b = 0; b < m->t->micro_batches; b++) {
        uint64_t key = number * 8 + b;
        for (uint32_t l = 0; l < LAYERS; l++) {
            RANK_CHECK(!sluice_forward_begin(m->layers[l]));
            *(uint64_t *)sluice_activation_data(m->activations[l]) = key + l;
            RANK_CHECK(!sluice_forward_end(m->layers[l]));
        }
        for (uint32_t l = LAYERS; l-- > 0;)
            if (backward(m, l, key)) return 1;
    }
    RANK_CHECK(!sluice_step_end(m->rt, report));
    return 0;
}

/* The values and both states of every parameter, one after the other. */
static int snapshot(model *m, float **out, uint64_t *count)
{
    static const char *const states[] = {"exp_avg", "exp_avg_sq"};
    *count = 0;
    for (uint32_t p = 0; p < m->param_count; p++) *count += 3 * m->params[p].count;
    float *at = *out = calloc(*count, sizeof **out);
    for (uint32_t p = 0; p < m->param_count; p++) {
        known *k = &m->params[p];
        RANK_CHECK(!sluice_param_read(k->param, 0, k->count, at));
        at += k->count;
        for (int s = 0; s < 2; s++, at += k->count)
            if (!k->frozen) RANK_CHECK(!sluice_param_state_read(k->param, states[s], 0, k->count, at));
    }
    return 0;
}

static int move(model *m, const char *strategy, const char *schedule)
{
    float *before, *after;
    uint64_t count;
    if (snapshot(m, &before, &count)) return 1;
    RANK_CHECK(!sluice_runtime_replan(m->rt, strategy, schedule, 0));
    if (snapshot(m, &after, &count)) return 1;
    RANK_CHECK(!memcmp(before, after, count * sizeof *before));
    free(before);
    free(after);
    return 0;
}

static const char *const strategies[] = {"dp", "oss", "sdp", "fsdp", "random:1"};
enum { STRATEGIES = sizeof strategies / sizeof *strategies };

static const char *const schedules[] = {"serial", "one_ahead", "bucketed", "random", "priority", "greedy"};
enum { SCHEDULES = sizeof schedules / sizeof *schedules };

/* One row of strategies in which every one follows every other one, and itself, once: a de Bruijn sequence. */
enum { MOVES = STRATEGIES * STRATEGIES + 1 };

static void make_row(int row[MOVES])
{
    int at = 0;
    for (int first = 0; first < STRATEGIES; first++) {
        row[at++] = first;
        for (int second = first + 1; second < STRATEGIES; second++) row[at++] = first, row[at++] = second;
    }
    row[at] = row[0];
}

/* Under a sanitizer the first quarter of the row is enough: other builds move between all pairs. */
static int train(model *m)
{
    sluice_step_report report = SLUICE_INIT(sluice_step_report);
    sluice_memory_report memory = SLUICE_INIT(sluice_memory_report);
    const uint64_t moves = test_brief() ? MOVES / 4 : MOVES;
    int row[MOVES];
    make_row(row);
    for (uint64_t number = 1; number <= moves; number++) {
        if (m->t->moves && move(m, strategies[row[number - 1]], schedules[number % SCHEDULES])) return 1;
        if (step(m, number, &report)) return 1;
        RANK_CHECK(report.plan == (m->t->moves ? 1 + number : 1));
        RANK_CHECK(report.step == number);
    }
    RANK_CHECK(!sluice_runtime_memory(m->rt, &memory));
    RANK_CHECK(memory.peak_bytes == memory.planned_bytes);
    return 0;
}

/* One training must give the same weights without a re-plan and with many. */
static int train_both(int rank, int size, void *context)
{
    (void)size;
    const trial *t = context;
    char hex[2][65];
    sluice_world_config config;
    sluice_world *world;
    RANK_CHECK(!sluice_world_config_init(&config));
    config.direct = t->direct;
    RANK_CHECK(!sluice_world_create(&config, &world));
    for (int moves = 0; moves < 2; moves++) {
        trial one = *t;
        one.moves = moves;
        model m = {.t = &one, .rank = rank};
        if (build(&m, world) || train(&m)) return 1;
        RANK_CHECK(!sluice_runtime_weights_sha256(m.rt, hex[moves]));
        sluice_runtime_destroy(m.rt);
    }
    RANK_CHECK(!strcmp(hex[0], hex[1]));
    sluice_world_destroy(world);
    return 0;
}

static void run(int ranks, trial t)
{
    assert_int_equal(run_ranks(ranks, train_both, &t, 100), 0);
}

static void alone(void **state)
{
    (void)state;
    run(1, (trial){.seed = 1, .micro_batches = 1, .direct = true, .block = 4096, .schedule = "one_ahead"});
}

static void two_ranks(void **state)
{
    (void)state;
    run(2, (trial){.seed = 2, .micro_batches = 1, .direct = true, .block = 4096, .schedule = "one_ahead"});
    run(2, (trial){.seed = 3, .micro_batches = 2, .each = true, .clip = 0.5, .block = 1024, .schedule = "serial"});
}

/* All layers compute in bf16, or some do; sums are in bf16, in fp32 on a bf16 wire, and all in fp32. */
static void mixed_precision(void **state)
{
    (void)state;
    const trial all = {.seed = 11, .micro_batches = 1, .direct = true, .block = 4096, .schedule = "one_ahead"};
    trial t = all;
    t.bf16_layers = 15;
    if (!test_brief()) run(1, t);
    run(2, t);
    t.direct = false;
    t.micro_batches = 2;
    t.each = true;
    t.clip = 0.5;
    t.block = 1024;
    run(2, t);
    t.bf16_layers = 10;
    t.fp32_wire = true;
    if (!test_brief()) run(4, t);
    t.fp32_wire = t.each = false;
    t.direct = true;
    run(2, t);
}

static void four_ranks(void **state)
{
    (void)state;
    run(4, (trial){.seed = 4, .micro_batches = 2, .direct = true, .block = 2048, .schedule = "one_ahead"});
}

/* ---- Schedules that want times plan again once by themselves ---- */

enum { OWN_STEPS = 6 };

static int steps(const trial *t, int rank, sluice_world *world, sluice_step_report *reports, char hex[65])
{
    model m = {.t = t, .rank = rank};
    if (build(&m, world)) return 1;
    for (uint64_t number = 1; number <= OWN_STEPS; number++) {
        reports[number - 1] = SLUICE_INIT(sluice_step_report);
        if (step(&m, number, &reports[number - 1])) return 1;
    }
    RANK_CHECK(!sluice_runtime_weights_sha256(m.rt, hex));
    sluice_runtime_destroy(m.rt);
    return 0;
}

static sluice_status no_second_plan(void *context, const slc_job *job, const slc_plan_request *request,
                                    slc_plan_answer *answer)
{
    if (request->times) return slc_error(SLUICE_ERR_BUDGET, "no plan with times");
    return plan_on_rank_0(context, job, request, answer);
}

static int adapt(int rank, int size, void *context)
{
    trial t = *(const trial *)context;
    sluice_world_config config;
    sluice_world *world;
    sluice_step_report plain[OWN_STEPS], adaptive[OWN_STEPS], stuck[OWN_STEPS];
    char hex[3][65];
    (void)size;
    RANK_CHECK(!sluice_world_config_init(&config));
    config.direct = t.direct;
    RANK_CHECK(!sluice_world_create(&config, &world));
    const char *schedule = t.schedule;
    t.schedule = "one_ahead";
    if (steps(&t, rank, world, plain, hex[0])) return 1;
    t.schedule = schedule;
    if (steps(&t, rank, world, adaptive, hex[1])) return 1;
    t.planner = no_second_plan;
    if (steps(&t, rank, world, stuck, hex[2])) return 1;
    for (int s = 0; s < OWN_STEPS; s++) {
        RANK_CHECK(plain[s].plan == 1 && plain[s].predicted_step_s == 0);
        RANK_CHECK(adaptive[s].plan == (s < 3 ? 1 : 2));
        RANK_CHECK((adaptive[s].predicted_step_s > 0) == (s >= 3));
        RANK_CHECK(stuck[s].plan == 1);
        RANK_CHECK(plain[s].planning_s == 0 && (adaptive[s].planning_s > 0) == (s == 2));
        RANK_CHECK((stuck[s].planning_s > 0) == (s == 2));
    }
    RANK_CHECK(!strcmp(hex[0], hex[1]) && !strcmp(hex[0], hex[2]));
    sluice_world_destroy(world);
    return 0;
}

static void schedules_that_want_times_change_once(void **state)
{
    (void)state;
    setenv("SLUICE_LOG_LEVEL", "error", 1); /* a re-plan that fails writes a warning */
    const trial priority = {.seed = 6, .micro_batches = 1, .direct = true, .block = 4096, .schedule = "priority"};
    const trial greedy = {.seed = 7, .micro_batches = 2, .block = 1024, .clip = 1, .schedule = "greedy"};
    assert_int_equal(run_ranks(1, adapt, (void *)&priority, 60), 0);
    assert_int_equal(run_ranks(2, adapt, (void *)&priority, 60), 0);
    const trial joint = {
        .seed = 8, .micro_batches = 1, .direct = true, .block = 4096, .schedule = slc_schedule_default};
    assert_int_equal(run_ranks(2, adapt, (void *)&greedy, 60), 0);
    assert_int_equal(run_ranks(2, adapt, (void *)&joint, 60), 0);
}

/* ---- The play-off ---- */

/* Predicts the same time for every plan, so that each of them is tried. */
static sluice_status all_alike(void *context, const slc_job *job, const slc_plan_request *request,
                               slc_plan_answer *answer)
{
    sluice_status status = plan_on_rank_0(context, job, request, answer);
    if (!status && request->times) answer->forecast.step_s = 0.01;
    return status;
}

/* Predicts that all plans but the planner's own are slower by more than the margin. */
static sluice_status others_far_behind(void *context, const slc_job *job, const slc_plan_request *request,
                                       slc_plan_answer *answer)
{
    sluice_status status = plan_on_rank_0(context, job, request, answer);
    if (!status && request->times) answer->forecast.step_s = request->effort_s > 0 ? 0.012 : 0.01;
    return status;
}

enum { TRIED = 3, TRIAL_STEPS = 60 };

static int train_with_trials(const trial *t, int rank, sluice_world *world, uint32_t *tried, char hex[65])
{
    model m = {.t = t, .rank = rank};
    sluice_step_report report = SLUICE_INIT(sluice_step_report);
    sluice_plan_report plan = SLUICE_INIT(sluice_plan_report);
    if (build(&m, world)) return 1;
    for (uint64_t number = 1; number <= TRIAL_STEPS; number++)
        if (step(&m, number, &report)) return 1;
    RANK_CHECK(!sluice_runtime_plan(m.rt, &plan) && !plan.provisional);
    *tried = sluice_runtime_trial_count(m.rt);
    uint32_t stay = 0;
    double least = 1e9, kept = 0;
    for (uint32_t i = 0; i < *tried; i++) {
        sluice_plan_trial one = SLUICE_INIT(sluice_plan_trial);
        RANK_CHECK(!sluice_runtime_trial(m.rt, i, &one));
        RANK_CHECK(one.measured_step_s > 0 && one.step_s == 0.01);
        if (one.measured_step_s < least) least = one.measured_step_s;
        if (one.stays) kept = one.measured_step_s;
        stay += one.stays;
    }
    RANK_CHECK(*tried == 0 || (stay == 1 && kept <= least * 1.0051)); /* the planner's own is left for a real gain */
    RANK_CHECK(*tried == 0 || report.plan > 2);
    for (uint32_t l = 0; !t->strategy && l < LAYERS; l++) /* one that was asked for by its name stays */
        RANK_CHECK(!strcmp(sluice_layer_strategy_name(m.layers[l]), "sdp"));
    sluice_plan_trial none = SLUICE_INIT(sluice_plan_trial);
    RANK_CHECK(sluice_runtime_trial(m.rt, *tried, &none) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(!sluice_runtime_weights_sha256(m.rt, hex));
    sluice_runtime_destroy(m.rt);
    return 0;
}

/* No plan is tried in a short run, if all others are predicted far behind, or if there is no second plan. */
static int try_none(trial t, int rank, sluice_world *world, char (*hex)[65])
{
    uint32_t tried;
    t.short_run = true;
    if (train_with_trials(&t, rank, world, &tried, hex[0])) return 1;
    RANK_CHECK(tried == 0);
    t.short_run = false;
    t.planner = others_far_behind;
    if (train_with_trials(&t, rank, world, &tried, hex[1])) return 1;
    RANK_CHECK(tried == 0);
    t.planner = no_second_plan;
    if (train_with_trials(&t, rank, world, &tried, hex[2])) return 1;
    RANK_CHECK(tried == 0);
    return 0;
}

static int try_plans(int rank, int size, void *context)
{
    trial t = *(const trial *)context;
    const int runs = test_brief() ? 2 : 6;
    char hex[6][65];
    uint32_t tried;
    sluice_world_config config;
    sluice_world *world;
    RANK_CHECK(!sluice_world_config_init(&config));
    config.direct = t.direct;
    RANK_CHECK(!sluice_world_create(&config, &world));
    if (train_with_trials(&t, rank, world, &tried, hex[0])) return 1;
    RANK_CHECK(tried == 0);
    t.trials = rank == 0 ? TRIED : 0; /* rank 0's number counts */
    t.planner = all_alike;
    if (train_with_trials(&t, rank, world, &tried, hex[1])) return 1;
    RANK_CHECK(size == 1 ? tried == 0 : tried > 1 && tried <= 1 + TRIED);
    if (runs > 2) {
        t.strategy = "auto";
        if (train_with_trials(&t, rank, world, &tried, hex[2])) return 1;
        RANK_CHECK(size == 1 ? tried == 0 : tried > 1 && tried <= 1 + TRIED);
        if (try_none(t, rank, world, hex + 3)) return 1;
    }
    for (int i = 1; i < runs; i++) RANK_CHECK(!strcmp(hex[0], hex[i]));
    sluice_world_destroy(world);
    return 0;
}

/* Plans that are tried by turns leave the weights of a run that never changed its plan. */
static void plans_are_tried_and_bits_stay(void **state)
{
    (void)state;
    setenv("SLUICE_LOG_LEVEL", "error", 1);
    setenv("SLUICE_PLAN_DRIFT", "1000000", 1); /* the predictions are made up */
    trial t = {.seed = 9, .micro_batches = 1, .direct = true, .block = 4096, .schedule = slc_schedule_default};
    if (!test_brief()) assert_int_equal(run_ranks(1, try_plans, &t, 100), 0);
    if (!test_brief()) assert_int_equal(run_ranks(2, try_plans, &t, 100), 0);
    t.direct = false;
    t.micro_batches = 2;
    t.clip = 0.5;
    t.bf16_layers = 10;
    assert_int_equal(run_ranks(2, try_plans, &t, 100), 0);
}

/* ---- Refusals ---- */

static int refuse(int rank, int size, void *context)
{
    (void)size;
    trial t = {.seed = 5, .micro_batches = 1, .direct = true, .block = 4096, .schedule = "one_ahead"};
    sluice_world *world;
    model m = {.t = &t, .rank = rank};
    (void)context;
    RANK_CHECK(!sluice_world_create(NULL, &world));
    if (build(&m, world) || step(&m, 1, NULL)) return 1;
    RANK_CHECK(sluice_runtime_replan(m.rt, "best", NULL, 0) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(sluice_runtime_replan(m.rt, NULL, "tomorrow", 0) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(sluice_runtime_replan(m.rt, NULL, NULL, 1000) == SLUICE_ERR_BUDGET);
    RANK_CHECK(strstr(sluice_last_error(), "budget"));
    if (step(&m, 2, NULL)) return 1; /* the old plan still runs */
    RANK_CHECK(!sluice_evaluate_begin(m.rt));
    RANK_CHECK(sluice_runtime_replan(m.rt, NULL, NULL, 0) == SLUICE_ERR_ORDER);
    RANK_CHECK(!sluice_evaluate_end(m.rt));
    RANK_CHECK(!sluice_runtime_sync(m.rt));
    sluice_runtime_destroy(m.rt);
    sluice_world_destroy(world);
    return 0;
}

static void what_cannot_be_is_refused_and_the_old_plan_stays(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(1, refuse, NULL, 60), 0);
    assert_int_equal(run_ranks(2, refuse, NULL, 60), 0); /* every rank gets the same line */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone),
        cmocka_unit_test(two_ranks),
        cmocka_unit_test(four_ranks),
        cmocka_unit_test(mixed_precision),
        cmocka_unit_test(schedules_that_want_times_change_once),
        cmocka_unit_test(plans_are_tried_and_bits_stay),
        cmocka_unit_test(what_cannot_be_is_refused_and_the_old_plan_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
