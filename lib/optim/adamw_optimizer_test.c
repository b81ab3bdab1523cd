/* The AdamW optimizer must agree over 20 steps with the formula in float64, in one range or many, and must refuse bad
 * settings. */
#include "lib/optim/adam.h"
#include "lib/optim/adamw.h"
#include "tests/support/optim/two_moments.h"
#include "tests/support/without_fma.h"

static const sluice_adamw settings = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.1};

static sluice_update range_of(const parameter *p, const float *gradient, uint64_t at, uint64_t piece, uint64_t step,
                              bool no_decay)
{
    sluice_update update = two_moments_range(p, gradient, at, piece, step, no_decay);
    update.gradient_factor = step % 3 ? 1 : 0.25;
    return update;
}

/* Runs steps 1..STEPS, each in ranges of `piece` elements. */
static void train(const sluice_optimizer *optimizer, parameter *p, uint64_t piece, bool no_decay)
{
    for (uint64_t step = 1; step <= STEPS; step++) {
        float *gradient = test_uniform_floats(COUNT, -0.1f, 0.1f, 100 + step);
        for (uint64_t at = 0; at < COUNT; at += piece) {
            sluice_update update = range_of(p, gradient, at, piece, step, no_decay);
            assert_int_equal(optimizer->update(&update, optimizer->context), SLUICE_OK);
        }
        test_release(gradient);
    }
}

/* Trains as `train` does, but passes all ranges of a step in one call. */
static void train_together(const sluice_optimizer *optimizer, parameter *p, uint64_t piece, bool no_decay)
{
    for (uint64_t step = 1; step <= STEPS; step++) {
        float *gradient = test_uniform_floats(COUNT, -0.1f, 0.1f, 100 + step);
        sluice_update updates[SLUICE_OPTIMIZER_RANGES_MAX];
        size_t count = 0;
        for (uint64_t at = 0; at < COUNT; at += piece)
            updates[count++] = range_of(p, gradient, at, piece, step, no_decay);
        assert_int_equal(optimizer->update_many(updates, count, optimizer->context), SLUICE_OK);
        test_release(gradient);
    }
}

static void train_in_float64(double *w, double *m, double *v, bool no_decay)
{
    const sluice_adamw *s = &settings;
    for (uint64_t step = 1; step <= STEPS; step++) {
        float *gradient = test_uniform_floats(COUNT, -0.1f, 0.1f, 100 + step);
        double rate = 1e-2 / (double)step, decay = no_decay ? 0 : s->weight_decay;
        double c1 = 1 - pow(s->beta1, (double)step), c2 = 1 - pow(s->beta2, (double)step);
        for (uint64_t i = 0; i < COUNT; i++) {
            double g = (double)gradient[i] * (step % 3 ? 1 : 0.25);
            m[i] = s->beta1 * m[i] + (1 - s->beta1) * g;
            v[i] = s->beta2 * v[i] + (1 - s->beta2) * g * g;
            w[i] -= rate * decay * w[i];
            w[i] -= rate / c1 * m[i] / (sqrt(v[i]) / sqrt(c2) + s->epsilon);
        }
        test_release(gradient);
    }
}

static sluice_status create(sluice_stream *stream, sluice_optimizer *out)
{
    return slc_adamw_create(&settings, stream, out);
}

static void twenty_steps_agree_with_float64(void **state)
{
    (void)state;
    check_agrees_with_float64("adamw", create, train, train_in_float64, NULL);
}

static void ranges_and_streams_change_no_bit(void **state)
{
    (void)state;
    check_ranges_and_streams_change_no_bit(create, train);
    check_ranges_and_streams_change_no_bit(create, train_together);
}

static void refuses_settings_outside_their_range(void **state)
{
    (void)state;
    sluice_stream stream = test_stream(1);
    const sluice_adamw bad[] = {
        {.beta1 = 1, .beta2 = 0.9, .epsilon = 1e-8},
        {.beta1 = -0.1, .beta2 = 0.9, .epsilon = 1e-8},
        {.beta1 = 0.9, .beta2 = 1, .epsilon = 1e-8},
        {.beta1 = 0.9, .beta2 = NAN, .epsilon = 1e-8},
        {.beta1 = 0.9, .beta2 = 0.9, .epsilon = 0},
        {.beta1 = 0.9, .beta2 = 0.9, .epsilon = INFINITY},
        {.beta1 = 0.9, .beta2 = 0.9, .epsilon = 1e-8, .weight_decay = -1},
        {.beta1 = 0.9, .beta2 = 0.9, .epsilon = 1e-8, .weight_decay = NAN},
    };
    for (size_t i = 0; i < TEST_COUNT_OF(bad); i++) {
        sluice_optimizer optimizer;
        assert_int_equal(slc_adamw_create(&bad[i], &stream, &optimizer), SLUICE_ERR_ARGUMENT);
    }
    slc_stream_destroy(&stream);
}

/* Replicas of a parameter are updated by several processors. */
static uint64_t bits_of_corrections(void)
{
    const sluice_adamw slow = {.beta1 = 0.9999, .beta2 = 0.99999, .epsilon = 1e-8};
    uint64_t hash = SLC_FNV_START;
    for (sluice_update update = {.step = 1}; update.step < 70000; update.step++) {
        const slc_adamw_settings at = slc_adam_settings_at(&slow, &update);
        hash = slc_fnv(hash, &at.bias_correction1, sizeof at.bias_correction1);
        hash = slc_fnv(hash, &at.bias_correction2, sizeof at.bias_correction2);
    }
    return hash;
}

static void corrections_are_the_same_without_fma(void **state)
{
    (void)state;
    same_bits_without_fma(bits_of_corrections());
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc == 2) return print_bits(bits_of_corrections());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twenty_steps_agree_with_float64),
        cmocka_unit_test(ranges_and_streams_change_no_bit),
        cmocka_unit_test(refuses_settings_outside_their_range),
        cmocka_unit_test(corrections_are_the_same_without_fma),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
