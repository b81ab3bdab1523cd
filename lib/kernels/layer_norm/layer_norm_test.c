/* Layer norm forward and backward against float64, with and without the residual paths, in place, with equal bits for
 * every instruction set. */
#include "lib/kernels/kernel_test.h"
#include "lib/kernels/layer_norm/layer_norm.h"
#include "lib/kernels/layer_norm/layer_norm_ref.h"

static const float epsilon = 1e-5f;

typedef struct {
    uint64_t rows, channels, count;
    float *x, *residual, *gamma, *beta, *dy, *add;
    double *x64, *residual64, *gamma64, *beta64, *dy64, *add64;
} inputs;

static inputs inputs_create(uint64_t rows, uint64_t channels)
{
    inputs in = {.rows = rows, .channels = channels, .count = rows * channels};
    in.x = test_uniform_floats(in.count, -1, 3, 1), in.residual = test_uniform_floats(in.count, -2, 1, 2);
    in.gamma = test_uniform_floats(channels, 0.5f, 1.5f, 3), in.beta = test_uniform_floats(channels, -1, 1, 4);
    in.dy = test_uniform_floats(in.count, -1, 1, 5), in.add = test_uniform_floats(in.count, -1, 1, 6);
    in.x64 = test_widen(in.count, in.x), in.residual64 = test_widen(in.count, in.residual);
    in.gamma64 = test_widen(channels, in.gamma), in.beta64 = test_widen(channels, in.beta);
    in.dy64 = test_widen(in.count, in.dy), in.add64 = test_widen(in.count, in.add);
    return in;
}

static void inputs_destroy(inputs *in)
{
    free(in->x), free(in->residual), free(in->gamma), free(in->beta), free(in->dy), free(in->add);
    free(in->x64), free(in->residual64), free(in->gamma64), free(in->beta64), free(in->dy64), free(in->add64);
}

static void check_forward(const inputs *in, bool with_residual)
{
    double *sum64 = test_doubles(in->count), *y64 = test_doubles(in->count), *mean64 = test_doubles(in->rows),
           *rstd64 = test_doubles(in->rows);
    slc_layer_norm_forward_ref(in->rows, in->channels, in->x64, with_residual ? in->residual64 : NULL, sum64,
                               in->gamma64, in->beta64, (double)epsilon, y64, mean64, rstd64);
    float *first = NULL;
    TEST_EACH_ISA(isa)
    for (uint32_t threads = 1; threads <= 2; threads++) {
        slc_stream stream = test_stream(threads);
        float *x = test_copy(in->count, in->x), *y = test_floats(in->count), *mean = test_floats(in->rows),
              *rstd = test_floats(in->rows);
        /* sum in place of x */
        assert_int_equal(slc_layer_norm_forward(&stream, in->rows, in->channels, x, with_residual ? in->residual : NULL,
                                                with_residual ? x : NULL, in->gamma, in->beta, epsilon, y, mean, rstd),
                         SLUICE_OK);
        test_close("y", in->count, y, y64, 1e-6);
        test_close("rstd", in->rows, rstd, rstd64, 1e-6);
        for (uint64_t r = 0; r < in->rows; r++) assert_true(fabs((double)mean[r] - mean64[r]) < 1e-6);
        if (with_residual) test_close("sum", in->count, x, sum64, 1e-6);
        test_same_bits("y", in->count, y, &first);
        free(x), free(y), free(mean), free(rstd);
        slc_stream_destroy(&stream);
    }
    free(first), free(sum64), free(y64), free(mean64), free(rstd64);
}

static void check_backward(const inputs *in, bool with_add, int fresh, uint32_t threads)
{
    double *y64 = test_doubles(in->count), *mean64 = test_doubles(in->rows), *rstd64 = test_doubles(in->rows);
    double *dx64 = test_doubles(in->count), *dgamma64 = test_widen(in->channels, in->beta),
           *dbeta64 = test_widen(in->channels, in->gamma);
    slc_layer_norm_forward_ref(in->rows, in->channels, in->x64, NULL, NULL, in->gamma64, in->beta64, (double)epsilon,
                               y64, mean64, rstd64);
    slc_layer_norm_backward_ref(in->rows, in->channels, in->dy64, in->x64, in->gamma64, mean64, rstd64,
                                with_add ? in->add64 : NULL, dx64, dgamma64, dbeta64, fresh);
    float *mean = test_floats(in->rows), *rstd = test_floats(in->rows), *first[3] = {0};
    for (uint64_t r = 0; r < in->rows; r++) mean[r] = (float)mean64[r], rstd[r] = (float)rstd64[r];

    TEST_EACH_ISA(isa)
    {
        slc_stream stream = test_stream(threads);
        float *dx = test_copy(in->count, in->add), *dgamma = test_copy(in->channels, in->beta),
              *dbeta = test_copy(in->channels, in->gamma);
        uint64_t bytes = slc_layer_norm_backward_workspace_bytes(&stream, in->rows, in->channels);
        float *workspace = test_uniform_floats(bytes / sizeof(float), 7, 8, 9); /* its content must not matter */
        assert_int_equal(slc_layer_norm_backward(&stream, in->rows, in->channels, in->dy, in->x, in->gamma, mean, rstd,
                                                 with_add ? dx : NULL, dx, dgamma, dbeta, fresh, workspace),
                         SLUICE_OK);
        if (in->channels > 1) test_close("dx", in->count, dx, dx64, 1e-6);
        test_close("dgamma", in->channels, dgamma, dgamma64, 1e-5);
        test_close("dbeta", in->channels, dbeta, dbeta64, 1e-5);
        test_same_bits("dx", in->count, dx, &first[0]);
        test_same_bits("dgamma", in->channels, dgamma, &first[1]);
        test_same_bits("dbeta", in->channels, dbeta, &first[2]);
        free(dx), free(dgamma), free(dbeta), free(workspace);
        slc_stream_destroy(&stream);
    }
    for (int i = 0; i < 3; i++) free(first[i]);
    free(mean), free(rstd), free(y64), free(mean64), free(rstd64), free(dx64), free(dgamma64), free(dbeta64);
}

static void agrees_with_float64(void **state)
{
    (void)state;
    const uint64_t rows[] = {1, 8, 64, 197, 512}, channels[] = {1, 15, 16, 48, 100, 768};
    for (size_t r = 0; r < TEST_COUNT_OF(rows); r++)
        for (size_t c = 0; c < TEST_COUNT_OF(channels); c++) {
            inputs in = inputs_create(rows[r], channels[c]);
            for (int variant = 0; variant < 2; variant++) check_forward(&in, variant);
            for (unsigned v = 0; v < 8; v++) check_backward(&in, v & 1, (v & 2) != 0, 1 + (v >> 2));
            inputs_destroy(&in);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_float64)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
