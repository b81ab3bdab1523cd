/* A program that draws its layers says with which probability: the plan is made for the mean step, a new one follows
 * when the mean depth has moved by 5 % of all layers, on all ranks after the same step, and weights do not depend on
 * it. What is no probability is refused by name. */
#include "lib/plan/request.h"
#include "tests/support/draw.h"
#include "tests/support/engine/plain_layers.h"
#include "tests/support/ranks.h"

#include <sluice/sluice.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

enum { LAYERS = 5, ELEMENTS = 2000, STEPS = 48, MOVES = 12 };
/* Step 3 ends with the first measured plan. From step 13 on steps keep 3.5 of 5 layers. The step after that measures
 * nothing, and six are measured, or up to 20 more while some layer has not run. */
enum { AGAIN_FROM = 21, AGAIN_BY = 41 };

typedef struct {
    plain_layers layers;
    int rank;
    uint64_t number; /* of the step that runs */
} model;

static int build(model *m, sluice_world *world)
{
    sluice_config config;
    sluice_runtime *rt;
    sluice_config_init(&config);
    config.strategy = "sdp";
    config.block_bytes = 4096;
    config.schedule = slc_schedule_default;
    config.fuse = "off";
    config.steps = STEPS;
    RANK_CHECK(!sluice_runtime_create(world, &config, &rt));
    RANK_CHECK(!plain_layers_add(&m->layers, rt, LAYERS, ELEMENTS) && !sluice_runtime_commit(rt));
    RANK_CHECK(!plain_layers_write(&m->layers));
    return 0;
}

static void compute(void *context, uint32_t layer, const float *value, float *gradient)
{
    const model *m = context;
    plain_layers_add_noise(&m->layers, m->number * 64 + (uint64_t)m->rank * 16 + layer, value, gradient);
}

/* Layers between the first and the last are all kept at first; later one of two steps leaves each of them out. */
static int step(model *m, uint64_t number, bool says, sluice_step_report *report)
{
    const sluice_layer *drawn[LAYERS], *left_out[LAYERS];
    double p[LAYERS];
    uint64_t count = 0, out = 0;
    for (uint32_t l = 1; l + 1 < LAYERS; l++) {
        drawn[count] = m->layers.layer[l];
        p[count++] = number > MOVES ? 0.5 : 1;
        if (number > MOVES && noise(500 + number, l) > 0) left_out[out++] = m->layers.layer[l];
    }
    const sluice_step_options options = SLUICE_INIT(
        sluice_step_options, .learning_rate = 0.01, .layers_left_out = left_out, .layer_left_out_count = out,
        .layers_drawn = says ? drawn : NULL, .layer_probabilities = p, .layer_drawn_count = count);
    *report = SLUICE_INIT(sluice_step_report);
    m->number = number;
    RANK_CHECK(!plain_layers_step(&m->layers, &options, compute, m, report));
    return 0;
}

static int refuses(const model *m, const sluice_layer *layer, const double *p, const char *words)
{
    const sluice_layer *drawn[] = {layer};
    const sluice_step_options options =
        SLUICE_INIT(sluice_step_options, .layers_drawn = drawn, .layer_probabilities = p, .layer_drawn_count = 1);
    RANK_CHECK(sluice_step_begin(m->layers.rt, &options) == SLUICE_ERR_ARGUMENT);
    if (!strstr(sluice_last_error(), words)) {
        fprintf(stderr, "%s\n", sluice_last_error());
        return 1;
    }
    return 0;
}

static int check_refusals(const model *m)
{
    const double none = 0, half = 0.5, more = 1.25;
    if (refuses(m, m->layers.layer[1], &none, "layer_probabilities[0] is 0; it must be above 0 and at most 1"))
        return 1;
    if (refuses(m, m->layers.layer[1], &more, "layer_probabilities[0] is 1.25")) return 1;
    if (refuses(m, m->layers.layer[1], NULL, "layers_drawn without layer_probabilities; give one for each")) return 1;
    if (refuses(m, NULL, &half, "layers_drawn[0] is no layer of this runtime")) return 1;
    return refuses(m, m->layers.layer[0], &half, "layers_drawn: layer \"l0\" is the first one, which every step runs");
}

/* `says`: the program tells the probabilities. */
static int train(sluice_world *world, int rank, bool says, char hex[65])
{
    model m = {.rank = rank};
    uint64_t again = 0;
    if (build(&m, world) || check_refusals(&m)) return 1;
    for (uint64_t number = 1; number <= STEPS; number++) {
        sluice_step_report report;
        if (step(&m, number, says, &report)) return 1;
        RANK_CHECK(number > MOVES || report.plan == (number <= 3 ? 1u : 2u));
        if (report.plan == 3 && !again) again = number;
        RANK_CHECK(report.plan <= 3 && (!again || report.predicted_step_s > 0));
    }
    double sum = (double)again;
    RANK_CHECK(!sluice_world_all_reduce(world, &sum, 1));
    RANK_CHECK(sum == 2 * (double)again && (says ? again >= AGAIN_FROM && again <= AGAIN_BY : !again));
    RANK_CHECK(!sluice_runtime_weights_sha256(m.layers.rt, hex));
    sluice_runtime_destroy(m.layers.rt);
    return 0;
}

static int draws(int rank, int size, void *context)
{
    (void)size;
    (void)context;
    sluice_world *world;
    char hex[2][65];
    setenv("SLUICE_PLAN_DRIFT", "1000000", 1); /* depth is the only reason to plan again */
    RANK_CHECK(!sluice_world_create(NULL, &world));
    for (int says = 0; says < 2; says++)
        if (train(world, rank, says, hex[says])) return 1;
    RANK_CHECK(!strcmp(hex[0], hex[1]));
    sluice_world_destroy(world);
    return 0;
}

static void plans_follow_the_mean_depth(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(2, draws, NULL, 100), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(plans_follow_the_mean_depth)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
