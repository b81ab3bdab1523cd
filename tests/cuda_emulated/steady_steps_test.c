/* In its steady state a step of a model allocates no memory of the GPU, and the host waits for the GPU once, at the
 * step's end; if there are more micro-batches, also for inputs that are two of them old. The emulated runtime
 * counts. */
#include "tests/cuda_emulated/nano.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <emulated.h>

enum { FIRST_STEPS = 4, STEPS = 4, AHEAD = 2 };

static void must(sluice_status status)
{
    if (status) fail_msg("%s: %s", sluice_status_name(status), sluice_last_error());
}

static void step(const nano *n, uint32_t micro_batches)
{
    double loss;
    must(nano_step(n, micro_batches, 0));
    must(sluice_model_loss(n->model, &loss));
    assert_true(loss > 0 && loss < 20);
}

static void count_steps(uint32_t micro_batches, uint64_t most_waits)
{
    nano n;
    sluice_config config;
    sluice_config_init(&config);
    config.schedule = "serial";
    config.micro_batches = micro_batches;
    must(nano_create(config, &n));
    for (int i = 0; i < FIRST_STEPS; i++) step(&n, micro_batches);
    for (int i = 0; i < STEPS; i++) {
        const emulated_counts before = emulated_count();
        step(&n, micro_batches);
        const emulated_counts now = emulated_count();
        assert_int_equal(now.allocations, before.allocations);
        assert_in_range(now.waits - before.waits, 1, most_waits);
    }
    nano_destroy(&n);
}

static void a_micro_batch_costs_one_wait(void **state)
{
    (void)state;
    count_steps(1, 1);
}

static void micro_batches_wait_for_old_inputs_at_most(void **state)
{
    (void)state;
    count_steps(2, 1);
    count_steps(5, 1 + 5 - AHEAD);
}

/* Steps leave blocks out and scale the others; lengths change in between, which is a re-plan with the first step of a
 * length. */
static void recipes_cost_one_wait(void **state)
{
    (void)state;
    nano n;
    sluice_config config;
    double loss;
    sluice_config_init(&config);
    config.schedule = "serial";
    must(nano_create_for_recipes(config, &n));
    for (uint32_t i = 0, step_of_length = 0; i < 6 * (FIRST_STEPS + STEPS); i++, step_of_length++) {
        if (step_of_length == FIRST_STEPS + STEPS) step_of_length = 0;
        const emulated_counts before = emulated_count();
        must(nano_recipe_step(&n, i, i / (FIRST_STEPS + STEPS) % 2 == 0, 0));
        must(sluice_model_loss(n.model, &loss));
        assert_true(loss > 0 && loss < 20);
        const emulated_counts now = emulated_count();
        if (step_of_length < FIRST_STEPS) continue;
        assert_int_equal(now.allocations, before.allocations);
        assert_int_equal(now.waits, before.waits + 1);
    }
    nano_destroy(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_micro_batch_costs_one_wait),
                                       cmocka_unit_test(micro_batches_wait_for_old_inputs_at_most),
                                       cmocka_unit_test(recipes_cost_one_wait)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
