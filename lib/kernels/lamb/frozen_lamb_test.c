/* The two ways through a frozen LAMB step must agree with float64, from gradients of either type and from packets of
 * any shape, offset and distance, with equal bits for every instruction set, on a GPU, for every thread count and cut
 * into ranges. */
#include "lib/kernels/compress/flat.h"
#include "tests/support/kernels/arrays.h"
#include "lib/kernels/lamb/frozen_lamb.h"

static const uint64_t counts[] = {1, 15, 197, 40003};

static const slc_frozen_lamb_settings settings = {.adam = {.learning_rate = 3e-2,
                                                           .beta1 = 0.9,
                                                           .beta2 = 0.95,
                                                           .epsilon = 1e-6,
                                                           .weight_decay = 0.1,
                                                           .gradient_factor = 0.7,
                                                           .bias_correction1 = 0.6,
                                                           .bias_correction2 = 0.3},
                                                  .fresh_correction = 0.4};
static const double coefficient = 0.8;

/* ---- A parameter, for the kernels and in float64 ---- */

typedef struct {
    slc_frozen_lamb_range range;
    double *value, *momentum, *exp_avg_sq, *fresh, *update, numbers[3]; /* the expected values */
} parameter;

/* Makes a parameter in which some elements have no variance. */
static parameter parameter_create(uint64_t count, bool mask, bool counts_masked, bool no_decay, bool first)
{
    float *v = test_uniform_floats(count, 1e-4f, 1e-2f, 3);
    for (uint64_t i = 4; i < count; i += 9) v[i] = 0;
    parameter p = {.range = {.count = count,
                             .value = test_uniform_floats(count, -1, 1, 1),
                             .momentum = test_gradients(SLUICE_FP32, count, 2),
                             .fresh = test_uniform_floats(count, 1e-4f, 1e-2f, 4),
                             .exp_avg_sq = v,
                             .rounded = count % 2 ? test_floats(count) : NULL,
                             .no_decay = no_decay,
                             .mask = mask,
                             .counts_masked = counts_masked}};
    p.range.fresh_last = first ? v : p.range.fresh;
    p.value = test_widen(count, p.range.value), p.momentum = test_widen(count, p.range.momentum);
    p.exp_avg_sq = test_widen(count, v), p.fresh = test_widen(count, p.range.fresh_last);
    p.update = test_doubles(count);
    return p;
}

static void parameter_destroy(parameter *p)
{
    test_release(p->range.value), test_release(p->range.momentum), test_release(p->range.fresh),
        test_release(p->range.rounded);
    test_release((float *)p->range.exp_avg_sq);
    test_release(p->value), test_release(p->momentum), test_release(p->exp_avg_sq), test_release(p->fresh),
        test_release(p->update);
}

static void work_out(parameter *p, const double *received)
{
    slc_frozen_lamb_ref(&settings, &p->range, received, p->value, p->exp_avg_sq, p->momentum, p->fresh, p->update,
                        p->numbers);
    for (uint64_t i = 0; i < p->range.count; i++)
        p->value[i] -= settings.adam.learning_rate * coefficient * p->update[i];
}

/* The numbers that the kernels sum up and read. They lie in memory that a GPU reads in place. */
typedef struct {
    int64_t move[SLC_NORM_BINS], update[SLC_NORM_BINS], ratio;
    double coefficient;
} numbers;

static numbers *numbers_create(void)
{
    numbers *n = test_zeros(sizeof *n);
    n->coefficient = coefficient;
    return n;
}

static void check_numbers(const numbers *n, const double want[3])
{
    double got[3] = {slc_norm_result(n->move), slc_norm_result(n->update)};
    memcpy(&got[2], &n->ratio, sizeof n->ratio);
    for (int i = 0; i < 3; i++)
        if (!(fabs(got[i] - want[i]) <= 2e-6 * want[i])) fail_msg("number %d: %.9g, not %.9g", i, got[i], want[i]);
}

static void check_arrays(const parameter *p)
{
    const uint64_t count = p->range.count;
    test_close("value", count, p->range.value, p->value, 1e-6);
    test_close("momentum", count, p->range.momentum, p->momentum, 1e-6);
    test_close("fresh", count, p->range.fresh, p->fresh, 2e-6);
    for (uint64_t i = 0; p->range.rounded && i < count; i++)
        assert_int_equal(((uint16_t *)p->range.rounded)[i], sluice_bf16_from_float(p->range.value[i]));
}

static void keep_bits(const parameter *p, const numbers *n, float *first[3], numbers *first_numbers)
{
    if (!first[0]) *first_numbers = *n;
    assert_memory_equal(n, first_numbers, sizeof *n);
    test_same_bits("value", p->range.count, p->range.value, &first[0]);
    test_same_bits("momentum", p->range.count, p->range.momentum, &first[1]);
    test_same_bits("fresh", p->range.count, p->range.fresh, &first[2]);
}

/* ---- From gradients ---- */

static slc_frozen_lamb_range piece_of(const slc_frozen_lamb_range *all, uint64_t at, uint64_t piece)
{
    slc_frozen_lamb_range r = *all;
    r.count = all->count - at < piece ? all->count - at : piece;
    r.value += at, r.momentum += at, r.fresh += at, r.exp_avg_sq += at, r.fresh_last += at;
    if (r.rounded) r.rounded = (uint16_t *)r.rounded + at;
    return r;
}

static void step_in_pieces(parameter *p, sluice_stream *stream, sluice_dtype dtype, const char *gradient,
                           uint64_t piece, numbers *n)
{
    const slc_frozen_lamb_sums sums = {n->move, n->update, &n->ratio};
    const uint64_t count = p->range.count, bytes = sluice_dtype_bytes(dtype);
    for (int updates = 0; updates < 2; updates++)
        for (uint64_t at = 0; at < count; at += piece) {
            slc_frozen_lamb_range r = piece_of(&p->range, at, piece);
            const void *g = gradient + at * bytes;
            assert_int_equal(updates ? slc_frozen_lamb_update(stream, &settings, dtype, g, &r, &n->coefficient)
                                     : slc_frozen_lamb_measure(stream, &settings, dtype, g, &r, &sums),
                             SLUICE_OK);
        }
}

static void check_gradients(uint64_t count, sluice_dtype dtype, int flags)
{
    const uint64_t pieces[] = {UINT64_MAX / 2, 4096, 16};
    char *gradient = test_gradients(dtype, count, 7);
    double *wide = test_widen_typed(dtype, count, gradient);
    float *first[3] = {0};
    numbers first_numbers;
    TEST_EACH_WAY_OF(way, count)
    for (uint32_t i = 0; i < 3; i++) {
        if (test_on_gpu() && count / pieces[i] > 100) continue; /* hundreds of blocks with little to do */
        parameter p = parameter_create(count, flags & 1, flags & 2, flags & 4, flags & 8);
        sluice_stream stream = test_stream(1 + i);
        numbers *n = numbers_create();
        double *m = test_doubles(count);
        for (uint64_t k = 0; k < count; k++) m[k] = 0.9 * p.momentum[k] + (1 - 0.9) * 0.7 * wide[k];
        work_out(&p, m);
        step_in_pieces(&p, &stream, dtype, gradient, pieces[i], n);
        check_numbers(n, p.numbers);
        check_arrays(&p);
        keep_bits(&p, n, first, &first_numbers);
        test_release(m), test_release(n);
        slc_stream_destroy(&stream);
        parameter_destroy(&p);
    }
    for (int i = 0; i < 3; i++) test_release(first[i]);
    test_release(gradient), test_release(wide);
}

static void gradients_agree_with_float64(void **state)
{
    (void)state;
    for (size_t i = 0; i < TEST_COUNT_OF(counts); i++)
        for (int flags = 0; flags<16; flags += counts[i]> 1000 ? 5 : 1) TEST_EACH_DTYPE(dtype)
    check_gradients(counts[i], dtype, flags);
}

/* ---- From packets ---- */

/* A possible result of an exchange: any bits, any finite scales. */
typedef struct {
    slc_compress_shape shape;
    uint64_t stride;
    unsigned char *packets;
} results;

static results results_create(uint64_t count, uint32_t ranks, uint64_t scale_elements, uint64_t seed)
{
    results r = {.shape = {count, scale_elements, ranks}};
    const uint64_t scales = slc_compress_scales(&r.shape), bytes = slc_compress_packet_bytes(&r.shape);
    r.stride = bytes + 29; /* nothing is aligned */
    r.packets = test_bytes(ranks * r.stride + 1);
    for (uint64_t i = 0; i < ranks * r.stride; i++) r.packets[i] = (unsigned char)test_random(&seed);
    for (uint32_t k = 0; k < ranks; k++)
        for (uint64_t s = 0; s < scales; s++) {
            float scale = test_uniform(&seed, 0.01f, 0.1f);
            memcpy(r.packets + k * r.stride + s * sizeof scale, &scale, sizeof scale);
        }
    return r;
}

static double result_at(const results *r, uint64_t i)
{
    const uint64_t chunk = slc_compress_chunk(&r->shape), k = i / chunk, at = i % chunk;
    const unsigned char *packet = r->packets + k * r->stride;
    float scale;
    memcpy(&scale, packet + (r->shape.scale_elements ? at / r->shape.scale_elements : 0) * sizeof scale, sizeof scale);
    packet += slc_compress_scales(&r->shape) * sizeof scale;
    return packet[at / 8] >> (7 - at % 8) & 1 ? (double)scale : -(double)scale;
}

static void check_results(const results *r, uint64_t offset, uint64_t count, int flags)
{
    const double divisor = 1.7;
    float *first[3] = {0};
    numbers first_numbers;
    TEST_EACH_WAY_OF(way, count)
    for (uint32_t threads = 1; threads <= (test_on_gpu() ? 1 : 3); threads++) {
        parameter p = parameter_create(count, flags & 1, flags & 2, flags & 4, flags & 8);
        sluice_stream stream = test_stream(threads);
        numbers *n = numbers_create();
        double *m = test_doubles(count);
        for (uint64_t k = 0; k < count; k++) m[k] = result_at(r, offset + k) / divisor;
        work_out(&p, m);
        const slc_compress_results received = {&r->shape, r->packets, r->stride, offset, count};
        assert_int_equal(slc_frozen_lamb_receive(&stream, &settings, &received, divisor, &p.range,
                                                 &(slc_frozen_lamb_sums){n->move, n->update, &n->ratio}),
                         SLUICE_OK);
        check_numbers(n, p.numbers);
        for (uint64_t k = 0; k < count; k++) assert_true(p.range.momentum[k] == (float)p.momentum[k]);
        assert_int_equal(slc_frozen_lamb_move(&stream, &settings, &p.range, &n->coefficient), SLUICE_OK);
        check_arrays(&p);
        keep_bits(&p, n, first, &first_numbers);
        test_release(m), test_release(n);
        slc_stream_destroy(&stream);
        parameter_destroy(&p);
    }
    for (int i = 0; i < 3; i++) test_release(first[i]);
}

static void packets_agree_with_float64(void **state)
{
    (void)state;
    const uint64_t offsets[] = {0, 13, 1000};
    const uint32_t ranks[] = {1, 2, 3, 5};
    int flags = 0;
    for (size_t i = 0; i < TEST_COUNT_OF(counts); i++)
        for (size_t r = 0; r < TEST_COUNT_OF(ranks); r++)
            for (uint64_t block = 0; block <= 64; block += 64)
                for (size_t o = 0; o < TEST_COUNT_OF(offsets); o++) {
                    if (counts[i] > 1000 && (r + o + block / 64) % 3) continue; /* long ones serve to test threads */
                    results made = results_create(offsets[o] + counts[i] + 5, ranks[r], block, 100 * i + o);
                    check_results(&made, offsets[o], counts[i], flags++ % 16);
                    test_release(made.packets);
                }
}

/* ---- A flat array ---- */

/* Each term has been rounded three times: its factor, its product, and with the other term the sum. The terms may
 * nearly cancel, so it is they that the errors are held against. */
static void is_mean(float got, double momentum, double gradient)
{
    const double bar = 3 * 0x1p-24 * (1 + 1e-6) * (fabs(momentum) + fabs(gradient));
    if (!(fabs((double)got - (momentum + gradient)) <= bar))
        fail_msg("flat: %.9g, not %.9g", (double)got, momentum + gradient);
}

static void flat_arrays(void **state)
{
    (void)state;
    TEST_EACH_WAY(way)
    for (size_t i = 0; i < TEST_COUNT_OF(counts); i++) {
        sluice_stream stream = test_stream(2);
        const uint64_t count = counts[i], first = count / 2 / 8 * 8;
        results r = results_create(count, 3, 0, i);
        float *out = test_floats(count + 4);
        slc_compress_results read = {&r.shape, r.packets, r.stride, first, count - first};
        assert_int_equal(slc_flat_read(&stream, &read, NULL, out), SLUICE_OK);
        for (uint64_t k = first; k < count; k++) assert_true((double)out[k - first] == result_at(&r, k));
        read.first = 4, read.count = 1;
        if (count > 8) assert_int_equal(slc_flat_read(&stream, &read, NULL, out), SLUICE_ERR_ARGUMENT);
        read.first = 0, read.count = count + 1;
        assert_int_equal(slc_flat_read(&stream, &read, NULL, out), SLUICE_ERR_ARGUMENT);

        TEST_EACH_DTYPE(gradient)
        TEST_EACH_DTYPE(momentum)
        {
            void *g = test_uniform_typed(gradient, count, -1, 1, 5), *m = test_uniform_typed(momentum, count, -1, 1, 6);
            double *want = test_widen_typed(gradient, count, g), *last = test_widen_typed(momentum, count, m);
            const slc_compress_input input = {.gradient_dtype = gradient,
                                              .momentum_dtype = momentum,
                                              .gradient = g,
                                              .momentum = m,
                                              .gradient_factor = 0.5,
                                              .factor = 0.9,
                                              .rest = 0.1};
            out[count + 3] = 42;
            assert_int_equal(slc_flat_write(&stream, count, &input, out + 3), SLUICE_OK);
            for (uint64_t k = 0; k < count; k++) is_mean(out[3 + k], 0.9 * last[k], 0.1 * 0.5 * want[k]);
            assert_true(out[count + 3] == 42);
            test_release(g), test_release(m), test_release(want), test_release(last);
        }
        test_release(out), test_release(r.packets);
        slc_stream_destroy(&stream);
    }
}

/* ---- Words ---- */

/* A factor in the words must count as one in the settings; a skipped step must change and measure nothing, but after a
 * failed exchange the fresh variance begins. */
static void words_are_heeded(void **state)
{
    (void)state;
    enum { COUNT = 997 };
    for (uint32_t skip = 0; skip <= SLC_EXCHANGE_FAILED; skip++)
        for (int received = 0; received < 2; received++) {
            float *first[3] = {0};
            numbers first_numbers;
            results made = results_create(COUNT, 2, 0, 9);
            float *gradient = test_uniform_floats(COUNT, -0.1f, 0.1f, 7);
            TEST_EACH_WAY(way)
            for (int told = 0; told < 2; told++) {
                sluice_stream stream = test_stream(1);
                parameter p = parameter_create(COUNT, true, false, false, true);
                numbers *n = numbers_create();
                sluice_step_words *words = test_bytes(sizeof *words);
                *words = (sluice_step_words){settings.adam.gradient_factor, skip};
                slc_frozen_lamb_settings own = settings;
                if (told) own.adam.words = words, own.adam.gradient_factor = 3;
                const slc_frozen_lamb_sums sums = {n->move, n->update, &n->ratio};
                const slc_compress_results from = {&made.shape, made.packets, made.stride, 0, COUNT};
                if (!told && skip && received && skip == SLC_EXCHANGE_FAILED)
                    memcpy(p.range.fresh, p.range.exp_avg_sq, COUNT * sizeof(float));
                if (received && (told || !skip)) {
                    assert_false(slc_frozen_lamb_receive(&stream, &own, &from, 1.7, &p.range, &sums));
                    assert_false(slc_frozen_lamb_move(&stream, &own, &p.range, &n->coefficient));
                } else if (told || !skip) {
                    assert_false(slc_frozen_lamb_measure(&stream, &own, SLUICE_FP32, gradient, &p.range, &sums));
                    assert_false(
                        slc_frozen_lamb_update(&stream, &own, SLUICE_FP32, gradient, &p.range, &n->coefficient));
                }
                assert_int_equal(n->ratio == 0, skip != 0);
                keep_bits(&p, n, first, &first_numbers);
                test_release(n), test_release(words);
                slc_stream_destroy(&stream);
                parameter_destroy(&p);
            }
            for (int i = 0; i < 3; i++) test_release(first[i]);
            test_release(gradient), test_release(made.packets);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_agree_with_float64),
        cmocka_unit_test(packets_agree_with_float64),
        cmocka_unit_test(flat_arrays),
        cmocka_unit_test(words_are_heeded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
