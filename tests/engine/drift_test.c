/* A run whose steps leave the prediction measures and plans again. A rank that becomes slow brings that about; so does
 * any step if no difference is allowed. Weights stay equal to the bit. */
#include "tests/support/engine/plain_layers.h"
#include "tests/support/ranks.h"

#include <math.h>
#include <sluice/sluice.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { LAYERS = 3, ELEMENTS = 3000, STEPS = 60, SLOW_FROM = 4, SLOW_MS = 5 };
/* Step 3 ends with the first measured plan. After 20 steps under it, one warms up and six are measured. */
enum { AGAIN_FROM = 31 };
/* Plan 3 is looked at after 20 steps, in step 50, and again in step 70, when the last 19 were quick; then one warms up
 * and six are measured. */
enum { QUICK_FROM = 52, DRIFTED_BY = 80 };

typedef struct {
    plain_layers layers;
    int rank;
    bool slow;       /* rank 1 pauses in each slot */
    uint64_t number; /* of the step that runs */
} model;

static int build(model *m, sluice_world *world, const char *drift)
{
    sluice_config config;
    sluice_runtime *rt;
    setenv("SLUICE_PLAN_DRIFT", drift, 1);
    sluice_config_init(&config);
    config.strategy = "sdp";
    config.block_bytes = 4096;
    config.schedule = "priority";
    RANK_CHECK(!sluice_runtime_create(world, &config, &rt));
    RANK_CHECK(!plain_layers_add(&m->layers, rt, LAYERS, ELEMENTS) && !sluice_runtime_commit(rt));
    RANK_CHECK(!plain_layers_write(&m->layers));
    return 0;
}

static void compute(void *context, uint32_t layer, const float *value, float *gradient)
{
    const model *m = context;
    plain_layers_add_noise(&m->layers, m->number * 64 + (uint64_t)m->rank * 16 + layer, value, gradient);
    if (m->slow && m->rank == 1 && m->number >= SLOW_FROM) wait_ms(SLOW_MS);
}

static int step(model *m, uint64_t number, sluice_step_report *report)
{
    const sluice_step_options options = SLUICE_INIT(sluice_step_options, .learning_rate = 0.01);
    *report = SLUICE_INIT(sluice_step_report);
    m->number = number;
    RANK_CHECK(!plain_layers_step(&m->layers, &options, compute, m, report));
    return 0;
}

/* Every rank is told the same, and the parts of the miss add up. */
static int check_prediction(const model *m, sluice_world *world, uint64_t steps)
{
    sluice_prediction p = SLUICE_INIT(sluice_prediction);
    RANK_CHECK(!sluice_runtime_prediction(m->layers.rt, &p));
    const double own[] = {p.predicted.step_s, p.measured.step_s, p.miss.transfer_s, p.anew_s, (double)p.steps};
    double sum[] = {own[0], own[1], own[2], own[3], own[4]};
    RANK_CHECK(!sluice_world_all_reduce(world, sum, 5));
    for (int i = 0; i < 5; i++) RANK_CHECK(sum[i] == 2 * own[i]);
    RANK_CHECK(p.predicted.step_s > 0 && p.measured.step_s > 0 && p.anew_s > 0 && p.steps == steps);
    RANK_CHECK(p.predicted.compute_s > 0 && p.measured.compute_s > 0 && p.measured.transfer_s > 0);
    const double miss_s = p.miss.compute_s + p.miss.transfer_s + p.miss.waiting_s + p.miss.outside_s;
    RANK_CHECK(fabs(p.measured.step_s - p.predicted.step_s - miss_s) <= 1e-9);
    return 0;
}

/* `again`: a plan follows the one of step 3. */
static int train(model *m, sluice_world *world, const char *drift, bool again, char hex[65])
{
    if (build(m, world, drift)) return 1;
    for (uint64_t number = 1; number <= STEPS; number++) {
        sluice_step_report report;
        if (step(m, number, &report)) return 1;
        RANK_CHECK(report.plan == (number <= 3 ? 1u : again && number >= AGAIN_FROM ? 3u : 2u));
    }
    if (check_prediction(m, world, again ? STEPS - AGAIN_FROM : 32)) return 1;
    RANK_CHECK(!sluice_runtime_weights_sha256(m->layers.rt, hex));
    sluice_runtime_destroy(m->layers.rt);
    return 0;
}

static int drift_and_not(int rank, int size, void *context)
{
    (void)size;
    (void)context;
    sluice_world *world;
    char hex[4][65];
    RANK_CHECK(!sluice_world_create(NULL, &world));
    model even = {.rank = rank}, slow = {.rank = rank, .slow = true};
    if (train(&even, world, "1000000", false, hex[0])) return 1;
    if (train(&even, world, "0", true, hex[1])) return 1; /* and again only 100 steps later */
    if (train(&slow, world, "1000000", false, hex[2])) return 1;
    if (train(&slow, world, "10", true, hex[3])) return 1;
    for (int i = 1; i < 4; i++) RANK_CHECK(!strcmp(hex[0], hex[i]));
    sluice_world_destroy(world);
    return 0;
}

/* The prediction of plan 2 never holds, because steps slow down as soon as it is made: that is no drift, which would
 * keep the run from noticing for 100 steps that they become quick again after step 51. */
static int missed_then_drifted(int rank, int size, void *context)
{
    (void)size;
    (void)context;
    sluice_world *world;
    sluice_step_report report = SLUICE_INIT(sluice_step_report);
    model m = {.rank = rank};
    RANK_CHECK(!sluice_world_create(NULL, &world));
    if (build(&m, world, "10")) return 1;
    for (uint64_t number = 1; number <= DRIFTED_BY; number++) {
        m.slow = number < QUICK_FROM;
        if (step(&m, number, &report)) return 1;
        if (number >= AGAIN_FROM && number < QUICK_FROM) RANK_CHECK(report.plan == 3);
    }
    RANK_CHECK(report.plan == 4);
    sluice_runtime_destroy(m.layers.rt);
    sluice_world_destroy(world);
    return 0;
}

static void a_drift_soon_after_a_missed_prediction_is_noticed(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(2, missed_then_drifted, NULL, 100), 0);
}

static void steps_that_leave_the_prediction_are_planned_again(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(2, drift_and_not, NULL, 100), 0);
}

/* ---- Rank 0's setting counts ---- */

static int unlike_settings(int rank, int size, void *context)
{
    (void)size;
    (void)context;
    sluice_world *world;
    model m = {.rank = rank};
    char hex[65];
    RANK_CHECK(!sluice_world_create(NULL, &world));
    if (train(&m, world, rank ? "1000000" : "0", true, hex)) return 1;
    sluice_world_destroy(world);
    return 0;
}

static void ranks_with_unlike_settings_decide_alike(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(2, unlike_settings, NULL, 100), 0);
}

/* ---- Before there is anything to say ---- */

static int nothing_yet(int rank, int size, void *context)
{
    (void)size;
    (void)context;
    sluice_world *world;
    sluice_step_report report;
    sluice_prediction p = SLUICE_INIT(sluice_prediction);
    model m = {.rank = rank};
    RANK_CHECK(!sluice_world_create(NULL, &world));
    if (build(&m, world, "10")) return 1;
    RANK_CHECK(!sluice_runtime_prediction(m.layers.rt, &p));
    RANK_CHECK(p.predicted.step_s == 0 && p.measured.step_s == 0 && p.anew_s == 0 && p.steps == 0);
    for (uint64_t number = 1; number <= 4; number++)
        if (step(&m, number, &report)) return 1;
    RANK_CHECK(!sluice_runtime_prediction(m.layers.rt, &p));
    RANK_CHECK(p.predicted.step_s == report.predicted_step_s && p.predicted.step_s > 0);
    RANK_CHECK(p.measured.step_s == 0 && p.steps == 0); /* the first step under a plan lacks what the one before left */
    RANK_CHECK(!sluice_runtime_sync(m.layers.rt));
    if (step(&m, 5, &report) || step(&m, 6, &report)) return 1;
    RANK_CHECK(!sluice_runtime_prediction(m.layers.rt, &p) && p.steps == 1); /* nor does the one after a sync count */
    RANK_CHECK(!sluice_step_begin(m.layers.rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 0.01)));
    RANK_CHECK(sluice_runtime_prediction(m.layers.rt, &p) == SLUICE_ERR_ORDER);
    double both = 1; /* a rank that ends its runtime in a step ends the step of the others */
    RANK_CHECK(!sluice_world_all_reduce(world, &both, 1));
    sluice_runtime_destroy(m.layers.rt);
    sluice_world_destroy(world);
    return 0;
}

static void steps_unlike_others_do_not_count(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(2, nothing_yet, NULL, 60), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_that_leave_the_prediction_are_planned_again),
        cmocka_unit_test(a_drift_soon_after_a_missed_prediction_is_noticed),
        cmocka_unit_test(ranks_with_unlike_settings_decide_alike),
        cmocka_unit_test(steps_unlike_others_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
