/* A program that lets floating-point exceptions trap trains: what the library computes for itself (plans, measurements,
 * updates, norms) raises none in it, and its environment is as it was after each call. */
#include "tests/support/ranks.h"

#include <fenv.h>
#include <sluice/sluice.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { LIMIT_S = 60, LAYERS = 3, ELEMENTS = 5000, STEPS = 6, TRAPS = FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW };

#define CALL(call) RANK_CHECK(!(call) && fegetexcept() == TRAPS)

static int train(int rank, int size, void *context)
{
    (void)size;
    const sluice_updates *updates = context;
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layers[LAYERS];
    sluice_param *w[LAYERS];
    sluice_config config;
    sluice_config_init(&config);
    config.clip = 1e-3;
    config.updates = *updates;
    config.threads = 2;
    config.steps = 100000;
    feenableexcept(TRAPS);
    CALL(sluice_world_create(NULL, &world));
    CALL(sluice_runtime_create(world, &config, &rt));
    for (int l = 0; l < LAYERS; l++) {
        char name[16];
        snprintf(name, sizeof name, "h.%d", l);
        CALL(sluice_layer_add(rt, name, &layers[l]));
        CALL(sluice_param_add(layers[l], &SLUICE_INIT(sluice_param_desc, .name = "w", .count = ELEMENTS), &w[l]));
    }
    CALL(sluice_runtime_commit(rt));
    for (int s = 0; s < STEPS; s++) {
        CALL(sluice_step_begin(rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 0.1)));
        for (int l = 0; l < LAYERS; l++) {
            CALL(sluice_forward_begin(layers[l]));
            CALL(sluice_forward_end(layers[l]));
        }
        for (int l = LAYERS; l-- > 0;) {
            CALL(sluice_backward_begin(layers[l]));
            float *gradient = sluice_param_gradient(w[l]);
            for (int i = 0; i < ELEMENTS; i++)
                gradient[i] += (float)(i % 7 - rank) * 1e18f; /* large, but no overflow */
            CALL(sluice_backward_end(layers[l]));
        }
        CALL(sluice_step_end(rt, NULL));
    }
    CALL(sluice_runtime_sync(rt));
    sluice_runtime_destroy(rt);
    sluice_world_destroy(world);
    return 0;
}

static void a_program_with_traps_trains(void **state)
{
    (void)state;
    const sluice_updates lanes[] = {SLUICE_UPDATES_COMMUNICATION, SLUICE_UPDATES_COMPUTE};
    for (int i = 0; i < 2; i++)
        for (int ranks = 1; ranks <= 2; ranks++)
            assert_int_equal(run_ranks(ranks, train, (void *)(uintptr_t)&lanes[i], LIMIT_S), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_program_with_traps_trains)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
