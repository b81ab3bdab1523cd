#include "tests/support/optim/two_moments.h"

#include "lib/optim/adam.h"

parameter two_moments_create(void)
{
    parameter p = {.value = test_uniform_floats(COUNT, -1, 1, 7),
                   .state = {test_floats(COUNT), test_floats(COUNT)},
                   .norms = test_bytes(2 * sizeof(double))};
    for (int s = 0; s < 2; s++) memset(p.state[s], 0, COUNT * sizeof(float));
    return p;
}

void two_moments_destroy(parameter *p)
{
    test_release(p->value), test_release(p->state[0]), test_release(p->state[1]), test_release(p->norms);
}

sluice_update two_moments_range(const parameter *p, const float *gradient, uint64_t at, uint64_t piece, uint64_t step,
                                bool no_decay)
{
    return (sluice_update){.value = p->value + at,
                           .gradient = gradient + at,
                           .state = {p->state[0] + at, p->state[1] + at},
                           .count = COUNT - at < piece ? COUNT - at : piece,
                           .step = step,
                           .learning_rate = 1e-2 / (double)step,
                           .gradient_factor = 1,
                           .no_decay = no_decay,
                           .stream = p->stream};
}

void check_agrees_with_float64(const char *name, create_function *create, train_function *train,
                               float64_function *in_float64, void (*look)(const parameter *p, bool no_decay))
{
    sluice_stream stream = test_stream(1);
    sluice_optimizer optimizer;
    assert_int_equal(create(&stream, &optimizer), SLUICE_OK);
    assert_string_equal(optimizer.name, name);
    assert_int_equal(optimizer.state_count, 2);
    assert_string_equal(optimizer.state_name[0], "exp_avg");
    assert_string_equal(optimizer.state_name[1], "exp_avg_sq");
    for (int no_decay = 0; no_decay < 2; no_decay++) {
        parameter p = two_moments_create();
        double *w = test_widen(COUNT, p.value), *m = test_doubles(COUNT), *v = test_doubles(COUNT);
        train(&optimizer, &p, COUNT, no_decay);
        in_float64(w, m, v, no_decay);
        test_close("value", COUNT, p.value, w, 1e-6);
        test_close("exp_avg", COUNT, p.state[0], m, 1e-6);
        test_close("exp_avg_sq", COUNT, p.state[1], v, 1e-4); /* 1 - .999 in fp32 is off by 5e-5 */
        if (look) look(&p, no_decay);
        free(w), free(m), free(v);
        two_moments_destroy(&p);
    }
    slc_adam_destroy(&optimizer);
    slc_stream_destroy(&stream);
}

void check_ranges_and_streams_change_no_bit(create_function *create, train_function *train)
{
    float *first[3] = {0};
    sluice_stream host = test_stream(1);
    TEST_EACH_WAY(way)
    for (uint64_t piece = 16; piece < 2 * COUNT; piece = piece * 3 + 16) {
        const bool brings = piece % 32 == 0;
        sluice_stream stream = test_stream(2);
        sluice_optimizer optimizer;
        parameter p = two_moments_create();
        if (brings) p.stream = &stream;
        assert_int_equal(create(brings ? &host : &stream, &optimizer), SLUICE_OK);
        assert_true(optimizer.on_stream);
        train(&optimizer, &p, piece, false);
        test_same_bits("value", COUNT, p.value, &first[0]);
        test_same_bits("exp_avg", COUNT, p.state[0], &first[1]);
        test_same_bits("exp_avg_sq", COUNT, p.state[1], &first[2]);
        two_moments_destroy(&p);
        slc_adam_destroy(&optimizer);
        slc_stream_destroy(&stream);
    }
    for (int i = 0; i < 3; i++) test_release(first[i]);
    slc_stream_destroy(&host);
}
