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
