/* In its steady state a step of a model allocates no memory of the GPU, and the host waits for the GPU once, at the
 * step's end; where there are more micro-batches, also for inputs that are two of them old. The emulated runtime
 * counts. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <emulated.h>
#include <sluice/model.h>
#include <sluice/sluice.h>

enum { BATCH = 2, LENGTH = 16, ROWS = BATCH * LENGTH, FIRST_STEPS = 4, STEPS = 4, AHEAD = 2 };

static void must(sluice_status status)
{
    if (status) fail_msg("%s: %s", sluice_status_name(status), sluice_last_error());
}

static void step(sluice_runtime *rt, sluice_model *model, uint32_t micro_batches)
{
    int32_t tokens[ROWS], targets[ROWS];
    double loss;
    must(sluice_step_begin(rt, &SLUICE_INIT(sluice_step_options, .learning_rate = 1e-3)));
    for (uint32_t m = 0; m < micro_batches; m++) {
        for (int i = 0; i < ROWS; i++) tokens[i] = targets[i] = (int32_t)(m * 31 + (uint32_t)i * 7) % 256;
        must(sluice_model_forward(model, &SLUICE_INIT(sluice_batch, .tokens = tokens, .targets = targets)));
        must(sluice_model_backward(model, NULL));
    }
    must(sluice_step_end(rt, NULL));
    must(sluice_model_loss(model, &loss));
    assert_true(loss > 0 && loss < 20);
}

static void count_steps(uint32_t micro_batches, uint64_t most_waits)
{
    sluice_world *world;
    sluice_runtime *rt;
    sluice_model *model;
    sluice_config config;
    sluice_model_config gpt2 = SLUICE_INIT(sluice_model_config);
    sluice_config_init(&config);
    config.device = "cuda";
    config.schedule = "serial";
    config.micro_batches = micro_batches;
    must(sluice_model_config_named("gpt2", "nano", &gpt2));
    must(sluice_world_create(NULL, &world));
    must(sluice_runtime_create(world, &config, &rt));
    must(sluice_model_create(rt, &gpt2, &SLUICE_INIT(sluice_model_options, .batch = BATCH, .length = LENGTH), &model));
    must(sluice_runtime_commit(rt));
    must(sluice_model_init(model, 1));
    for (int i = 0; i < FIRST_STEPS; i++) step(rt, model, micro_batches);
    for (int i = 0; i < STEPS; i++) {
        const emulated_counts before = emulated_count();
        step(rt, model, micro_batches);
        const emulated_counts now = emulated_count();
        assert_int_equal(now.allocations, before.allocations);
        assert_in_range(now.waits - before.waits, 1, most_waits);
    }
    sluice_model_destroy(model);
    sluice_runtime_destroy(rt);
    sluice_world_destroy(world);
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_micro_batch_costs_one_wait),
                                       cmocka_unit_test(micro_batches_wait_for_old_inputs_at_most)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
