/* Results must agree with float64, in place and apart. Bits must be equal for
 * every instruction set, and, for sums down the columns, for every number of threads. */
#include "tests/support/kernels/arrays.h"
#include "lib/kernels/residual/residual.h"

/* ---- Bias, dropout, scale, residual and path, each present or not; a factor comes with the bias ---- */

enum { BIAS = 1, DROPOUT = 2, SCALE = 4, RESIDUAL = 8, PATH = 16, TERMS = 32 };

typedef struct {
    sluice_dtype dtype;
    uint64_t rows, channels, count;
    unsigned terms;
    float factor;
    slc_dropout rule;
    slc_drop_path path;
    void *x, *bias, *scale, *residual, *dout;
    double *x64, *bias64, *scale64, *residual64, *dout64;
} inputs;

static inputs inputs_create(sluice_dtype dtype, uint64_t rows, uint64_t channels, unsigned terms)
{
    inputs in = {.dtype = dtype, .rows = rows, .channels = channels, .count = rows * channels, .terms = terms};
    in.rule = (slc_dropout){0.25f, 99, 1234567};
    in.path = (slc_drop_path){{0.4f, 98, 7654321}, rows < 5 ? 1 : 5}; /* the last sequence may be cut off */
    in.factor = terms & BIAS ? 1.375f : 0;
    in.x = test_uniform_typed(dtype, in.count, -1, 3, 1), in.residual = test_uniform_typed(dtype, in.count, -2, 1, 2);
    in.bias = test_uniform_typed(dtype, channels, -1, 1, 3),
    in.scale = test_uniform_typed(dtype, channels, 0.5f, 1.5f, 4);
    in.dout = test_uniform_typed(dtype, in.count, -1, 2, 5);
    in.x64 = test_widen_typed(dtype, in.count, in.x), in.residual64 = test_widen_typed(dtype, in.count, in.residual);
    in.bias64 = test_widen_typed(dtype, channels, in.bias), in.scale64 = test_widen_typed(dtype, channels, in.scale);
    in.dout64 = test_widen_typed(dtype, in.count, in.dout);
    return in;
}

static void inputs_destroy(inputs *in)
{
    test_release(in->x), test_release(in->bias), test_release(in->scale), test_release(in->residual),
        test_release(in->dout);
    test_release(in->x64), test_release(in->bias64), test_release(in->scale64), test_release(in->residual64),
        test_release(in->dout64);
}

/* Returns the inputs with the magnitudes of their float64 arrays, and no others. From these the reference computes the
 * sums of the magnitudes of all that it adds. The caller destroys them. */
static inputs magnitudes_of(const inputs *in)
{
    inputs m = *in;
    m.x = m.bias = m.scale = m.residual = m.dout = NULL;
    m.x64 = test_magnitudes(in->count, in->x64), m.residual64 = test_magnitudes(in->count, in->residual64);
    m.bias64 = test_magnitudes(in->channels, in->bias64), m.scale64 = test_magnitudes(in->channels, in->scale64);
    m.dout64 = test_magnitudes(in->count, in->dout64);
    return m;
}

#define TERM(in, bit, what) ((in)->terms & (bit) ? (what) : NULL)

/* Returns the output of the reference; the caller frees it. */
static double *forward_of(const inputs *in)
{
    double *out = test_doubles(in->count);
    slc_residual_forward_ref(&(slc_residual_forward_args){.rows = in->rows,
                                                          .channels = in->channels,
                                                          .x = in->x64,
                                                          .bias = TERM(in, BIAS, in->bias64),
                                                          .scale = TERM(in, SCALE, in->scale64),
                                                          .dropout = TERM(in, DROPOUT, &in->rule),
                                                          .residual = TERM(in, RESIDUAL, in->residual64),
                                                          .out = out,
                                                          .path = TERM(in, PATH, &in->path),
                                                          .factor = in->factor});
    return out;
}

static void check_forward(const inputs *in)
{
    inputs magnitudes = magnitudes_of(in);
    double *want = forward_of(in), *sums = forward_of(&magnitudes);
    const slc_dropout *rule = TERM(in, DROPOUT, &in->rule);
    float *first = NULL;
    TEST_EACH_WAY_OF(way, in->count)
    for (uint32_t threads = 1; threads <= 2; threads++) {
        sluice_stream stream = test_stream(threads);
        void *out = test_floats(in->count), *inside = test_copy_typed(in->dtype, in->count, in->x),
             *stay = test_copy_typed(in->dtype, in->count, in->residual);
        slc_residual_forward_args args = {.dtype = in->dtype,
                                          .rows = in->rows,
                                          .channels = in->channels,
                                          .x = in->x,
                                          .bias = TERM(in, BIAS, in->bias),
                                          .scale = TERM(in, SCALE, in->scale),
                                          .dropout = rule,
                                          .residual = TERM(in, RESIDUAL, in->residual),
                                          .out = out,
                                          .path = TERM(in, PATH, &in->path),
                                          .factor = in->factor};
        assert_int_equal(slc_residual_forward(&stream, &args), SLUICE_OK);
        test_close_sums("out", in->dtype, in->count, out, want, sums);
        test_same_bits_typed("out", in->dtype, in->count, out, &first);
        args.x = inside, args.out = inside;
        assert_int_equal(slc_residual_forward(&stream, &args), SLUICE_OK);
        test_same_bits_typed("out in place of x", in->dtype, in->count, inside, &first);
        if (args.residual) {
            args.x = in->x, args.residual = stay, args.out = stay;
            assert_int_equal(slc_residual_forward(&stream, &args), SLUICE_OK);
            test_same_bits_typed("out in place of residual", in->dtype, in->count, stay, &first);
        }
        test_release(out), test_release(inside), test_release(stay);
        slc_stream_destroy(&stream);
    }
    test_release(want), test_release(sums), test_release(first);
    inputs_destroy(&magnitudes);
}

/* Fills dx and dscale with the gradients of the reference. */
static void backward_of(const inputs *in, bool fresh, double *dx, double *dscale)
{
    slc_residual_backward_ref(&(slc_residual_backward_args){.rows = in->rows,
                                                            .channels = in->channels,
                                                            .dout = in->dout64,
                                                            .x = in->x64,
                                                            .bias = TERM(in, BIAS, in->bias64),
                                                            .scale = TERM(in, SCALE, in->scale64),
                                                            .dropout = TERM(in, DROPOUT, &in->rule),
                                                            .dx = dx,
                                                            .dscale = dscale,
                                                            .fresh = fresh,
                                                            .path = TERM(in, PATH, &in->path),
                                                            .factor = in->factor});
}

static void check_backward(const inputs *in, sluice_dtype gradient, bool fresh)
{
    double *dx64 = test_doubles(in->count);
    void *before = test_uniform_typed(gradient, in->channels, -1, 1, 6);
    double *dscale64 = test_widen_typed(gradient, in->channels, before);
    const slc_dropout *rule = TERM(in, DROPOUT, &in->rule);
    inputs magnitudes = magnitudes_of(in);
    double *unused_dx = test_doubles(in->count), *dscale_sums = test_magnitudes(in->channels, dscale64);
    backward_of(in, fresh, dx64, dscale64);
    backward_of(&magnitudes, fresh, unused_dx, dscale_sums);
    /* Each addend was rounded up to five times before it is added, so that the bar is twice that of a plain sum. */
    for (uint64_t c = 0; c < in->channels; c++) dscale_sums[c] *= 2;
    float *first_dx = NULL, *first[TEST_KINDS] = {0};
    TEST_EACH_WAY_OF(way, in->count)
    for (uint32_t threads = 1; threads <= 2; threads++) {
        sluice_stream stream = test_stream(threads);
        void *dx = test_copy_typed(in->dtype, in->count, in->dout),
             *dscale = test_copy_typed(gradient, in->channels, before);
        uint64_t bytes = slc_residual_backward_workspace_bytes(&stream, in->rows, in->channels);
        void *workspace = test_uniform_floats(bytes / sizeof(float), 7, 8, 9); /* its content must not matter */
        const slc_residual_backward_args args = {.dtype = in->dtype,
                                                 .gradient = gradient,
                                                 .rows = in->rows,
                                                 .channels = in->channels,
                                                 .dout = dx,
                                                 .x = in->x,
                                                 .bias = TERM(in, BIAS, in->bias),
                                                 .scale = TERM(in, SCALE, in->scale),
                                                 .dropout = rule,
                                                 .dx = dx,
                                                 .dscale = dscale,
                                                 .fresh = fresh,
                                                 .workspace = workspace,
                                                 .path = TERM(in, PATH, &in->path),
                                                 .factor = in->factor};
        assert_int_equal(slc_residual_backward(&stream, &args), SLUICE_OK);
        test_close_typed("dx", in->dtype, in->count, dx, dx64, 1e-6, 2e-3);
        test_close_sums("dscale", gradient, in->channels, dscale, dscale64, dscale_sums);
        test_same_bits_typed("dx", in->dtype, in->count, dx, &first_dx);
        test_same_bits_typed("dscale", gradient, in->channels, dscale, TEST_FIRST(first));
        test_release(dx), test_release(dscale), test_release(workspace);
        slc_stream_destroy(&stream);
    }
    test_release(dx64), test_release(dscale64), test_release(before), test_release(first_dx), test_release(first[0]),
        test_release(first[1]), test_release(unused_dx), test_release(dscale_sums);
    inputs_destroy(&magnitudes);
}

static void joins_the_stream(void **state)
{
    (void)state;
    const uint64_t rows[] = {1, 17, 8, 197, 512}, channels[] = {1, 100, 1100, 15, 16, 768};
    for (size_t r = 0; r < TEST_SHAPES(rows, 2); r++)
        for (size_t c = 0; c < TEST_SHAPES(channels, 3); c++)
            for (unsigned terms = 0; terms < TERMS; terms++) TEST_EACH_DTYPE(dtype)
                {
                    const uint64_t large = test_brief() ? 1800 : 20000;
                    if (rows[r] * channels[c] > large && (terms & 7) != 7 && terms != RESIDUAL) continue;
                    if (terms & PATH && (terms & 7) != 7 && (terms & 7) != 0) continue;
                    inputs in = inputs_create(dtype, rows[r], channels[c], terms);
                    check_forward(&in);
                    for (int fresh = 0; fresh < 2 && !(terms & RESIDUAL); fresh++) check_backward(&in, dtype, fresh);
                    if (terms == (BIAS | DROPOUT | SCALE)) check_backward(&in, !dtype, 0);
                    inputs_destroy(&in);
                }
}

/* An element that forward drops must be dropped in backward: dx is zero exactly where the branch gave nothing. */
static void backward_sees_the_mask_of_forward(void **state)
{
    (void)state;
    enum { ROWS = 13, CHANNELS = 100, COUNT = ROWS * CHANNELS };
    sluice_stream stream = test_stream(2);
    float *ones = test_floats(COUNT), *scale = test_floats(CHANNELS), *out = test_floats(COUNT),
          *dx = test_floats(COUNT), *dscale = test_floats(CHANNELS), *workspace = test_floats(CHANNELS);
    for (int i = 0; i < COUNT; i++) ones[i] = 1;
    for (int i = 0; i < CHANNELS; i++) scale[i] = 2;
    const slc_dropout rule = {0.5f, 3, 11};
    const slc_residual_forward_args forward = {
        .rows = ROWS, .channels = CHANNELS, .x = ones, .scale = scale, .dropout = &rule, .out = out};
    const slc_residual_backward_args backward = {.rows = ROWS,
                                                 .channels = CHANNELS,
                                                 .dout = ones,
                                                 .x = ones,
                                                 .scale = scale,
                                                 .dropout = &rule,
                                                 .dx = dx,
                                                 .dscale = dscale,
                                                 .fresh = true,
                                                 .workspace = workspace};
    slc_residual_forward(&stream, &forward);
    slc_residual_backward(&stream, &backward);
    uint64_t kept = 0;
    for (int i = 0; i < COUNT; i++) {
        assert_true(out[i] == 0 || out[i] == 4);
        assert_true(dx[i] == out[i]);
        kept += out[i] > 0;
    }
    assert_in_range(kept, COUNT / 3, COUNT * 2 / 3);
    test_release(ones), test_release(scale), test_release(out), test_release(dx), test_release(dscale),
        test_release(workspace);
    slc_stream_destroy(&stream);
}

/* A dropped sequence leaves the residual as it is, in all of its rows; the kept ones are so many as the probability
 * says, within three standard deviations, over sequences of one step and over steps, whose seeds are others. */
static void sequences_are_dropped_whole(void **state)
{
    (void)state;
    enum { ROWS = 3, CHANNELS = 20 };
    const uint64_t draws = 100000, each = 500, count = each * ROWS * CHANNELS;
    const float probabilities[] = {0.05f, 0.3f, 0.8f};
    sluice_stream stream = test_stream(2);
    float *ones = test_floats(count), *residual = test_uniform_floats(count, -1, 1, 4), *out = test_floats(count);
    for (uint64_t i = 0; i < count; i++) ones[i] = 1;
    for (size_t p = 0; p < TEST_COUNT_OF(probabilities); p++) {
        const double keep = 1 - (double)probabilities[p];
        uint64_t kept = 0;
        for (uint64_t step = 0; step < draws / each; step++) {
            const slc_drop_path path = {{probabilities[p], 1000 + step * 7919, step % 2 * 12345}, ROWS};
            const slc_residual_forward_args args = {
                .rows = each * ROWS, .channels = CHANNELS, .x = ones, .residual = residual, .out = out, .path = &path};
            assert_int_equal(slc_residual_forward(&stream, &args), SLUICE_OK);
            for (uint64_t s = 0; s < each; s++) {
                const float *one = out + s * ROWS * CHANNELS, *was = residual + s * ROWS * CHANNELS;
                const bool there = *one != *was;
                for (int i = 0; i < ROWS * CHANNELS; i++)
                    assert_true(there ? fabs(one[i] - was[i] - 1 / keep) < 1e-4 : one[i] == was[i]);
                kept += there;
            }
        }
        assert_true(fabs((double)kept - (double)draws * keep) < 3 * sqrt((double)draws * keep * (1 - keep)));
    }
    test_release(ones), test_release(residual), test_release(out);
    slc_stream_destroy(&stream);
}

static void wrong_paths_are_refused(void **state)
{
    (void)state;
    sluice_stream stream = test_stream(1);
    float x[4] = {1, 2, 3, 4}, out[4], dscale[2], workspace[2];
    const slc_drop_path wrong[] = {{{1, 1, 0}, 1}, {{-0.1f, 1, 0}, 1}, {{NAN, 1, 0}, 1}, {{0.5f, 1, 0}, 0}};
    for (size_t i = 0; i < TEST_COUNT_OF(wrong); i++) {
        assert_int_equal(
            slc_residual_forward(
                &stream, &(slc_residual_forward_args){.rows = 2, .channels = 2, .x = x, .out = out, .path = &wrong[i]}),
            SLUICE_ERR_ARGUMENT);
        assert_int_equal(slc_residual_backward(&stream, &(slc_residual_backward_args){.rows = 2,
                                                                                      .channels = 2,
                                                                                      .dout = x,
                                                                                      .x = x,
                                                                                      .scale = x,
                                                                                      .dx = out,
                                                                                      .dscale = dscale,
                                                                                      .workspace = workspace,
                                                                                      .path = &wrong[i]}),
                         SLUICE_ERR_ARGUMENT);
    }
    const slc_drop_path none = {{0, 1, 0}, 0};
    const slc_residual_forward_args args = {.rows = 2, .channels = 2, .x = x, .out = out, .path = &none};
    assert_int_equal(slc_residual_forward(&stream, &args), SLUICE_OK);
    assert_memory_equal(x, out, sizeof x);
    slc_stream_destroy(&stream);
}

/* Results above 16 MiB are stored past the cache; they must have the bits of calls for a few rows. */
static void large_as_small(void **state)
{
    (void)state;
    TEST_EACH_DTYPE(dtype) TEST_EACH_ISA(isa)
    {
        const uint64_t channels = 1040, rows = (17 << 20) / sluice_dtype_bytes(dtype) / channels, some = 50,
                       first = rows - some;
        inputs in = {.count = rows * channels, .rule = {0.25f, 99, 1234567}};
        in.x = test_repeated_typed(dtype, in.count, -1, 3, 1);
        in.residual = test_repeated_typed(dtype, in.count, -2, 1, 2);
        in.bias = test_uniform_typed(dtype, channels, -1, 1, 3);
        in.scale = test_uniform_typed(dtype, channels, 0.5f, 1.5f, 4);
        sluice_stream stream = test_stream(2);
        char *out = (char *)test_floats(in.count), *piece = (char *)test_floats(some * channels);
        const size_t offset = first * channels * sluice_dtype_bytes(dtype);
        slc_residual_forward_args args = {.dtype = dtype,
                                          .rows = rows,
                                          .channels = channels,
                                          .x = in.x,
                                          .bias = in.bias,
                                          .scale = in.scale,
                                          .dropout = &in.rule,
                                          .residual = in.residual,
                                          .out = out};
        slc_residual_forward(&stream, &args);
        in.rule.first += first * channels;
        args.rows = some, args.out = piece;
        args.x = (char *)in.x + offset, args.residual = (char *)in.residual + offset;
        slc_residual_forward(&stream, &args);
        assert_memory_equal(out + offset, piece, some * channels * sluice_dtype_bytes(dtype));
        test_release(out), test_release(piece);
        inputs_destroy(&in);
        slc_stream_destroy(&stream);
    }
}

/* ---- Bias ---- */

static void check_columns(sluice_dtype dtype, sluice_dtype gradient, uint64_t rows, uint64_t columns, uint64_t stride,
                          bool fresh)
{
    const uint64_t count = rows * (stride ? stride : columns);
    void *dy = test_uniform_typed(dtype, count, -1, 1, 1), *before = test_uniform_typed(gradient, columns, -1, 1, 2);
    double *dy64 = test_widen_typed(dtype, count, dy), *want = test_widen_typed(gradient, columns, before);
    double *magnitudes64 = test_magnitudes(count, dy64), *terms = test_magnitudes(columns, want);
    float *first[TEST_KINDS] = {0};
    const float factor = fresh ? 0 : 0.625f;
    slc_bias_backward_args ref = {.rows = rows,
                                  .columns = columns,
                                  .stride = stride,
                                  .dy = dy64,
                                  .dbias = want,
                                  .fresh = fresh,
                                  .factor = factor};
    slc_bias_backward_ref(&ref);
    ref.dy = magnitudes64, ref.dbias = terms;
    slc_bias_backward_ref(&ref);
    TEST_EACH_WAY_OF(way, count)
    for (uint32_t threads = 1; threads <= 2; threads++) {
        sluice_stream stream = test_stream(threads);
        void *dbias = test_copy_typed(gradient, columns, before);
        uint64_t bytes = slc_bias_backward_workspace_bytes(&stream, rows, columns);
        void *workspace = test_uniform_floats(bytes / sizeof(float), 7, 8, 9);
        const slc_bias_backward_args args = {.dtype = dtype,
                                             .gradient = gradient,
                                             .rows = rows,
                                             .columns = columns,
                                             .stride = stride,
                                             .dy = dy,
                                             .dbias = dbias,
                                             .fresh = fresh,
                                             .workspace = workspace,
                                             .factor = factor};
        assert_int_equal(slc_bias_backward(&stream, &args), SLUICE_OK);
        test_close_sums("dbias", gradient, columns, dbias, want, terms);
        test_same_bits_typed("dbias", gradient, columns, dbias, TEST_FIRST(first));
        test_release(dbias), test_release(workspace);
        slc_stream_destroy(&stream);
    }
    test_release(dy), test_release(before), test_release(dy64), test_release(want), test_release(first[0]),
        test_release(first[1]), test_release(magnitudes64), test_release(terms);
}

static void sums_columns(void **state)
{
    (void)state;
    const uint64_t rows[] = {1, 7, 37, 8, 197, 512, 1000, 1024}, columns[] = {1, 33, 300, 15, 16, 768, 1000};
    for (size_t r = 0; r < TEST_SHAPES(rows, 3); r++)
        for (size_t c = 0; c < TEST_SHAPES(columns, 3); c++)
            for (int fresh = 0; fresh < 2; fresh++) TEST_EACH_DTYPE(dtype)
    TEST_EACH_DTYPE(gradient)
    if (!test_brief() || dtype == gradient || (r + c) % 3 == 2)
        check_columns(dtype, gradient, rows[r], columns[c], fresh ? 0 : columns[c] + 7, fresh);
}

static void overlapping_rows_are_refused(void **state)
{
    (void)state;
    sluice_stream stream = test_stream(1);
    float dy[8] = {0}, dbias[4], workspace[4];
    const slc_bias_backward_args args = {
        .rows = 2, .columns = 4, .stride = 3, .dy = dy, .dbias = dbias, .fresh = true, .workspace = workspace};
    assert_int_equal(slc_bias_backward(&stream, &args), SLUICE_ERR_ARGUMENT);
    slc_stream_destroy(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins_the_stream),
        cmocka_unit_test(backward_sees_the_mask_of_forward),
        cmocka_unit_test(sequences_are_dropped_whole),
        cmocka_unit_test(wrong_paths_are_refused),
        cmocka_unit_test(large_as_small),
        cmocka_unit_test(sums_columns),
        cmocka_unit_test(overlapping_rows_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
