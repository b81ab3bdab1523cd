/* Layer norm forward and backward must agree with float64, with and without the residual paths, in place, with equal
 * bits for every instruction set. */
#include "tests/support/kernels/arrays.h"
#include "lib/kernels/layer_norm/layer_norm.h"

static const double epsilon = 1e-5;

typedef struct {
    sluice_dtype dtype;
    uint64_t rows, channels, count;
    void *x, *residual, *gamma, *beta, *dy, *add;
    double *x64, *residual64, *gamma64, *beta64, *dy64, *add64;
} inputs;

static inputs inputs_create(sluice_dtype dtype, uint64_t rows, uint64_t channels)
{
    inputs in = {.dtype = dtype, .rows = rows, .channels = channels, .count = rows * channels};
    in.x = test_uniform_typed(dtype, in.count, -1, 3, 1), in.residual = test_uniform_typed(dtype, in.count, -2, 1, 2);
    in.gamma = test_uniform_typed(dtype, channels, 0.5f, 1.5f, 3),
    in.beta = test_uniform_typed(dtype, channels, -1, 1, 4);
    in.dy = test_uniform_typed(dtype, in.count, -1, 1, 5), in.add = test_uniform_typed(dtype, in.count, -1, 1, 6);
    in.x64 = test_widen_typed(dtype, in.count, in.x), in.residual64 = test_widen_typed(dtype, in.count, in.residual);
    in.gamma64 = test_widen_typed(dtype, channels, in.gamma), in.beta64 = test_widen_typed(dtype, channels, in.beta);
    in.dy64 = test_widen_typed(dtype, in.count, in.dy), in.add64 = test_widen_typed(dtype, in.count, in.add);
    return in;
}

static void inputs_destroy(inputs *in)
{
    test_release(in->x), test_release(in->residual), test_release(in->gamma), test_release(in->beta),
        test_release(in->dy), test_release(in->add);
    test_release(in->x64), test_release(in->residual64), test_release(in->gamma64), test_release(in->beta64),
        test_release(in->dy64), test_release(in->add64);
}

/* Returns the array that the kernel normalises: the sum, rounded to the type. */
static void *rounded_sum(const inputs *in)
{
    float *x = test_floats_of(in->dtype, in->count, in->x), *r = test_floats_of(in->dtype, in->count, in->residual);
    for (uint64_t i = 0; i < in->count; i++) x[i] += r[i];
    void *sum = test_typed(in->dtype, in->count, x);
    test_release(x), test_release(r);
    return sum;
}

static void check_forward(const inputs *in, bool with_residual)
{
    double *y64 = test_doubles(in->count), *mean64 = test_doubles(in->rows), *rstd64 = test_doubles(in->rows);
    void *sum = with_residual ? rounded_sum(in) : test_copy_typed(in->dtype, in->count, in->x);
    double *sum64 = test_widen_typed(in->dtype, in->count, sum);
    slc_layer_norm_forward_ref(&(slc_layer_norm_forward_args){.rows = in->rows,
                                                              .channels = in->channels,
                                                              .epsilon = epsilon,
                                                              .x = sum64,
                                                              .gamma = in->gamma64,
                                                              .beta = in->beta64,
                                                              .y = y64,
                                                              .mean = mean64,
                                                              .rstd = rstd64});
    float *first[TEST_KINDS] = {0};
    TEST_EACH_WAY_OF(way, in->count)
    for (uint32_t threads = 1; threads <= 2; threads++) {
        sluice_stream stream = test_stream(threads);
        void *x = test_copy_typed(in->dtype, in->count, in->x), *y = test_floats(in->count);
        float *mean = test_floats(in->rows), *rstd = test_floats(in->rows);
        slc_layer_norm_forward_args args = {.dtype = in->dtype,
                                            .rows = in->rows,
                                            .channels = in->channels,
                                            .epsilon = epsilon,
                                            .x = x,
                                            .gamma = in->gamma,
                                            .beta = in->beta,
                                            .y = y,
                                            .mean = mean,
                                            .rstd = rstd};
        if (with_residual) args.residual = in->residual, args.sum = x;
        assert_int_equal(slc_layer_norm_forward(&stream, &args), SLUICE_OK);
        test_close_typed("y", in->dtype, in->count, y, y64, 1e-6, 2e-3);
        test_close("rstd", in->rows, rstd, rstd64, 1e-6);
        for (uint64_t r = 0; r < in->rows; r++) assert_true(fabs((double)mean[r] - mean64[r]) < 1e-6);
        if (with_residual) assert_memory_equal(x, sum, in->count * sluice_dtype_bytes(in->dtype));
        test_same_bits_typed("y", in->dtype, in->count, y, TEST_FIRST(first));
        /* once more, from the sum */
        args.x = sum, args.residual = NULL, args.sum = NULL;
        assert_int_equal(slc_layer_norm_forward(&stream, &args), SLUICE_OK);
        test_same_bits_typed("y from the sum", in->dtype, in->count, y, TEST_FIRST(first));
        test_release(x), test_release(y), test_release(mean), test_release(rstd);
        slc_stream_destroy(&stream);
    }
    test_release(first[0]), test_release(first[1]), test_release(sum), test_release(sum64), test_release(y64),
        test_release(mean64), test_release(rstd64);
}

static void check_backward(const inputs *in, sluice_dtype gradient, bool with_add, bool fresh, uint32_t threads)
{
    void *dgamma0 = test_uniform_typed(gradient, in->channels, -1, 1, 7),
         *dbeta0 = test_uniform_typed(gradient, in->channels, -1, 1, 8);
    double *y64 = test_doubles(in->count), *mean64 = test_doubles(in->rows), *rstd64 = test_doubles(in->rows);
    double *dx64 = test_doubles(in->count), *dgamma64 = test_widen_typed(gradient, in->channels, dgamma0),
           *dbeta64 = test_widen_typed(gradient, in->channels, dbeta0);
    /* The sums of the magnitudes of all that dbeta adds up. */
    double *beta_terms = fresh ? test_doubles(in->channels) : test_magnitudes(in->channels, dbeta64);
    for (uint64_t i = 0; i < in->count; i++) beta_terms[i % in->channels] += fabs(in->dy64[i]);
    slc_layer_norm_forward_ref(&(slc_layer_norm_forward_args){.rows = in->rows,
                                                              .channels = in->channels,
                                                              .epsilon = epsilon,
                                                              .x = in->x64,
                                                              .gamma = in->gamma64,
                                                              .beta = in->beta64,
                                                              .y = y64,
                                                              .mean = mean64,
                                                              .rstd = rstd64});
    slc_layer_norm_backward_ref(&(slc_layer_norm_backward_args){.rows = in->rows,
                                                                .channels = in->channels,
                                                                .dy = in->dy64,
                                                                .x = in->x64,
                                                                .gamma = in->gamma64,
                                                                .mean = mean64,
                                                                .rstd = rstd64,
                                                                .dx_add = with_add ? in->add64 : NULL,
                                                                .dx = dx64,
                                                                .dgamma = dgamma64,
                                                                .dbeta = dbeta64,
                                                                .fresh = fresh});
    float *mean = test_floats(in->rows), *rstd = test_floats(in->rows), *first[3][TEST_KINDS] = {{0}};
    for (uint64_t r = 0; r < in->rows; r++) mean[r] = (float)mean64[r], rstd[r] = (float)rstd64[r];

    TEST_EACH_WAY_OF(way, in->count)
    {
        sluice_stream stream = test_stream(threads);
        void *dx = test_copy_typed(in->dtype, in->count, in->add),
             *dgamma = test_copy_typed(gradient, in->channels, dgamma0),
             *dbeta = test_copy_typed(gradient, in->channels, dbeta0);
        uint64_t bytes = slc_layer_norm_backward_workspace_bytes(&stream, in->rows, in->channels);
        float *workspace = test_uniform_floats(bytes / sizeof(float), 7, 8, 9); /* its content must not matter */
        const slc_layer_norm_backward_args args = {.dtype = in->dtype,
                                                   .gradient = gradient,
                                                   .rows = in->rows,
                                                   .channels = in->channels,
                                                   .dy = in->dy,
                                                   .x = in->x,
                                                   .gamma = in->gamma,
                                                   .mean = mean,
                                                   .rstd = rstd,
                                                   .dx_add = with_add ? dx : NULL,
                                                   .dx = dx,
                                                   .dgamma = dgamma,
                                                   .dbeta = dbeta,
                                                   .fresh = fresh,
                                                   .workspace = workspace};
        assert_int_equal(slc_layer_norm_backward(&stream, &args), SLUICE_OK);
        if (in->channels > 1) test_close_typed("dx", in->dtype, in->count, dx, dx64, 1e-6, 2e-3);
        test_close_typed("dgamma", gradient, in->channels, dgamma, dgamma64, 1e-5, 3e-3);
        test_close_sums("dbeta", gradient, in->channels, dbeta, dbeta64, beta_terms);
        test_same_bits_typed("dx", in->dtype, in->count, dx, TEST_FIRST(first[0]));
        test_same_bits_typed("dgamma", gradient, in->channels, dgamma, TEST_FIRST(first[1]));
        test_same_bits_typed("dbeta", gradient, in->channels, dbeta, TEST_FIRST(first[2]));
        test_release(dx), test_release(dgamma), test_release(dbeta), test_release(workspace);
        slc_stream_destroy(&stream);
    }
    for (int i = 0; i < 3; i++) test_release(first[i][0]), test_release(first[i][1]);
    test_release(mean), test_release(rstd), test_release(y64), test_release(mean64), test_release(rstd64),
        test_release(dx64), test_release(dgamma64), test_release(dbeta64);
    test_release(dgamma0), test_release(dbeta0), test_release(beta_terms);
}

static void agrees_with_float64(void **state)
{
    (void)state;
    const uint64_t rows[] = {1, 8, 197, 512, 1000, 1024}, channels[] = {1, 15, 100, 4100, 16, 48, 768};
    for (size_t r = 0; r < TEST_SHAPES(rows, 3); r++)
        for (size_t c = 0; c < TEST_SHAPES(channels, 4); c++) TEST_EACH_DTYPE(dtype)
            {
                if (rows[r] * channels[c] > (test_brief() ? 40000 : 1100000)) continue;
                inputs in = inputs_create(dtype, rows[r], channels[c]);
                for (int variant = 0; variant < 2; variant++) check_forward(&in, variant);
                for (unsigned v = 0; v<8; v += in.count> 100000 ? 7 : 1)
                    check_backward(&in, dtype, v & 1, (v & 2) != 0, 1 + (v >> 2));
                check_backward(&in, !dtype, true, false, 2);
                inputs_destroy(&in);
            }
}

/* Results above 16 MiB are stored past the cache; they must have the bits of a call for a few rows. */
static void large_as_small(void **state)
{
    (void)state;
    TEST_EACH_DTYPE(dtype) TEST_EACH_ISA(isa)
    {
        const uint64_t channels = 784, rows = (17 << 20) / sluice_dtype_bytes(dtype) / channels, some = 50,
                       first = rows - some;
        inputs in = {.count = rows * channels};
        in.x = test_repeated_typed(dtype, in.count, -1, 3, 1);
        in.residual = test_repeated_typed(dtype, in.count, -2, 1, 2);
        in.gamma = test_uniform_typed(dtype, channels, 0.5f, 1.5f, 3);
        in.beta = test_uniform_typed(dtype, channels, -1, 1, 4);
        in.dy = test_repeated_typed(dtype, in.count, -1, 1, 5);
        in.add = test_repeated_typed(dtype, in.count, -1, 1, 6);
        sluice_stream stream = test_stream(1);
        const size_t size = channels * sluice_dtype_bytes(dtype), offset = first * size;
        char *sum = (char *)test_floats(in.count), *y = (char *)test_floats(in.count),
             *dx = (char *)test_floats(in.count);
        char *sum_piece = (char *)test_floats(some * channels), *y_piece = (char *)test_floats(some * channels);
        float *mean = test_floats(rows), *rstd = test_floats(rows), *dgamma = test_floats(channels),
              *dbeta = test_floats(channels);
        void *workspace = test_floats(slc_layer_norm_backward_workspace_bytes(&stream, rows, channels) / sizeof(float));
        slc_layer_norm_forward_args forward = {.dtype = dtype,
                                               .rows = rows,
                                               .channels = channels,
                                               .epsilon = epsilon,
                                               .x = in.x,
                                               .gamma = in.gamma,
                                               .beta = in.beta,
                                               .residual = in.residual,
                                               .sum = sum,
                                               .y = y,
                                               .mean = mean,
                                               .rstd = rstd};
        slc_layer_norm_backward_args backward = {.dtype = dtype,
                                                 .gradient = SLUICE_FP32,
                                                 .rows = rows,
                                                 .channels = channels,
                                                 .dy = in.dy,
                                                 .x = sum,
                                                 .gamma = in.gamma,
                                                 .mean = mean,
                                                 .rstd = rstd,
                                                 .dx_add = in.add,
                                                 .dx = dx,
                                                 .dgamma = dgamma,
                                                 .dbeta = dbeta,
                                                 .fresh = true,
                                                 .workspace = workspace};
        slc_layer_norm_forward(&stream, &forward);
        slc_layer_norm_backward(&stream, &backward);
        forward.rows = some, forward.x = (char *)in.x + offset, forward.residual = (char *)in.residual + offset;
        forward.sum = sum_piece, forward.y = y_piece;
        slc_layer_norm_forward(&stream, &forward);
        assert_memory_equal(sum + offset, sum_piece, some * size);
        assert_memory_equal(y + offset, y_piece, some * size);
        backward.rows = some, backward.dy = (char *)in.dy + offset, backward.x = sum_piece;
        backward.dx_add = (char *)in.add + offset, backward.dx = y_piece;
        slc_layer_norm_backward(&stream, &backward);
        assert_memory_equal(dx + offset, y_piece, some * size);
        test_release(sum), test_release(y), test_release(dx), test_release(sum_piece), test_release(y_piece);
        test_release(mean), test_release(rstd), test_release(dgamma), test_release(dbeta), test_release(workspace);
        inputs_destroy(&in);
        slc_stream_destroy(&stream);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_float64), cmocka_unit_test(large_as_small)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
