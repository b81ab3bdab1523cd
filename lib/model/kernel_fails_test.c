/* Whichever kernel of a model fails, the program hears of it: each call of a kernel in a step and an evaluation fails
 * once, and a call of the model or of the runtime must return that failure. */
#include "tests/support/model/lone_model.h"

#include "tests/support/kernels/failing_kernel.h"
#include "lib/model/batch/inputs.h"

#include <stdio.h>

static const char *const models[] = {"gpt2", "bert_masked", "beit_masked_shared"};

static sluice_status use(test_model *t, const slc_model_inputs *inputs)
{
    double loss;
    const sluice_step_options options = SLUICE_INIT(sluice_step_options);
    sluice_status status = sluice_step_begin(t->rt, &options);
    if (!status) status = sluice_model_forward(t->model, &inputs->given);
    if (!status) status = sluice_model_backward(t->model, &loss);
    if (!status) status = sluice_step_end(t->rt, NULL);
    if (!status) status = sluice_runtime_sync(t->rt);
    if (!status) status = sluice_model_evaluate(t->model, &inputs->given, &loss, NULL);
    return status;
}

static sluice_status run_model(const sluice_model_config *config, const slc_model_inputs *inputs, uint32_t at)
{
    test_model t = test_model_create(config, inputs->batch, inputs->length, 1, 1, SLUICE_RECOMPUTE_ALL);
    works(sluice_model_init(t.model, 1));
    plant(at);
    sluice_status status = use(&t, inputs);
    test_model_destroy(&t);
    return status;
}

static void check_model(const char *model)
{
    char path[600];
    sluice_model_config config = SLUICE_INIT(sluice_model_config);
    slc_model_inputs inputs;
    snprintf(path, sizeof path, "%s/%s", SLUICE_GOLDEN_DIR, model);
    works(sluice_model_config_read(path, &config));
    snprintf(path, sizeof path, "%s/%s/inputs.safetensors", SLUICE_GOLDEN_DIR, model);
    works(slc_model_inputs_read(path, &config, &inputs));
    works(run_model(&config, &inputs, 0));
    const uint32_t all = plant(0);
    assert_true(all > 50);
    for (uint32_t at = 1; at <= all; at++) {
        sluice_status status = run_model(&config, &inputs, at);
        if (status != planted)
            fail_msg("%s: call %u of %u fails, of %s, and nobody hears of it (%d)", model, at, all,
                     kernel_that_failed() ? kernel_that_failed() : "none", (int)status);
    }
    slc_model_inputs_free(&inputs);
}

static void every_failure_is_heard(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) check_model(models[m]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_failure_is_heard)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
