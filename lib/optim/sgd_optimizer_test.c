/* SGD must agree over 50 steps with PyTorch's formula in float64, in one range or many, and must refuse bad settings.
 */
#include "tests/support/optim/two_moments.h"
#include "lib/optim/sgd.h"

enum { LONG = 50 };

static void take_step(const sluice_optimizer *optimizer, parameter *p, uint64_t step, uint64_t piece, bool no_decay)
{
    float *gradient = test_uniform_floats(COUNT, -0.1f, 0.1f, 100 + step);
    for (uint64_t at = 0; at < COUNT; at += piece) {
        sluice_update update = two_moments_range(p, gradient, at, piece, step, no_decay);
        update.state[1] = NULL;
        update.learning_rate = 0.1 / (double)step;
        update.gradient_factor = step % 3 ? 1 : 0.25;
        assert_int_equal(optimizer->update(&update, optimizer->context), SLUICE_OK);
    }
    test_release(gradient);
}

static void train(const sluice_optimizer *optimizer, parameter *p, uint64_t piece, bool no_decay)
{
    for (uint64_t step = 1; step <= STEPS; step++) take_step(optimizer, p, step, piece, no_decay);
}

/* torch/optim/sgd.py of PyTorch 2.9, _single_tensor_sgd: weight_decay is added to the gradient; the buffer of the first
 * step is a copy of that, of later steps momentum * buffer + (1 - dampening) * gradient; with nesterov the move is
 * gradient + momentum * buffer, else the buffer; without momentum it is the gradient. */
static void step_as_pytorch(const sluice_sgd *s, uint64_t step, double *w, double *buffer, bool no_decay)
{
    float *gradient = test_uniform_floats(COUNT, -0.1f, 0.1f, 100 + step);
    const double rate = 0.1 / (double)step, decay = no_decay ? 0 : s->weight_decay;
    for (uint64_t i = 0; i < COUNT; i++) {
        double g = (double)gradient[i] * (step % 3 ? 1 : 0.25) + decay * w[i];
        if (s->momentum > 0) {
            buffer[i] = step == 1 ? g : s->momentum * buffer[i] + (1 - s->dampening) * g;
            g = s->nesterov ? g + s->momentum * buffer[i] : buffer[i];
        }
        w[i] -= rate * g;
    }
    test_release(gradient);
}

static const sluice_sgd forms[] = {
    {.momentum = 0.9},
    {.momentum = 0.9, .weight_decay = 0.1},
    {.momentum = 0.9, .dampening = 0.5, .weight_decay = 0.01},
    {.momentum = 0.95, .weight_decay = 0.01, .nesterov = true},
    {.weight_decay = 0.1},
};

static void fifty_steps_agree_with_float64(void **state)
{
    (void)state;
    sluice_stream stream = test_stream(1);
    for (size_t f = 0; f < TEST_COUNT_OF(forms); f++)
        for (int no_decay = 0; no_decay < 2; no_decay++) {
            sluice_optimizer optimizer;
            parameter p = two_moments_create();
            double *w = test_widen(COUNT, p.value), *buffer = test_doubles(COUNT);
            assert_int_equal(slc_sgd_create(&forms[f], &stream, &optimizer), SLUICE_OK);
            assert_string_equal(optimizer.name, "sgd");
            assert_int_equal(optimizer.state_count, forms[f].momentum > 0);
            assert_string_equal(optimizer.state_name[0], "momentum_buffer");
            for (uint64_t step = 1; step <= LONG; step++) {
                take_step(&optimizer, &p, step, COUNT, no_decay);
                step_as_pytorch(&forms[f], step, w, buffer, no_decay);
            }
            test_close("value", COUNT, p.value, w, 1e-6);
            test_close("momentum_buffer", COUNT, p.state[0], buffer, 2e-6);
            free(optimizer.context), free(w), free(buffer);
            two_moments_destroy(&p);
        }
    slc_stream_destroy(&stream);
}

static size_t form; /* of the optimizers that create makes */

static sluice_status create(sluice_stream *stream, sluice_optimizer *out)
{
    return slc_sgd_create(&forms[form], stream, out);
}

static void ranges_and_streams_change_no_bit(void **state)
{
    (void)state;
    for (form = 0; form < TEST_COUNT_OF(forms); form++) check_ranges_and_streams_change_no_bit(create, train);
}

static void refuses_settings_outside_their_range(void **state)
{
    (void)state;
    const sluice_sgd bad[] = {
        {.momentum = -0.1},
        {.momentum = NAN},
        {.momentum = INFINITY},
        {.momentum = 0.9, .dampening = NAN},
        {.momentum = 0.9, .weight_decay = -1},
        {.momentum = 0.9, .weight_decay = INFINITY},
        {.nesterov = true},
        {.momentum = 0.9, .dampening = 0.1, .nesterov = true},
    };
    for (size_t i = 0; i < TEST_COUNT_OF(bad); i++) {
        sluice_optimizer optimizer;
        assert_int_equal(slc_sgd_create(&bad[i], NULL, &optimizer), SLUICE_ERR_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fifty_steps_agree_with_float64),
        cmocka_unit_test(ranges_and_streams_change_no_bit),
        cmocka_unit_test(refuses_settings_outside_their_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
