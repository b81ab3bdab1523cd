/* For tests of optimizers with two moments: a parameter with its states, and the check that neither ranges nor
 * streams change a bit. */
#ifndef SLC_OPTIM_OPTIMIZER_TEST_H
#define SLC_OPTIM_OPTIMIZER_TEST_H

#include "lib/kernels/kernel_test.h"
#include "lib/optim/adam.h"

#include <sluice/optimizer.h>

enum { COUNT = 1007, STEPS = 20 };

typedef struct {
    float *value, *state[2];
    double *norms;         /* two of the last step, if the optimizer has norms */
    sluice_stream *stream; /* brought by every update; NULL: the optimizer's own */
} parameter;

TEST_INLINE parameter parameter_create(void)
{
    parameter p = {.value = test_uniform_floats(COUNT, -1, 1, 7),
                   .state = {test_floats(COUNT), test_floats(COUNT)},
                   .norms = test_bytes(2 * sizeof(double))};
    for (int s = 0; s < 2; s++) memset(p.state[s], 0, COUNT * sizeof(float));
    return p;
}

TEST_INLINE void parameter_destroy(parameter *p)
{
    test_release(p->value), test_release(p->state[0]), test_release(p->state[1]), test_release(p->norms);
}

/* Runs steps 1..STEPS, each in ranges of `piece` elements. */
typedef void train_function(const sluice_optimizer *optimizer, parameter *p, uint64_t piece, bool no_decay);

/* Updates run on the optimizer's own stream or bring one, on the host and on a GPU. */
typedef sluice_status create_function(sluice_stream *stream, sluice_optimizer *out);

TEST_INLINE void check_ranges_and_streams_change_no_bit(create_function *create, train_function *train)
{
    float *first[3] = {0};
    sluice_stream host = test_stream(1);
    TEST_EACH_WAY(way)
    for (uint64_t piece = 16; piece < 2 * COUNT; piece = piece * 3 + 16) {
        const bool brings = piece % 32 == 0;
        sluice_stream stream = test_stream(2);
        sluice_optimizer optimizer;
        parameter p = parameter_create();
        if (brings) p.stream = &stream;
        assert_int_equal(create(brings ? &host : &stream, &optimizer), SLUICE_OK);
        assert_true(optimizer.on_stream);
        train(&optimizer, &p, piece, false);
        test_same_bits("value", COUNT, p.value, &first[0]);
        test_same_bits("exp_avg", COUNT, p.state[0], &first[1]);
        test_same_bits("exp_avg_sq", COUNT, p.state[1], &first[2]);
        parameter_destroy(&p);
        slc_adam_destroy(&optimizer);
        slc_stream_destroy(&stream);
    }
    for (int i = 0; i < 3; i++) test_release(first[i]);
    slc_stream_destroy(&host);
}

#endif
