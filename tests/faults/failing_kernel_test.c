/* A kernel of one rank fails in a step: that rank hears of just this failure, by the end of the training at the latest,
 * and every other rank hears of one. Each call of a kernel fails in turn, under plain and compressed optimizers and on
 * both lanes. */
#include "tests/support/engine/plain_layers.h"
#include "tests/support/kernels/failing_kernel.h"
#include "tests/support/ranks.h"

#include <sluice/sluice.h>
#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

enum { LAYERS = 3, COUNT = 700, STEPS = 4, PASSED_BY = 77 };

typedef struct {
    const char *optimizer, *strategy, *schedule;
    sluice_updates updates;
    double clip;
    uint32_t at; /* the call that fails */
} trial;

static sluice_status create(const trial *t, sluice_world *world, plain_layers *layers)
{
    sluice_runtime *rt = NULL;
    sluice_config config;
    sluice_config_init(&config);
    config.optimizer_name = t->optimizer;
    config.strategy = t->strategy;
    config.schedule = t->schedule;
    config.updates = t->updates;
    config.clip = t->clip;
    config.fuse = "off";
    config.onebit.freeze_step = 2;
    config.threads = 1;
    sluice_status status = sluice_runtime_create(world, &config, &rt);
    if (!status) status = plain_layers_add(layers, rt, LAYERS, COUNT);
    return status ? status : sluice_runtime_commit(rt);
}

static void add_gradient(void *context, uint32_t layer, const float *value, float *gradient)
{
    const int rank = *(const int *)context;
    (void)layer, (void)value;
    for (int i = 0; gradient && i < COUNT; i++) gradient[i] += (float)(i % 7 - 3 + rank);
}

static int train(int rank, int size, void *context)
{
    const trial *t = context;
    sluice_world *world;
    plain_layers layers = {0};
    const sluice_step_options options = SLUICE_INIT(sluice_step_options, .learning_rate = 0.01, .exchange = true);
    (void)size;
    RANK_CHECK(!sluice_world_create(NULL, &world));
    sluice_status status = create(t, world, &layers);
    RANK_CHECK(!status);
    plant(rank == 0 ? t->at : 0);
    for (int step = 0; !status && step < STEPS; step++)
        status = plain_layers_step(&layers, &options, add_gradient, &rank, NULL);
    if (!status) status = sluice_runtime_sync(layers.rt);
    const char *name = kernel_that_failed();
    const uint32_t calls = plant(0);
    if (rank == 0 && calls >= t->at && status != planted)
        fprintf(stderr, "%s, %s: call %u of %s fails: %s\n", t->optimizer, t->strategy, t->at, name ? name : "none",
                sluice_status_name(status));
    RANK_CHECK(rank || status == (calls < t->at ? SLUICE_OK : planted));
    const bool heard = status != SLUICE_OK;
    sluice_runtime_destroy(layers.rt);
    sluice_world_destroy(world);
    return heard ? 0 : PASSED_BY;
}

static void check(trial t)
{
    uint32_t heard = 0;
    for (t.at = 1;; t.at += 1 + t.at / 16, heard++) {
        int codes[2];
        const int failed = run_ranks_codes(2, train, &t, 60, codes);
        if (!failed) continue;
        if (codes[0] != PASSED_BY || codes[1] != PASSED_BY)
            fail_msg("%s, %s, call %u: %d and %d", t.optimizer, t.strategy, t.at, codes[0], codes[1]);
        break;
    }
    assert_true(heard > 20);
}

static void plain_optimizers(void **state)
{
    (void)state;
    check((trial){"adamw", "fsdp", "one_ahead", SLUICE_UPDATES_COMPUTE, 0.1, 0});
    check((trial){"lamb", "dp", "one_ahead", SLUICE_UPDATES_COMMUNICATION, 0, 0});
}

static void compressed_optimizers(void **state)
{
    (void)state;
    check((trial){"onebit_adam", "onebit", "one_ahead", SLUICE_UPDATES_AUTO, 0.1, 0});
    check((trial){"onebit_lamb", "onebit", "one_ahead", SLUICE_UPDATES_AUTO, 0, 0});
    check((trial){"zero_one_adam", "onebit", "one_ahead", SLUICE_UPDATES_AUTO, 0, 0});
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(plain_optimizers), cmocka_unit_test(compressed_optimizers)};
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
