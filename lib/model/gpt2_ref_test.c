/* The float64 reference against itself: every gradient that it returns must be the slope of the loss that it
 * returns. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/numbers/random.h"
#include "tests/support/model/gpt2_ref.h"
#include "lib/model/params.h"
#include "tests/support/seed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 2, LENGTH = 5, SAMPLES = 12 };
static const sluice_model_config tiny = {.struct_size = sizeof(sluice_model_config),
                                         .family = SLUICE_GPT2,
                                         .layers = 2,
                                         .channels = 8,
                                         .heads = 2,
                                         .hidden = 32,
                                         .context = 6,
                                         .vocabulary = 11,
                                         .epsilon = 1e-5,
                                         .gelu_tanh = true};
static const int32_t token[BATCH * LENGTH] = {1, 7, 7, 0, 10, 3, 1, 4, 9, 2};
static const int32_t target[BATCH * LENGTH] = {7, 7, 0, 10, 3, 1, -1, 9, 2, 5};

/* The parameters are larger than GPT-2's first values, so that no path through the model is nearly linear. */
static double *random_params(void)
{
    uint64_t count = sluice_model_param_count(&tiny);
    double *params = malloc(count * sizeof *params);
    float *normal = malloc(count * sizeof *normal);
    assert_non_null(params);
    assert_non_null(normal);
    slc_random_normal(test_seed(11), 0, 0, count, normal);
    for (uint64_t i = 0; i < count; i++) params[i] = 0.4 * normal[i];
    free(normal);
    return params;
}

static double loss_of(const double *params)
{
    double loss = NAN;
    assert_int_equal(slc_gpt2_ref(&tiny, BATCH, LENGTH, token, target, params, &loss, NULL, NULL), SLUICE_OK);
    return loss;
}

/* The fourth-order central difference. */
static double slope(double *params, uint64_t at)
{
    const double step = 1e-3, here = params[at];
    double loss[4];
    const double moves[4] = {-2, -1, 1, 2};
    for (int i = 0; i < 4; i++) {
        params[at] = here + moves[i] * step;
        loss[i] = loss_of(params);
    }
    params[at] = here;
    return (loss[0] - 8 * loss[1] + 8 * loss[2] - loss[3]) / (12 * step);
}

static void gradients_are_slopes(void **state)
{
    (void)state;
    uint64_t count = sluice_model_param_count(&tiny);
    double *params = random_params(), *gradients = malloc(count * sizeof *gradients), loss;
    assert_non_null(gradients);
    assert_int_equal(slc_gpt2_ref(&tiny, BATCH, LENGTH, token, target, params, &loss, NULL, gradients), SLUICE_OK);
    double worst = 0;
    uint64_t first = 0;
    slc_param_info info;
    for (uint32_t p = 0; slc_param_info_at(&tiny, p, &info); p++) {
        for (uint32_t k = 0; k < SAMPLES; k++) {
            uint64_t at = first + slc_random_below(test_seed(1), p, k, info.count);
            double error = fabs(slope(params, at) - gradients[at]);
            if (error > worst) worst = error;
            if (error > 1e-8) fail_msg("%s[%llu]: off by %g", info.name, (unsigned long long)(at - first), error);
        }
        first += info.count;
    }
    print_message("largest difference from a finite difference: %g\n", worst);
    assert_int_equal(first, count);
    free(gradients);
    free(params);
}

/* Positions after a token must not change its logits. */
static void attention_is_causal(void **state)
{
    (void)state;
    double *params = random_params(), loss;
    static double logits[2][BATCH * LENGTH * 11];
    int32_t changed[BATCH * LENGTH];
    for (int i = 0; i < BATCH * LENGTH; i++) changed[i] = i % LENGTH >= 3 ? 10 - token[i] : token[i];
    assert_int_equal(slc_gpt2_ref(&tiny, BATCH, LENGTH, token, target, params, &loss, logits[0], NULL), SLUICE_OK);
    assert_int_equal(slc_gpt2_ref(&tiny, BATCH, LENGTH, changed, target, params, &loss, logits[1], NULL), SLUICE_OK);
    for (size_t i = 0; i < sizeof logits[0] / sizeof(double); i++) {
        bool before = i / 11 % LENGTH < 3;
        if (before) assert_true(logits[0][i] == logits[1][i]);
    }
    assert_true(logits[0][3 * 11] != logits[1][3 * 11]);
    free(params);
}

static void sizes_are_gpt2s(void **state)
{
    (void)state;
    const struct {
        const char *name;
        uint64_t count;
    } known[] = {{"small", 124439808}, {"medium", 354823168}, {"large", 774030080}, {"xl", 1557611200}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        sluice_model_config config = SLUICE_INIT(sluice_model_config);
        assert_int_equal(sluice_model_config_named("gpt2", known[i].name, &config), SLUICE_OK);
        assert_int_equal(sluice_model_param_count(&config), known[i].count);
    }
    sluice_model_config config = SLUICE_INIT(sluice_model_config);
    assert_int_equal(sluice_model_config_named("gpt2", "huge", &config), SLUICE_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_slopes),
        cmocka_unit_test(attention_is_causal),
        cmocka_unit_test(sizes_are_gpt2s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
