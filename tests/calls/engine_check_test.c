/* SLUICE_ENGINE_CHECK finds each mistake that would otherwise give a wrong result without a word, at once and by name,
 * and a correct program gets the same bits with it as without it (engine_trial.h). */
#include "tests/support/draw.h"
#include "tests/support/engine_trial.h"
#include "tests/support/ranks.h"
#include "tests/support/scale.h"

#include <sluice/sluice.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { COUNT = 100, HIDDEN = 40, LIMIT_S = 120, STEPS_MOST = 6 };

typedef enum {
    NONE,
    KEEPS_VALUE,      /* asks for a value's address only once */
    KEEPS_GRADIENT,   /* the same with a gradient's */
    KEEPS_ACTIVATION, /* the same with an activation's */
    KEEPS_WORKSPACE,
    TRUSTS_ACTIVATION, /* expects zeros where its life begins */
    TRUSTS_WORKSPACE,
    TRUSTS_FRESH,       /* adds to a fresh gradient, which must be written */
    OVERRUNS_GRADIENT,  /* writes past its end */
    OVERRUNS_HIDDEN,    /* writes past an activation's end */
    WRITES_LATE,        /* writes to an activation whose life is over */
    WRITES_VALUE,       /* writes to a value inside a slot */
    WRITES_ALONE,       /* rank 0 alone calls sluice_param_write */
    WRITES_OTHER,       /* each rank writes other data */
    WRITES_OTHER_STATE, /* the same with the optimizer's state */
    OTHER_RATE,
    OTHER_SCALE,
    OTHER_EXCHANGE,
    OTHER_GROUP_RATES,
    OTHER_MICRO_BATCHES,
    OTHER_STEP,      /* sluice_runtime_step_set with another number */
    EVALUATES_ALONE, /* rank 0 evaluates while the others train */
    READS_ALONE,
    CHECKS_ALONE /* the setting is on for rank 0 alone */
} mistake;

typedef struct {
    mistake mistake;
    const char *strategy, *schedule;
    sluice_status status; /* the status that every rank must get */
    const char *line[3];  /* words of the error's line; NULL: no more */
    uint32_t step;        /* the step in which the mistake is found, from 1; 0: before the first */
    bool unchecked;       /* the setting is off, so there is no error */
    uint32_t ranks;
} expectation;

typedef struct {
    const expectation *e;
    int rank;
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layer[2];
    sluice_param *w[2];
    sluice_activation *hidden;
    sluice_workspace *space;
    const float *kept_value;
    float *kept_gradient, *kept_hidden, *kept_space;
} program;

static sluice_status register_model(program *p)
{
    sluice_config config;
    sluice_config_init(&config);
    if (p->e->strategy) config.strategy = p->e->strategy;
    if (p->e->schedule) config.schedule = p->e->schedule;
    sluice_status status = sluice_runtime_create(p->world, &config, &p->rt);
    for (int l = 0; !status && l < 2; l++) {
        status = sluice_layer_add(p->rt, l ? "second" : "first", &p->layer[l]);
        if (!status)
            status =
                sluice_param_add(p->layer[l], &SLUICE_INIT(sluice_param_desc, .name = "w", .count = COUNT), &p->w[l]);
    }
    const sluice_activation_desc hidden =
        SLUICE_INIT(sluice_activation_desc, .name = "hidden", .bytes = 4 * HIDDEN, .last = SLUICE_BACKWARD);
    const sluice_workspace_desc space =
        SLUICE_INIT(sluice_workspace_desc, .name = "space", .bytes = 4 * HIDDEN, .last = UINT32_MAX);
    if (!status) status = sluice_activation_add(p->layer[0], &hidden, &p->hidden);
    if (!status) status = sluice_workspace_add(p->layer[0], &space, &p->space);
    return status ? status : sluice_runtime_commit(p->rt);
}

static sluice_status write_first_values(const program *p)
{
    sluice_status status = SLUICE_OK;
    for (int l = 0; !status && l < 2; l++) {
        float values[COUNT];
        float change = p->e->mistake == WRITES_OTHER && l && p->rank == 1 ? 1e-6f : 0;
        for (int i = 0; i < COUNT; i++) values[i] = noise((uint64_t)l + 1, (uint64_t)i) + change;
        if (p->e->mistake == WRITES_ALONE && p->rank && l) continue;
        status = sluice_param_write(p->w[l], 0, COUNT, values);
        values[0] += (float)p->rank;
        if (!status && p->e->mistake == WRITES_OTHER_STATE && l)
            status = sluice_param_state_write(p->w[l], "exp_avg", 0, COUNT, values);
    }
    return status;
}

static bool makes(const program *p, mistake which)
{
    return p->e->mistake == which;
}

static sluice_status run_forward(program *p, int l)
{
    sluice_status status = sluice_forward_begin(p->layer[l]);
    if (status) return status;
    const float *value = sluice_param_value(p->w[l]);
    if (!p->kept_value && !l) p->kept_value = value;
    if (makes(p, KEEPS_VALUE) && !l) value = p->kept_value;
    if (makes(p, WRITES_VALUE) && l) ((float *)(uintptr_t)value)[3] += 1;
    float *hidden = sluice_activation_data(p->hidden);
    if (!p->kept_hidden) p->kept_hidden = hidden;
    if (makes(p, KEEPS_ACTIVATION)) hidden = p->kept_hidden;
    float *space = l ? NULL : sluice_workspace_data(p->space);
    if (!p->kept_space) p->kept_space = space;
    if (makes(p, KEEPS_WORKSPACE)) space = p->kept_space;
    for (int i = 0; !l && i < HIDDEN; i++) {
        space[i] = value[i] + (makes(p, TRUSTS_WORKSPACE) ? space[i] : 0);
        hidden[i] = space[i] + (makes(p, TRUSTS_ACTIVATION) ? hidden[i] : 0);
    }
    if (!l && makes(p, OVERRUNS_HIDDEN)) hidden[HIDDEN] = 1;
    return sluice_forward_end(p->layer[l]);
}

static sluice_status run_backward(program *p, int l)
{
    sluice_status status = sluice_backward_begin(p->layer[l]);
    if (status) return status;
    const float *hidden = makes(p, KEEPS_ACTIVATION) ? p->kept_hidden : sluice_activation_data(p->hidden);
    bool fresh = false;
    float *gradient =
        makes(p, TRUSTS_FRESH) ? sluice_param_gradient_fresh(p->w[l], &fresh) : sluice_param_gradient(p->w[l]);
    if (!p->kept_gradient) p->kept_gradient = gradient;
    if (makes(p, KEEPS_GRADIENT) && l) gradient = p->kept_gradient;
    for (int i = 0; i < HIDDEN; i++) gradient[i] += hidden[i] + (float)p->rank;
    if (makes(p, OVERRUNS_GRADIENT) && l) gradient[COUNT] = 0;
    return sluice_backward_end(p->layer[l]);
}

static sluice_status train_step(program *p)
{
    static const double rates[] = {1, 0.9};
    const bool other = p->rank == 1;
    const sluice_step_options options = {.struct_size = sizeof(sluice_step_options),
                                         .learning_rate = other && makes(p, OTHER_RATE) ? 0.02 : 0.01,
                                         .gradient_scale = other && makes(p, OTHER_SCALE) ? 0.5 : 0,
                                         .exchange = other && makes(p, OTHER_EXCHANGE),
                                         .group_rates = &rates[other && makes(p, OTHER_GROUP_RATES)],
                                         .group_count = 1,
                                         .micro_batches = other && makes(p, OTHER_MICRO_BATCHES)};
    sluice_status status = sluice_step_begin(p->rt, &options);
    for (int l = 0; !status && l < 2; l++) status = run_forward(p, l);
    for (int l = 2; !status && l-- > 0;) status = run_backward(p, l);
    if (!status && makes(p, WRITES_LATE)) *(float *)sluice_activation_data(p->hidden) = 0;
    return status ? status : sluice_step_end(p->rt, NULL);
}

static sluice_status before_first_step(program *p)
{
    float values[COUNT];
    sluice_status status = register_model(p);
    if (!status) status = write_first_values(p);
    if (!status && makes(p, OTHER_STEP)) status = sluice_runtime_step_set(p->rt, 7 + (uint64_t)p->rank);
    if (!status && makes(p, READS_ALONE) && !p->rank) status = sluice_param_read(p->w[0], 0, COUNT, values);
    if (!status && makes(p, EVALUATES_ALONE) && !p->rank) status = sluice_evaluate_begin(p->rt);
    return status;
}

/* The mistake must be found in its step and under its name, unless another rank found it first and told this one. */
static int check_found(const expectation *e, sluice_status status, uint32_t step)
{
    const bool told = status == SLUICE_ERR_PEER && strstr(sluice_last_error(), " failed: ");
    RANK_CHECK(status == e->status || told);
    for (int i = 0; i < 3 && e->line[i]; i++) RANK_CHECK(strstr(sluice_last_error(), e->line[i]));
    RANK_CHECK(told || step == e->step);
    return 0;
}

static int run_program(int rank, int size, void *context)
{
    (void)size;
    const expectation *e = context;
    program p = {.e = e, .rank = rank};
    uint32_t step = 0;
    if (!e->unchecked && (e->mistake != CHECKS_ALONE || !rank)) setenv("SLUICE_ENGINE_CHECK", "1", 1);
    setenv("SLUICE_LOG_LEVEL", "error", 1);
    RANK_CHECK(!sluice_world_create(NULL, &p.world));
    sluice_status status = before_first_step(&p);
    while (!status && step < STEPS_MOST) {
        step++;
        status = train_step(&p);
    }
    if (check_found(e, status, status ? step : 0)) return 1;
    /* If this rank left now, the others would hear of its leaving first, and not of the mistake. */
    if (e->status == SLUICE_ERR_ORDER || e->status == SLUICE_ERR_MISMATCH) (void)sluice_world_barrier(p.world);
    sluice_runtime_destroy(p.rt);
    sluice_world_destroy(p.world);
    return 0;
}

static void expect(expectation e)
{
    assert_int_equal(run_ranks(e.ranks ? (int)e.ranks : 2, run_program, &e, LIMIT_S), 0);
}

/* Under dp no address changes by itself before the end of the third step. */
static void kept_addresses_are_found(void **state)
{
    (void)state;
    expect((expectation){NONE});
    expect(
        (expectation){KEEPS_VALUE, .strategy = "dp", .status = SLUICE_ERR_NON_FINITE, .step = 2, .line = {"\"first"}});
    expect((expectation){KEEPS_VALUE, .strategy = "fsdp", .status = SLUICE_ERR_NON_FINITE, .step = 2});
    expect((expectation){
        KEEPS_GRADIENT, .strategy = "dp", .status = SLUICE_ERR_ORDER, .step = 2,
        .line = {"in the backward of layer \"second\" a gradient was written at an address", "ask for it"}});
    expect((expectation){KEEPS_ACTIVATION, .status = SLUICE_ERR_ORDER, .step = 2,
                         .line = {"\"first.hidden\"", "address of an earlier step", "in each step"}});
    expect((expectation){KEEPS_WORKSPACE, .status = SLUICE_ERR_ORDER, .step = 2,
                         .line = {"workspaces of layer \"first\"", "address of an earlier step"}});
}

static void memory_is_not_zero(void **state)
{
    (void)state;
    expect((expectation){TRUSTS_ACTIVATION, .status = SLUICE_ERR_NON_FINITE, .step = 1});
    expect((expectation){TRUSTS_WORKSPACE, .status = SLUICE_ERR_NON_FINITE, .step = 1});
    expect((expectation){TRUSTS_FRESH, .strategy = "dp", .status = SLUICE_ERR_NON_FINITE, .step = 1});
    expect((expectation){TRUSTS_FRESH, .strategy = "sdp", .status = SLUICE_ERR_NON_FINITE, .step = 1});
}

static void writes_out_of_place_are_named(void **state)
{
    (void)state;
    expect((expectation){OVERRUNS_GRADIENT, .status = SLUICE_ERR_ORDER, .step = 1,
                         .line = {"\"second.w\": its gradient was written past its end", "400 bytes"}});
    expect((expectation){OVERRUNS_HIDDEN, .status = SLUICE_ERR_ORDER, .step = 1,
                         .line = {"activation \"first.hidden\"", "byte 160"}});
    expect((expectation){WRITES_LATE, .status = SLUICE_ERR_ORDER, .step = 1,
                         .line = {"activation \"first.hidden\" was written outside of its life"}});
    expect((expectation){WRITES_VALUE, .strategy = "dp", .status = SLUICE_ERR_ORDER, .step = 1,
                         .line = {"\"second.w\": its value was written inside a slot"}});
}

static void what_ranks_write_is_compared(void **state)
{
    (void)state;
    for (int fsdp = 0; fsdp < 2; fsdp++) {
        const char *strategy = fsdp ? "fsdp" : "dp";
        expect((expectation){WRITES_ALONE, strategy, .status = SLUICE_ERR_MISMATCH, .step = 1, .ranks = 3,
                             .line = {"\"second.w\": rank 0 has written it 1 times, rank 1 0 times"}});
        expect((expectation){WRITES_OTHER, strategy, .status = SLUICE_ERR_MISMATCH, .step = 1, .ranks = 3,
                             .line = {"\"second.w\": rank 1 has written other data than rank 0"}});
        expect((expectation){WRITES_OTHER_STATE, strategy, .status = SLUICE_ERR_MISMATCH, .step = 1,
                             .line = {"\"second.w\": rank 1 has written other data"}});
    }
}

static void what_ranks_call_is_compared(void **state)
{
    (void)state;
    expect((expectation){OTHER_RATE, .status = SLUICE_ERR_MISMATCH, .step = 1, .ranks = 3,
                         .line = {"learning_rate is 0.01", "on rank 0 and 0.02", "on rank 1"}});
    expect((expectation){OTHER_SCALE, .status = SLUICE_ERR_MISMATCH, .step = 1,
                         .line = {"gradient_scale is 0 on rank 0 and 0.5 on rank 1"}});
    expect(
        (expectation){OTHER_EXCHANGE, .status = SLUICE_ERR_MISMATCH, .step = 1, .line = {"exchange is 0 on rank 0"}});
    expect((expectation){OTHER_GROUP_RATES, .status = SLUICE_ERR_MISMATCH, .step = 1,
                         .line = {"group_rates are others on rank 0 and on rank 1"}});
    expect((expectation){OTHER_MICRO_BATCHES, .status = SLUICE_ERR_MISMATCH, .step = 1,
                         .line = {"micro_batches is 0 on rank 0 and 1 on rank 1"}});
    expect((expectation){OTHER_STEP, .status = SLUICE_ERR_MISMATCH, .step = 0,
                         .line = {"number of updates", "is 7 on rank 0 and 8 on rank 1"}});
}

/* Runs the program as above, but rank 0 makes another call: it hears of the mistake before its first step. */
static int run_alone(int rank, int size, void *context)
{
    expectation e = *(const expectation *)context;
    if (!rank) e.step = 0;
    return run_program(rank, size, &e);
}

static void what_one_rank_does_alone_is_named(void **state)
{
    (void)state;
    expectation alone[] = {{EVALUATES_ALONE, .status = SLUICE_ERR_MISMATCH, .step = 1,
                            .line = {"rank 0 calls evaluate_begin where rank 1 calls step_begin"}},
                           {READS_ALONE, .status = SLUICE_ERR_MISMATCH, .step = 1,
                            .line = {"rank 0 calls param_read of \"first.w\" where rank 1 calls step_begin"}},
                           {CHECKS_ALONE, .status = SLUICE_ERR_MISMATCH,
                            .line = {"SLUICE_ENGINE_CHECK is on on rank 0 and off on rank 1"}}};
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
        assert_int_equal(run_ranks(2, run_alone, &alone[i], LIMIT_S), 0);
}

/* Without the setting these mistakes go through without a word. */
static void nothing_is_looked_for_without_the_setting(void **state)
{
    (void)state;
    static const mistake silent[] = {TRUSTS_ACTIVATION, TRUSTS_WORKSPACE, WRITES_ALONE, WRITES_OTHER, OTHER_RATE};
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        expect((expectation){silent[i], .strategy = "dp", .schedule = "serial", .unchecked = true});
}

static void correct_programs_get_the_same_bits(void **state)
{
    (void)state;
    setenv("SLUICE_ENGINE_CHECK", "1", 1);
    static const char *const strategies[] = {"dp", "oss", "sdp", "fsdp", "mixed", "auto"};
    const char *const schedules[] = {"serial", "one_ahead", test_brief() ? "greedy" : "ilp", "priority"};
    for (uint32_t i = 0; i < 12; i++) {
        if (!test_takes(i, 1)) continue;
        check_trial((trial){.seed = 600 + i,
                            .ranks = 1 + (int)(i % 3),
                            .layers = 3,
                            .micro_batches = 1 + i / 2 % 3,
                            .each = i % 4 == 3,
                            .schedule = schedules[i % 4],
                            .strategy = strategies[i % 6],
                            .recompute = i % 2 ? SLUICE_RECOMPUTE_ALL : SLUICE_RECOMPUTE_AUTO,
                            .direct = i % 5 != 0,
                            .look_ups = i % 3 == 1,
                            .split = i % 6 == 1,
                            .block = 1024,
                            .bf16_layers = i % 7,
                            .bf16_wire = i % 2,
                            .mixed_update = i % 2});
    }
    check_random_plans(&(extent){.first_seed = 70}, test_rounds(4), random_trial);
    unsetenv("SLUICE_ENGINE_CHECK");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_addresses_are_found),
        cmocka_unit_test(memory_is_not_zero),
        cmocka_unit_test(writes_out_of_place_are_named),
        cmocka_unit_test(what_ranks_write_is_compared),
        cmocka_unit_test(what_ranks_call_is_compared),
        cmocka_unit_test(what_one_rank_does_alone_is_named),
        cmocka_unit_test(nothing_is_looked_for_without_the_setting),
        cmocka_unit_test(correct_programs_get_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
