/* Every update must agree with float64 on random packets, with equal bits for every instruction set, on a GPU, for
 * every thread count and cut; non-finite numbers must change nothing. */
#include "tests/support/kernels/arrays.h"
#include "lib/kernels/zero_one/zero_one.h"

static const slc_adamw_settings settings = {.learning_rate = 3e-3,
                                            .beta1 = 0.9,
                                            .beta2 = 0.999,
                                            .epsilon = 1e-8,
                                            .weight_decay = 0.1,
                                            .gradient_factor = 0.7,
                                            .bias_correction1 = 0.6,
                                            .bias_correction2 = 0.3};
static const double momentum_factor = -120, value_factor = 0.97;

typedef enum { GRADIENT, LOCAL, EXCHANGED, UPDATES } kind;

typedef struct {
    uint64_t count, scale_elements;
    uint32_t ranks;
    bool kept, no_decay, decay_moves, mask, begins, rounds, clears;
} update_case;

/* A tensor between two steps; the variance is 0 at every seventh element. */
typedef struct {
    float *value, *exp_avg, *exp_avg_sq, *accumulator, *kept;
    uint16_t *rounded;
} tensor;

static tensor tensor_create(uint64_t count)
{
    tensor t = {test_uniform_floats(count, -1, 1, 3),        test_uniform_floats(count, -0.02f, 0.02f, 5),
                test_uniform_floats(count, 1e-4f, 1e-2f, 4), test_uniform_floats(count, -0.1f, 0.1f, 6),
                test_uniform_floats(count, -1, 1, 7),        (uint16_t *)test_floats(count)};
    memset(t.rounded, 0x55, count * sizeof *t.rounded);
    for (uint64_t i = 0; i < count; i += 7) t.exp_avg_sq[i] = 0;
    return t;
}

static void tensor_destroy(tensor *t)
{
    test_release(t->value), test_release(t->exp_avg), test_release(t->exp_avg_sq), test_release(t->accumulator),
        test_release(t->kept), test_release(t->rounded);
}

static slc_zero_one_range range_of(const update_case *c, const tensor *t)
{
    return (slc_zero_one_range){.count = c->count,
                                .value = t->value,
                                .exp_avg = t->exp_avg,
                                .exp_avg_sq = t->exp_avg_sq,
                                .rounded = c->rounds ? t->rounded : NULL,
                                .accumulator = t->accumulator,
                                .kept = c->kept ? t->kept : NULL,
                                .no_decay = c->no_decay,
                                .decay_moves = c->decay_moves,
                                .mask = c->mask,
                                .begins = c->begins,
                                .clears = c->clears};
}

static slc_compress_shape shape_of(const update_case *c)
{
    return (slc_compress_shape){c->count, c->scale_elements, c->ranks};
}

/* Packets lie apart, as in a group, where those of other tensors lie between them. */
static uint64_t stride_of(const slc_compress_shape *shape)
{
    return (slc_compress_packet_bytes(shape) + 3) / 4 * 4 + shape->count % 5 * 4;
}

/* Makes packets of random signs with scales from .01 to .02. */
static char *packets_create(const slc_compress_shape *shape)
{
    uint64_t bytes = shape->ranks * stride_of(shape), seed = shape->count;
    char *packets = (char *)test_floats(bytes / sizeof(float));
    for (uint64_t i = 0; i < bytes; i++) packets[i] = (char)test_random(&seed);
    for (uint32_t k = 0; k < shape->ranks; k++)
        for (uint64_t i = 0; i < slc_compress_scales(shape); i++)
            ((float *)(void *)(packets + k * stride_of(shape)))[i] = test_uniform(&seed, 0.01f, 0.02f);
    return packets;
}

static double *unpack(const slc_compress_shape *shape, const char *packets)
{
    double *x = test_doubles(shape->count);
    for (uint64_t i = 0; i < shape->count; i++) {
        uint64_t chunk = slc_compress_chunk(shape), at = i % chunk;
        const char *packet = packets + i / chunk * stride_of(shape);
        const uint8_t *bits = (const uint8_t *)packet + slc_compress_scales(shape) * sizeof(float);
        float scale = ((const float *)(const void *)packet)[shape->scale_elements ? at / shape->scale_elements : 0];
        x[i] = (double)scale * (bits[at / 8] >> (7 - at % 8) & 1 ? 1 : -1);
    }
    return x;
}

/* Updates from packets in two pieces, the second one first. */
static bool update(kind which, sluice_stream *stream, const slc_compress_shape *shape, const char *packets,
                   sluice_dtype dtype, const void *gradient, slc_zero_one_range *range)
{
    struct {
        bool finite;
        uint32_t bad;
    } *found = test_bytes(sizeof *found);
    found->finite = true, found->bad = 7;
    range->bad = &found->bad, range->number = 5;
    uint64_t count = shape->count, cut = count / 32 * 16;
    for (int piece = 1; which != LOCAL && piece >= 0; piece--) {
        const slc_compress_results results = {shape, packets, stride_of(shape), piece ? cut : 0,
                                              piece ? count - cut : cut};
        assert_int_equal(which == GRADIENT ? slc_zero_one_gradient(stream, &settings, &results, range, &found->finite)
                                           : slc_zero_one_exchanged(stream, &settings, momentum_factor, value_factor,
                                                                    &results, range, &found->finite),
                         SLUICE_OK);
    }
    if (which == LOCAL) assert_int_equal(slc_zero_one_local(stream, &settings, dtype, gradient, range), SLUICE_OK);
    const bool finite = found->finite && found->bad == 7;
    assert_true(found->bad == 7 || (which == LOCAL && found->bad == 5));
    test_release(found);
    return finite;
}

static void check_array(const char *what, uint64_t count, const float *got, const double *want)
{
    test_close(what, count, got, want, 1e-6);
}

static void check_against_float64(kind which, const update_case *c, const tensor *before, const tensor *after,
                                  const double *exchanged, const double *gradient)
{
    const slc_zero_one_plain plain = {.count = c->count,
                                      .value = test_widen(c->count, before->value),
                                      .exp_avg = test_widen(c->count, before->exp_avg),
                                      .accumulator = test_widen(c->count, before->accumulator),
                                      .kept = c->kept ? test_widen(c->count, before->kept) : NULL,
                                      .exp_avg_sq = test_widen(c->count, before->exp_avg_sq),
                                      .no_decay = c->no_decay,
                                      .decay_moves = c->decay_moves,
                                      .mask = c->mask,
                                      .begins = c->begins};
    if (which == GRADIENT)
        slc_zero_one_gradient_ref(&settings, &plain, exchanged);
    else if (which == LOCAL)
        slc_zero_one_local_ref(&settings, &plain, gradient);
    else
        slc_zero_one_exchanged_ref(&settings, momentum_factor, value_factor, &plain, exchanged);
    check_array("value", c->count, after->value, plain.value);
    check_array("exp_avg", c->count, after->exp_avg, plain.exp_avg);
    if (which == EXCHANGED && c->clears) memset(plain.accumulator, 0, c->count * sizeof *plain.accumulator);
    check_array("accumulator", c->count, after->accumulator, plain.accumulator);
    if (c->kept) check_array("kept", c->count, after->kept, plain.kept);
    assert_memory_equal(after->exp_avg_sq, before->exp_avg_sq, c->count * sizeof(float));
    for (uint64_t i = 0; i < c->count; i++)
        assert_int_equal(after->rounded[i], c->rounds ? sluice_bf16_from_float(after->value[i]) : 0x5555);
    test_release(plain.value), test_release(plain.exp_avg), test_release(plain.accumulator), test_release(plain.kept);
    test_release((double *)(uintptr_t)plain.exp_avg_sq);
}

static void check_case(kind which, sluice_dtype dtype, const update_case *c)
{
    float *first[4] = {0};
    const slc_compress_shape shape = shape_of(c);
    char *packets = packets_create(&shape);
    double *exchanged = unpack(&shape, packets);
    void *gradient = test_uniform_typed(dtype, c->count, -0.1f, 0.1f, 9);
    double *wide = test_widen_typed(dtype, c->count, gradient);
    TEST_EACH_WAY_OF(way, c->count)
    for (uint32_t threads = 1; threads <= (test_on_gpu() ? 1 : 2); threads++) {
        sluice_stream stream = test_stream(threads);
        tensor before = tensor_create(c->count), t = tensor_create(c->count);
        slc_zero_one_range range = range_of(c, &t);
        assert_true(update(which, &stream, &shape, packets, dtype, gradient, &range));
        if (!first[0]) check_against_float64(which, c, &before, &t, exchanged, wide);
        test_same_bits("value", c->count, t.value, &first[0]);
        test_same_bits("exp_avg", c->count, t.exp_avg, &first[1]);
        test_same_bits("accumulator", c->count, t.accumulator, &first[2]);
        test_same_bits("kept", c->count, t.kept, &first[3]);
        tensor_destroy(&before), tensor_destroy(&t);
        slc_stream_destroy(&stream);
    }
    for (int i = 0; i < 4; i++) test_release(first[i]);
    test_release(packets), test_release(exchanged), test_release(gradient), test_release(wide);
}

static void agrees_with_float64(void **state)
{
    (void)state;
    const uint64_t counts[] = {1, 8, 15, 16, 17, 197, 1003, 50021};
    for (size_t i = 0; i < TEST_COUNT_OF(counts); i++)
        for (uint32_t flags = 0; flags < 64; flags += counts[i] < 1000 ? 1 : 5) {
            const update_case c = {.count = counts[i],
                                   .scale_elements = flags % 3 * 64,
                                   .ranks = 1 + flags % 5,
                                   .kept = flags & 1,
                                   .no_decay = flags & 2,
                                   .decay_moves = flags & 4,
                                   .mask = true,
                                   .begins = flags & 16,
                                   .rounds = flags & 32,
                                   .clears = flags & 32};
            for (kind which = GRADIENT; which < UPDATES; which++)
                check_case(which, flags & 8 ? SLUICE_BF16 : SLUICE_FP32, &c);
        }
}

/* The one element has a variance of 0, with which it moves far without a mask. */
static void no_mask_is_no_mask(void **state)
{
    (void)state;
    for (kind which = GRADIENT; which < UPDATES; which++)
        check_case(which, SLUICE_FP32, &(update_case){.count = 1, .ranks = 2, .kept = true});
}

static void what_is_not_finite_changes_nothing(void **state)
{
    (void)state;
    enum { COUNT = 2003, BAD = 1234 };
    const float bad[] = {INFINITY, -INFINITY, NAN, 3e38f};
    const update_case c = {.count = COUNT, .ranks = 3, .kept = true, .mask = true, .rounds = true};
    const slc_compress_shape shape = shape_of(&c);
    TEST_EACH_WAY(way)
    for (size_t b = 0; b < TEST_COUNT_OF(bad); b++)
        for (kind which = GRADIENT; which < UPDATES; which++) {
            sluice_stream stream = test_stream(1);
            tensor before = tensor_create(COUNT), t = tensor_create(COUNT), ideal = tensor_create(COUNT);
            float *gradient = test_uniform_floats(COUNT, -0.1f, 0.1f, 9);
            char *packets = packets_create(&shape);
            slc_zero_one_range range = range_of(&c, &t), ideal_range = range_of(&c, &ideal);
            assert_true(update(which, &stream, &shape, packets, SLUICE_FP32, gradient, &ideal_range));
            gradient[BAD] = bad[b];
            if (isfinite(bad[b])) t.exp_avg[BAD] = before.exp_avg[BAD] = 3.4e38f;
            if (isfinite(bad[b])) t.exp_avg_sq[BAD] = before.exp_avg_sq[BAD] = 1e-30f;
            ((float *)(void *)(packets + stride_of(&shape)))[0] = INFINITY;
            assert_false(update(which, &stream, &shape, packets, SLUICE_FP32, gradient, &range));
            uint64_t chunk = slc_compress_chunk(&shape);
            for (uint64_t i = 0; i < COUNT; i++) {
                bool kept = which == LOCAL ? i == BAD : i / chunk == 1;
                const tensor *want = kept ? &before : &ideal;
                assert_true(t.value[i] == want->value[i] && t.exp_avg[i] == want->exp_avg[i]);
                assert_true(t.accumulator[i] == want->accumulator[i] && t.kept[i] == want->kept[i]);
            }
            tensor_destroy(&before), tensor_destroy(&t), tensor_destroy(&ideal);
            test_release(gradient), test_release(packets);
            slc_stream_destroy(&stream);
        }
}

/* Checks pass 1 with u D; the bits of `arrays` say which arrays there are: 1 momentum, 2 accumulator, 4 value, 8
 * variance. */
static void check_moves(uint64_t count, uint32_t arrays)
{
    const slc_compress_shape shape = {.count = count, .ranks = 3};
    const double rate = -2e-3, decay = 1e-2, rescale = 1.7, epsilon = 1e-6;
    uint64_t all = 3 * slc_compress_chunk(&shape);
    tensor t = tensor_create(count);
    float *gradient = test_uniform_floats(count, -0.1f, 0.1f, 9), *first = NULL;
    char *packets = (char *)test_floats(3 * stride_of(&shape) / sizeof(float));
    double *x = test_doubles(all);
    for (uint64_t i = 0; i < count; i++) {
        double u = arrays & 2 ? (double)t.accumulator[i] : 0, w = arrays & 4 ? (double)t.value[i] : 0;
        x[i] = rate * 0.1 * 0.7 * (double)gradient[i] + (arrays & 1 ? rate * 0.9 * (double)t.exp_avg[i] : 0);
        if (arrays & 8) x[i] += (u - decay * w) * (rescale * sqrt((double)t.exp_avg_sq[i]) + epsilon);
    }
    const slc_compress_input input = {.gradient_dtype = SLUICE_FP32,
                                      .momentum_dtype = SLUICE_FP32,
                                      .gradient = gradient,
                                      .momentum = arrays & 1 ? t.exp_avg : NULL,
                                      .gradient_factor = 0.7,
                                      .factor = rate * 0.9,
                                      .rest = rate * 0.1,
                                      .moves = {.exp_avg_sq = arrays & 8 ? t.exp_avg_sq : NULL,
                                                .accumulator = arrays & 2 ? t.accumulator : NULL,
                                                .value = arrays & 4 ? t.value : NULL,
                                                .decay = decay,
                                                .rescale = rescale,
                                                .epsilon = epsilon}};
    TEST_EACH_WAY_OF(way, count)
    for (uint32_t threads = 1; threads <= (test_on_gpu() ? 1 : 2); threads++) {
        sluice_stream stream = test_stream(threads);
        float *scale = test_zeros(3 * sizeof *scale), *sum = test_zeros(all * sizeof *sum);
        int64_t *bins = test_bytes(SLC_NORM_BINS * sizeof *bins);
        assert_int_equal(
            slc_compress_worker(&stream, &shape, &input, &(slc_residue){sum, scale, bins}, packets, stride_of(&shape)),
            SLUICE_OK);
        test_release(scale), test_release(bins);
        check_array("b", all, sum, x);
        test_same_bits("b", all, sum, &first);
        test_release(sum);
        slc_stream_destroy(&stream);
    }
    test_release(first), test_release(gradient), test_release(packets), test_release(x);
    tensor_destroy(&t);
}

static void moves_are_in_units_of_the_momentum(void **state)
{
    (void)state;
    const uint64_t counts[] = {1, 7, 100, 20011};
    for (size_t i = 0; i < TEST_COUNT_OF(counts); i++)
        for (uint32_t arrays = 0; arrays < 16; arrays++) check_moves(counts[i], arrays);
}

static void wrong_arguments(void **state)
{
    (void)state;
    const update_case c = {.count = 1000, .ranks = 2};
    slc_compress_shape shape = shape_of(&c);
    sluice_stream stream = test_stream(1);
    tensor t = tensor_create(c.count);
    char *packets = packets_create(&shape);
    bool finite = true;
    slc_zero_one_range range = range_of(&c, &t);
    slc_compress_results results = {.shape = &shape, .packets = packets, .stride = stride_of(&shape)};
    const uint64_t pieces[][2] = {{8, 992}, {0, 100}, {16, 1000}, {1008, 16}};
    for (size_t i = 0; i < TEST_COUNT_OF(pieces); i++) {
        results.first = pieces[i][0], results.count = pieces[i][1];
        assert_int_equal(slc_zero_one_gradient(&stream, &settings, &results, &range, &finite), SLUICE_ERR_ARGUMENT);
        assert_int_equal(
            slc_zero_one_exchanged(&stream, &settings, momentum_factor, value_factor, &results, &range, &finite),
            SLUICE_ERR_ARGUMENT);
    }
    range.count = results.count = 992;
    results.first = 0;
    assert_int_equal(slc_zero_one_gradient(&stream, &settings, &results, &range, &finite), SLUICE_ERR_ARGUMENT);
    shape.count = range.count = results.count = 0;
    assert_int_equal(slc_zero_one_gradient(&stream, &settings, &results, &range, &finite), SLUICE_OK);
    assert_int_equal(slc_zero_one_local(&stream, &settings, SLUICE_FP32, packets, &range), SLUICE_OK);
    test_release(packets);
    tensor_destroy(&t);
    slc_stream_destroy(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_float64),
        cmocka_unit_test(no_mask_is_no_mask),
        cmocka_unit_test(what_is_not_finite_changes_nothing),
        cmocka_unit_test(moves_are_in_units_of_the_momentum),
        cmocka_unit_test(wrong_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
