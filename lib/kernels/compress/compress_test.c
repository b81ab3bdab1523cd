/* Every stage against float64, started from the state that the fast one has: bits equal but where the number is within
 * 1e-6 of what it was made of; equal bits for every instruction set, thread count and cut; what is not finite. */
#include "lib/kernels/compress/compress.h"
#include "lib/kernels/compress/compress_ref.h"
#include "lib/kernels/kernel_test.h"

enum { MOST_RANKS = 8, STEPS = 3 };
static const double factor = 0.9, rest = 1 - 0.9, clip = 0.7;

/* All ranks of an exchange. */
typedef struct {
    slc_compress_shape shape;
    sluice_dtype gradient_dtype, momentum_dtype;
    uint64_t chunk, scales, stride;
    slc_stream stream;
    slc_residue worker[MOST_RANKS], server[MOST_RANKS];
    void *gradient[MOST_RANKS], *momentum;
    char *packets[MOST_RANKS], *result;
} exchange;

static void *zeroed(uint64_t bytes)
{
    char *x = aligned_alloc(64, (bytes + 127) / 64 * 64);
    assert_non_null(x);
    memset(x, 0, (bytes + 127) / 64 * 64);
    return x;
}

static slc_residue residue_create(uint64_t sums, uint64_t scales)
{
    return (slc_residue){zeroed(sums * sizeof(float)), zeroed(scales * sizeof(float))};
}

static void residue_destroy(slc_residue *residue)
{
    free(residue->sum), free(residue->scale);
}

static exchange exchange_create(uint32_t ranks, uint64_t count, uint64_t scale_elements, uint32_t threads,
                                sluice_dtype gradient, sluice_dtype momentum)
{
    exchange e = {.shape = {count, scale_elements, ranks},
                  .gradient_dtype = gradient,
                  .momentum_dtype = momentum,
                  .stream = test_stream(threads)};
    assert_int_equal(slc_compress_check(&e.shape), SLUICE_OK);
    e.chunk = slc_compress_chunk(&e.shape), e.scales = slc_compress_scales(&e.shape);
    e.stride = slc_compress_stride(&e.shape);
    for (uint32_t r = 0; r < ranks; r++) {
        e.worker[r] = residue_create(ranks * e.chunk, ranks * e.scales);
        e.server[r] = residue_create(e.chunk, e.scales);
        e.packets[r] = zeroed(ranks * e.stride);
    }
    e.result = zeroed(ranks * e.stride);
    e.momentum = test_uniform_typed(momentum, count, -0.02f, 0.02f, count + 5);
    return e;
}

static void exchange_destroy(exchange *e)
{
    for (uint32_t r = 0; r < e->shape.ranks; r++)
        residue_destroy(&e->worker[r]), residue_destroy(&e->server[r]), free(e->packets[r]);
    free(e->result), free(e->momentum);
    slc_stream_destroy(&e->stream);
}

static void draw_gradients(exchange *e, uint64_t seed)
{
    for (uint32_t r = 0; r < e->shape.ranks; r++)
        e->gradient[r] = test_uniform_typed(e->gradient_dtype, e->shape.count, -0.1f, 0.1f, 1000 * seed + r);
}

static void free_gradients(exchange *e)
{
    for (uint32_t r = 0; r < e->shape.ranks; r++) free(e->gradient[r]);
}

static void compress(exchange *e, uint32_t rank)
{
    slc_compress_input input = {.gradient_dtype = e->gradient_dtype,
                                .momentum_dtype = e->momentum_dtype,
                                .gradient = e->gradient[rank],
                                .momentum = e->momentum,
                                .gradient_factor = clip,
                                .factor = factor,
                                .rest = rest};
    assert_int_equal(slc_compress_worker(&e->stream, &e->shape, &input, &e->worker[rank], e->packets[rank], e->stride),
                     SLUICE_OK);
}

/* In pieces of about `piece` elements, the last ones first. */
static void serve(exchange *e, uint32_t chunk, uint64_t piece)
{
    const void *packets[MOST_RANKS];
    int64_t bins[SLC_NORM_BINS] = {0};
    char *result = e->result + chunk * e->stride;
    for (uint32_t r = 0; r < e->shape.ranks; r++) packets[r] = e->packets[r] + chunk * e->stride;
    uint64_t unit = e->shape.scale_elements ? e->shape.scale_elements : 64;
    piece = (piece + unit - 1) / unit * unit;
    for (uint64_t at = (e->chunk + piece - 1) / piece * piece; at > 0; at -= piece) {
        uint64_t first = at - piece, count = e->chunk - first < piece ? e->chunk - first : piece;
        assert_int_equal(
            slc_compress_server(&e->stream, &e->shape, packets, first, count, &e->server[chunk], bins, result),
            SLUICE_OK);
    }
    slc_compress_server_end(&e->shape, &e->server[chunk], bins, result);
}

/* ---- The oracle ---- */

static double sign_at(const exchange *e, const char *packet, uint64_t i)
{
    return (uint8_t)packet[e->scales * sizeof(float) + i / 8] >> (7 - i % 8) & 1 ? 1 : -1;
}

static float scale_at(const exchange *e, const char *packet, uint64_t i)
{
    float scale;
    memcpy(&scale, packet + (e->shape.scale_elements ? i / e->shape.scale_elements : 0) * sizeof scale, sizeof scale);
    return scale;
}

static double *errors_of(const exchange *e, const slc_residue *residue, uint32_t chunks)
{
    double *error = test_doubles(chunks * e->chunk);
    for (uint64_t i = 0; i < chunks * e->chunk; i++) {
        uint64_t chunk = i / e->chunk, at = i % e->chunk;
        uint64_t block = e->shape.scale_elements ? at / e->shape.scale_elements : 0;
        double sum = (double)residue->sum[i], scale = (double)residue->scale[chunk * e->scales + block];
        error[i] = isfinite(scale) ? sum - scale * (sum < 0 ? -1 : 1) : 0;
    }
    return error;
}

static void check_signs(const exchange *e, const char *what, const char *packet, const double *sum, const double *size,
                        const float *fast)
{
    for (uint64_t i = 0; i < e->chunk; i++) {
        double want = sum[i] < 0 ? -1 : 1;
        if (sign_at(e, packet, i) != want && fabs(sum[i]) > 1e-6 * size[i])
            fail_msg("%s: sign of element %llu of %llu, %g", what, (unsigned long long)i, (unsigned long long)e->chunk,
                     sum[i]);
        if (fabs((double)fast[i] - sum[i]) > 1e-6 * size[i])
            fail_msg("%s: element %llu is %g, not %g", what, (unsigned long long)i, (double)fast[i], sum[i]);
    }
}

static void check_scales(const char *what, uint64_t count, const float *got, const double *want)
{
    for (uint64_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - want[i]) <= 1e-6 * fabs(want[i])))
            fail_msg("%s: scale %g, not %g", what, (double)got[i], want[i]);
}

static void compress_and_check(exchange *e, uint32_t rank)
{
    uint64_t count = e->shape.count, all = e->shape.ranks * e->chunk;
    double *error = errors_of(e, &e->worker[rank], e->shape.ranks), *sum = test_doubles(all);
    double *x = test_doubles(all), *size = test_doubles(all), *scale = test_doubles(e->shape.ranks * e->scales);
    double *g = test_widen_typed(e->gradient_dtype, count, e->gradient[rank]);
    double *m = test_widen_typed(e->momentum_dtype, count, e->momentum);
    for (uint64_t i = 0; i < count; i++) x[i] = factor * m[i] + rest * clip * g[i];
    for (uint64_t i = 0; i < all; i++)
        size[i] = (i < count ? fabs(factor * m[i]) + fabs(rest * clip * g[i]) : 0) + fabs(error[i]) +
                  (double)e->worker[rank].scale[0];
    slc_compress_worker_ref(&e->shape, x, error, sum, scale);
    compress(e, rank);
    check_scales("worker", e->shape.ranks * e->scales, e->worker[rank].scale, scale);
    for (uint32_t k = 0; k < e->shape.ranks; k++) {
        const char *packet = e->packets[rank] + k * e->stride;
        check_signs(e, "worker", packet, sum + k * e->chunk, size + k * e->chunk, e->worker[rank].sum + k * e->chunk);
        if (count) assert_memory_equal(packet, e->worker[rank].scale + k * e->scales, e->scales * sizeof(float));
    }
    free(error), free(sum), free(x), free(size), free(scale), free(g), free(m);
}

static void serve_and_check(exchange *e, uint32_t chunk, uint64_t piece)
{
    const double *signs[MOST_RANKS], *scales[MOST_RANKS];
    double *error = errors_of(e, &e->server[chunk], 1), *sum = test_doubles(e->chunk), *size = test_doubles(e->chunk);
    double *scale = test_doubles(e->scales);
    for (uint64_t i = 0; i < e->chunk; i++) size[i] = fabs(error[i]);
    for (uint32_t r = 0; r < e->shape.ranks; r++) {
        const char *packet = e->packets[r] + chunk * e->stride;
        double *sign = test_doubles(e->chunk);
        for (uint64_t i = 0; i < e->chunk; i++) {
            sign[i] = sign_at(e, packet, i);
            size[i] += (double)scale_at(e, packet, i);
        }
        signs[r] = sign, scales[r] = test_widen(e->scales, (const float *)(const void *)packet);
    }
    slc_compress_server_ref(&e->shape, signs, scales, error, sum, scale);
    serve(e, chunk, piece);
    check_scales("server", e->chunk ? e->scales : 0, e->server[chunk].scale, scale);
    check_signs(e, "server", e->result + chunk * e->stride, sum, size, e->server[chunk].sum);
    for (uint32_t r = 0; r < e->shape.ranks; r++)
        free((double *)(uintptr_t)signs[r]), free((double *)(uintptr_t)scales[r]);
    free(error), free(sum), free(size), free(scale);
}

/* Frozen variance (0 at every seventh element), values, their copies in bf16. */
typedef struct {
    float *value, *variance;
    uint16_t *rounded;
} parameter;

static parameter parameter_create(uint64_t count)
{
    parameter p = {test_uniform_floats(count, -1, 1, 3), test_uniform_floats(count, 1e-4f, 1e-2f, 4),
                   (uint16_t *)test_floats(count)};
    for (uint64_t i = 0; i < count; i += 7) p.variance[i] = 0;
    return p;
}

static void parameter_destroy(parameter *p)
{
    free(p->value), free(p->variance), free(p->rounded);
}

static const slc_adamw_settings settings = {.learning_rate = 3e-3,
                                            .beta1 = 0.9,
                                            .beta2 = 0.999,
                                            .epsilon = 1e-8,
                                            .weight_decay = 0.1,
                                            .gradient_factor = 0.7,
                                            .bias_correction1 = 0.6,
                                            .bias_correction2 = 0.3};

static slc_frozen_range range_of(const exchange *e, const parameter *p, void *momentum, bool mask)
{
    return (slc_frozen_range){.count = e->shape.count,
                              .value = p->value,
                              .momentum = momentum,
                              .momentum_dtype = e->momentum_dtype,
                              .exp_avg_sq = p->variance,
                              .rounded = p->rounded,
                              .mask = mask};
}

/* m64: what the momentum becomes, before the mask and before it is rounded. */
static void check_update(const exchange *e, const parameter *p, const void *momentum, const float *before,
                         const double *m64, bool mask, double bar)
{
    float *got = test_floats_of(e->momentum_dtype, e->shape.count, momentum);
    for (uint64_t i = 0; i < e->shape.count; i++) {
        double v = (double)p->variance[i], m = mask && v == 0 ? 0 : m64[i], old = (double)before[i];
        double lost = e->momentum_dtype == SLUICE_BF16 ? 0x1p-8 : bar;
        assert_true(fabs((double)got[i] - m) <= lost * fabs(m) + bar * 0.01);
        double move = settings.learning_rate / settings.bias_correction1 * (double)got[i] /
                      (sqrt(v) / sqrt(settings.bias_correction2) + settings.epsilon);
        double want = old - settings.learning_rate * settings.weight_decay * old - move;
        assert_true(fabs((double)p->value[i] - want) <= 1e-6 * (fabs(old) + fabs(want)));
        assert_int_equal(p->rounded[i], sluice_bf16_from_float(p->value[i]));
    }
    free(got);
}

/* In two pieces, the second one first. */
static void apply_and_check(exchange *e, parameter *p, bool mask)
{
    uint64_t count = e->shape.count, cut = count / 32 * 16;
    float *before = test_copy(count, p->value);
    double *m64 = test_doubles(count);
    for (uint64_t i = 0; i < count; i++) {
        const char *packet = e->result + i / e->chunk * e->stride;
        m64[i] = sign_at(e, packet, i % e->chunk) * (double)scale_at(e, packet, i % e->chunk);
    }
    slc_frozen_range range = range_of(e, p, e->momentum, mask);
    bool finite = true;
    for (int piece = 1; piece >= 0; piece--)
        assert_int_equal(slc_compress_apply(&e->stream, &settings, &e->shape, e->result, e->stride, piece ? cut : 0,
                                            piece ? count - cut : cut, &range, &finite),
                         SLUICE_OK);
    assert_true(finite);
    check_update(e, p, e->momentum, before, m64, mask, 0);
    free(before), free(m64);
}

/* All that a step leaves, in one row of floats. */
static void check_same_bits(const exchange *e, const parameter *p, float **first)
{
    uint64_t n = e->shape.ranks, packets = n * e->stride / sizeof(float), all = n * e->chunk, count = e->shape.count;
    float *row = zeroed(((n + 1) * (packets + all) + 2 * count + 16) * sizeof(float)), *at = row;
    for (uint32_t r = 0; r < n; r++) {
        memcpy(at, e->packets[r], packets * sizeof *at), at += packets;
        memcpy(at, e->worker[r].sum, all * sizeof *at), at += all;
        memcpy(at, e->server[r].sum, e->chunk * sizeof *at), at += e->chunk;
    }
    memcpy(at, e->result, packets * sizeof *at), at += packets;
    memcpy(at, p->value, count * sizeof *at), at += count;
    memcpy(at, e->momentum, count * sluice_dtype_bytes(e->momentum_dtype)), at += count;
    test_same_bits("exchange", (uint64_t)(at - row), row, first);
    free(row);
}

typedef struct {
    uint32_t ranks;
    uint64_t count, scale_elements;
    sluice_dtype gradient, momentum;
} exchange_case;

static void check_case(const exchange_case *c)
{
    float *first = NULL;
    TEST_EACH_ISA(isa)
    for (uint32_t threads = 1; threads <= 2; threads++) {
        exchange e = exchange_create(c->ranks, c->count, c->scale_elements, threads, c->gradient, c->momentum);
        parameter p = parameter_create(c->count);
        for (uint64_t step = 0; step < STEPS; step++) {
            draw_gradients(&e, step);
            for (uint32_t r = 0; r < c->ranks; r++) compress_and_check(&e, r);
            for (uint32_t k = 0; k < c->ranks; k++) serve_and_check(&e, k, isa % 2 ? 1000 : UINT64_C(1) << 40);
            apply_and_check(&e, &p, step % 2);
            free_gradients(&e);
        }
        check_same_bits(&e, &p, &first);
        parameter_destroy(&p);
        exchange_destroy(&e);
    }
    free(first);
}

static void agrees_with_float64(void **state)
{
    (void)state;
    const uint64_t counts[] = {0, 1, 7, 8, 15, 17, 63, 64, 100, 197, 1003, 4099, 20011};
    for (uint32_t ranks = 1; ranks <= MOST_RANKS; ranks++)
        for (size_t i = 0; i < TEST_COUNT_OF(counts); i++) {
            uint32_t odd = ranks + (uint32_t)i;
            check_case(&(exchange_case){ranks, counts[i], 0, odd % 2, odd / 2 % 2});
            check_case(&(exchange_case){ranks, counts[i], odd % 3 ? 16 : 256, odd % 2, odd / 2 % 2});
        }
}

static void long_tensors(void **state)
{
    (void)state;
    check_case(&(exchange_case){2, 1000000, 0, SLUICE_FP32, SLUICE_FP32});
    check_case(&(exchange_case){3, 999983, 4096, SLUICE_FP32, SLUICE_FP32});
}

static void padding_is_the_rule_s(void **state)
{
    (void)state;
    const struct {
        uint32_t ranks;
        uint64_t unit;
    } rows[] = {{1, 8}, {2, 16}, {3, 72}, {4, 32}, {5, 200}, {6, 144}, {7, 392}, {8, 64}, {16, 256}};
    for (size_t i = 0; i < TEST_COUNT_OF(rows); i++)
        for (uint64_t count = 0; count < 900; count += 89) {
            slc_compress_shape shape = {count, 0, rows[i].ranks};
            uint64_t unit = rows[i].unit, all = (count + unit - 1) / unit * unit;
            assert_int_equal(slc_compress_chunk(&shape) * rows[i].ranks, all);
            assert_int_equal(slc_compress_packet_bytes(&shape), 4 + all / rows[i].ranks / 8);
        }
}

static void whole_step(exchange *e, uint64_t seed)
{
    draw_gradients(e, seed);
    for (uint32_t r = 0; r < e->shape.ranks; r++) compress(e, r);
    for (uint32_t k = 0; k < e->shape.ranks; k++) serve(e, k, 4096);
    free_gradients(e);
}

static void folded_errors_go_on_to_the_same_bits(void **state)
{
    (void)state;
    enum { COUNT = 5003, RANKS = 3 };
    for (uint64_t scale_elements = 0; scale_elements < 100; scale_elements += 64) {
        float *first = NULL;
        parameter p = parameter_create(COUNT);
        for (int folds = 0; folds < 2; folds++) {
            exchange e = exchange_create(RANKS, COUNT, scale_elements, 1, SLUICE_FP32, SLUICE_FP32);
            for (uint64_t step = 0; step < 4; step++) {
                whole_step(&e, step);
                for (uint32_t r = 0; folds && r < RANKS; r++) {
                    double *error = errors_of(&e, &e.worker[r], RANKS);
                    assert_int_equal(slc_compress_fold(&e.stream, &e.shape, RANKS, &e.worker[r]), SLUICE_OK);
                    assert_int_equal(slc_compress_fold(&e.stream, &e.shape, 1, &e.server[r]), SLUICE_OK);
                    test_close("error", RANKS * e.chunk, e.worker[r].sum, error, 1e-6);
                    for (uint64_t i = 0; i < e.scales; i++) assert_true(e.server[r].scale[i] == 0);
                    free(error);
                }
            }
            draw_gradients(&e, 9);
            for (uint32_t r = 0; r < RANKS; r++) compress(&e, r);
            for (uint32_t k = 0; k < RANKS; k++) serve(&e, k, 4096);
            free_gradients(&e);
            check_same_bits(&e, &p, &first);
            exchange_destroy(&e);
        }
        free(first);
        parameter_destroy(&p);
    }
}

static void zeros_have_scale_zero(void **state)
{
    (void)state;
    enum { COUNT = 77, RANKS = 2 };
    TEST_EACH_ISA(isa)
    {
        exchange e = exchange_create(RANKS, COUNT, 0, 1, SLUICE_FP32, SLUICE_FP32);
        parameter p = parameter_create(COUNT);
        draw_gradients(&e, 1);
        for (int i = 0; i < COUNT; i++) ((float *)e.momentum)[i] = -0.0f;
        for (int r = 0; r < RANKS; r++) memset(e.gradient[r], 0, COUNT * sizeof(float));
        for (uint32_t r = 0; r < RANKS; r++) compress_and_check(&e, r);
        for (uint32_t k = 0; k < RANKS; k++) serve_and_check(&e, k, 4096);
        apply_and_check(&e, &p, true);
        for (int i = 0; i < COUNT; i++) assert_true(((float *)e.momentum)[i] == 0);
        for (uint64_t i = 0; i < e.chunk; i++) assert_true(sign_at(&e, e.packets[1], i) == 1);
        free_gradients(&e);
        parameter_destroy(&p);
        exchange_destroy(&e);
    }
}

static bool all_finite(uint64_t count, const float *x)
{
    for (uint64_t i = 0; i < count; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

/* One bad element on one rank: the exchange fails for all, nothing moves, the next one is whole. */
static void what_is_not_finite_is_skipped(void **state)
{
    (void)state;
    enum { COUNT = 2003, RANKS = 3 };
    const float bad[] = {INFINITY, -INFINITY, NAN, 3e38f};
    TEST_EACH_ISA(isa)
    for (size_t b = 0; b < TEST_COUNT_OF(bad); b++) {
        exchange e = exchange_create(RANKS, COUNT, 0, 1, SLUICE_FP32, SLUICE_FP32);
        parameter p = parameter_create(COUNT);
        whole_step(&e, 1);
        draw_gradients(&e, 2);
        ((float *)e.gradient[1])[COUNT - 2] = bad[b];
        if (isfinite(bad[b])) e.worker[1].sum[COUNT - 2] = 3.4e38f, ((float *)e.momentum)[COUNT - 2] = 3.4e38f;
        for (uint32_t r = 0; r < RANKS; r++) compress(&e, r);
        for (uint32_t k = 0; k < RANKS; k++) serve(&e, k, 4096);
        assert_true(isinf(e.worker[1].scale[0]) && isfinite(e.worker[0].scale[0]));

        float *value = test_copy(COUNT, p.value), *momentum = test_copy(COUNT, e.momentum);
        bool finite = true;
        slc_frozen_range range = range_of(&e, &p, e.momentum, false);
        for (uint32_t k = 0; k < RANKS; k++) assert_true(isinf(scale_at(&e, e.result + k * e.stride, 0)));
        slc_compress_apply(&e.stream, &settings, &e.shape, e.result, e.stride, 0, COUNT, &range, &finite);
        assert_false(finite);
        assert_memory_equal(p.value, value, sizeof *value * COUNT);
        assert_memory_equal(e.momentum, momentum, sizeof *momentum * COUNT);
        free_gradients(&e);

        ((float *)e.momentum)[COUNT - 2] = 0;
        draw_gradients(&e, 3);
        for (uint32_t r = 0; r < RANKS; r++) compress_and_check(&e, r);
        for (uint32_t k = 0; k < RANKS; k++) serve_and_check(&e, k, 4096);
        apply_and_check(&e, &p, true);
        assert_true(all_finite(COUNT, p.value) && all_finite(RANKS * e.chunk, e.worker[1].sum));
        free_gradients(&e);
        free(value), free(momentum);
        parameter_destroy(&p);
        exchange_destroy(&e);
    }
}

static void frozen_update_agrees_with_float64(void **state)
{
    (void)state;
    const uint64_t counts[] = {1, 16, 197, 50021};
    TEST_EACH_DTYPE(gradient)
    TEST_EACH_DTYPE(momentum)
    for (size_t c = 0; c < TEST_COUNT_OF(counts); c++) {
        float *first = NULL;
        TEST_EACH_ISA(isa)
        for (uint32_t threads = 1; threads <= 2; threads++) {
            exchange e = exchange_create(1, counts[c], 0, threads, gradient, momentum);
            parameter p = parameter_create(counts[c]);
            float *before = test_copy(counts[c], p.value);
            draw_gradients(&e, 5);
            double *m64 = test_widen_typed(momentum, counts[c], e.momentum);
            double *g64 = test_widen_typed(gradient, counts[c], e.gradient[0]);
            for (uint64_t i = 0; i < counts[c]; i++) m64[i] = 0.9 * m64[i] + 0.1 * 0.7 * g64[i];
            slc_frozen_range range = range_of(&e, &p, e.momentum, true);
            assert_int_equal(slc_frozen_update(&e.stream, &settings, gradient, e.gradient[0], &range), SLUICE_OK);
            check_update(&e, &p, e.momentum, before, m64, true, 1e-6);
            check_same_bits(&e, &p, &first);
            free(before), free(m64), free(g64);
            free_gradients(&e);
            parameter_destroy(&p);
            exchange_destroy(&e);
        }
        free(first);
    }
}

static void wrong_arguments(void **state)
{
    (void)state;
    exchange e = exchange_create(2, 1000, 64, 1, SLUICE_FP32, SLUICE_FP32);
    parameter p = parameter_create(1000);
    const slc_compress_shape bad[] = {{1000, 0, 0}, {1000, 24, 2}, {1000, 0, 5000}};
    for (size_t i = 0; i < TEST_COUNT_OF(bad); i++) assert_int_equal(slc_compress_check(&bad[i]), SLUICE_ERR_ARGUMENT);
    int64_t bins[SLC_NORM_BINS] = {0};
    const void *packets[] = {e.packets[0], e.packets[1]};
    const uint64_t pieces[][2] = {{16, 64}, {0, 100}, {64, 1024}, {1024, 64}};
    for (size_t i = 0; i < TEST_COUNT_OF(pieces); i++)
        assert_int_equal(
            slc_compress_server(&e.stream, &e.shape, packets, pieces[i][0], pieces[i][1], &e.server[0], bins, e.result),
            SLUICE_ERR_ARGUMENT);
    slc_frozen_range range = range_of(&e, &p, e.momentum, false);
    bool finite = true;
    assert_int_equal(slc_compress_apply(&e.stream, &settings, &e.shape, e.result, e.stride, 8, 992, &range, &finite),
                     SLUICE_ERR_ARGUMENT);
    range.count = 999;
    assert_int_equal(slc_compress_apply(&e.stream, &settings, &e.shape, e.result, e.stride, 0, 999, &range, &finite),
                     SLUICE_ERR_ARGUMENT);
    parameter_destroy(&p);
    exchange_destroy(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_float64),
        cmocka_unit_test(long_tensors),
        cmocka_unit_test(padding_is_the_rule_s),
        cmocka_unit_test(folded_errors_go_on_to_the_same_bits),
        cmocka_unit_test(zeros_have_scale_zero),
        cmocka_unit_test(what_is_not_finite_is_skipped),
        cmocka_unit_test(frozen_update_agrees_with_float64),
        cmocka_unit_test(wrong_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
