#include "tests/support/kernels/compress_ranks.h"

static slc_residue residue_create(uint64_t sums, uint64_t scales)
{
    return (slc_residue){test_zeros(sums * sizeof(float)), test_zeros(scales * sizeof(float)),
                         test_zeros(SLC_NORM_BINS * sizeof(int64_t))};
}

static void residue_destroy(slc_residue *residue)
{
    test_release(residue->sum), test_release(residue->scale), test_release(residue->bins);
}

exchange compress_ranks_create(uint32_t ranks, uint64_t count, uint64_t scale_elements, uint32_t threads,
                               sluice_dtype gradient, sluice_dtype momentum)
{
    exchange e = {.shape = {count, scale_elements, ranks},
                  .gradient_dtype = gradient,
                  .momentum_dtype = momentum,
                  .stream = test_stream(threads)};
    assert_int_equal(slc_compress_check(&e.shape), SLUICE_OK);
    e.chunk = slc_compress_chunk(&e.shape), e.scales = slc_compress_scales(&e.shape);
    e.stride = slc_compress_packet_bytes(&e.shape) + count % 7;
    for (uint32_t r = 0; r < ranks; r++) {
        e.worker[r] = residue_create(ranks * e.chunk, ranks * e.scales);
        e.server[r] = residue_create(e.chunk, e.scales);
        e.packets[r] = (char *)test_zeros(ranks * e.stride) + SHIFT;
    }
    e.result = (char *)test_zeros(ranks * e.stride) + SHIFT;
    e.bins = test_zeros(SLC_NORM_BINS * sizeof *e.bins);
    e.finite = test_bytes(sizeof *e.finite);
    e.momentum = test_uniform_typed(momentum, count, -0.02f, 0.02f, count + 5);
    return e;
}

void compress_ranks_destroy(exchange *e)
{
    for (uint32_t r = 0; r < e->shape.ranks; r++)
        residue_destroy(&e->worker[r]), residue_destroy(&e->server[r]), test_release(e->packets[r] - SHIFT);
    test_release(e->result - SHIFT), test_release(e->momentum), test_release(e->bins), test_release(e->finite);
    slc_stream_destroy(&e->stream);
}

void compress_ranks_draw(exchange *e, uint64_t seed)
{
    for (uint32_t r = 0; r < e->shape.ranks; r++)
        e->gradient[r] = test_uniform_typed(e->gradient_dtype, e->shape.count, -0.1f, 0.1f, 1000 * seed + r);
}

void compress_ranks_forget(exchange *e)
{
    for (uint32_t r = 0; r < e->shape.ranks; r++) test_release(e->gradient[r]);
}

void compress_rank(exchange *e, uint32_t rank)
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

void serve_chunk(exchange *e, uint32_t chunk, uint64_t piece)
{
    const void *packets[MOST_RANKS];
    char *result = e->result + chunk * e->stride;
    memset(e->bins, 0, SLC_NORM_BINS * sizeof *e->bins);
    for (uint32_t r = 0; r < e->shape.ranks; r++) packets[r] = e->packets[r] + chunk * e->stride;
    uint64_t unit = e->shape.scale_elements ? e->shape.scale_elements : 64;
    piece = (piece + unit - 1) / unit * unit;
    const slc_compress_served served = {&e->shape, packets, &e->server[chunk], e->bins, result, NULL};
    for (uint64_t at = (e->chunk + piece - 1) / piece * piece; at > 0; at -= piece) {
        uint64_t first = at - piece, count = e->chunk - first < piece ? e->chunk - first : piece;
        assert_int_equal(slc_compress_server(&e->stream, &served, first, count), SLUICE_OK);
    }
    assert_int_equal(slc_compress_server_end(&e->stream, &served), SLUICE_OK);
}

/* ---- The oracle ---- */

double packet_sign(const exchange *e, const char *packet, uint64_t i)
{
    return (uint8_t)packet[e->scales * sizeof(float) + i / 8] >> (7 - i % 8) & 1 ? 1 : -1;
}

float packet_scale(const exchange *e, const char *packet, uint64_t i)
{
    float scale;
    memcpy(&scale, packet + (e->shape.scale_elements ? i / e->shape.scale_elements : 0) * sizeof scale, sizeof scale);
    return scale;
}

double *residue_errors(const exchange *e, const slc_residue *residue, uint32_t chunks)
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
        if (packet_sign(e, packet, i) != want && fabs(sum[i]) > 1e-6 * size[i])
            fail_msg("%s: sign of element %llu of %llu, %g", what, (unsigned long long)i, (unsigned long long)e->chunk,
                     sum[i]);
        if (fabs((double)fast[i] - sum[i]) > 1e-6 * size[i])
            fail_msg("%s: element %llu is %g, not %g", what, (unsigned long long)i, (double)fast[i], sum[i]);
    }
}

/* A scale is the root of a mean of squares, so it is as near as the sums are, whose terms may cancel: `size` is that of
 * each sum's terms. */
static void check_scales(const exchange *e, const char *what, uint64_t chunks, const float *got, const double *want,
                         const double *size)
{
    double most = 0;
    for (uint64_t i = 0; i < chunks * e->chunk; i++) most = fmax(most, size[i]);
    for (uint64_t i = 0; i < chunks * e->scales; i++)
        if (!(fabs((double)got[i] - want[i]) <= 1e-6 * most))
            fail_msg("%s: scale %g, not %g", what, (double)got[i], want[i]);
}

void compress_and_check(exchange *e, uint32_t rank)
{
    uint64_t count = e->shape.count, all = e->shape.ranks * e->chunk;
    double *error = residue_errors(e, &e->worker[rank], e->shape.ranks), *sum = test_doubles(all);
    double *x = test_doubles(all), *size = test_doubles(all), *scale = test_doubles(e->shape.ranks * e->scales);
    double *g = test_widen_typed(e->gradient_dtype, count, e->gradient[rank]);
    double *m = test_widen_typed(e->momentum_dtype, count, e->momentum);
    for (uint64_t i = 0; i < count; i++) x[i] = factor * m[i] + rest * clip * g[i];
    for (uint64_t i = 0; i < all; i++)
        size[i] = (i < count ? fabs(factor * m[i]) + fabs(rest * clip * g[i]) : 0) + fabs(error[i]) +
                  (double)e->worker[rank].scale[0];
    slc_compress_worker_ref(&e->shape, x, error, sum, scale);
    compress_rank(e, rank);
    check_scales(e, "worker", e->shape.ranks, e->worker[rank].scale, scale, size);
    for (uint32_t k = 0; k < e->shape.ranks; k++) {
        const char *packet = e->packets[rank] + k * e->stride;
        check_signs(e, "worker", packet, sum + k * e->chunk, size + k * e->chunk, e->worker[rank].sum + k * e->chunk);
        if (count) assert_memory_equal(packet, e->worker[rank].scale + k * e->scales, e->scales * sizeof(float));
    }
    test_release(error), test_release(sum), test_release(x), test_release(size), test_release(scale), test_release(g),
        test_release(m);
}

void serve_and_check(exchange *e, uint32_t chunk, uint64_t piece)
{
    const double *signs[MOST_RANKS], *scales[MOST_RANKS];
    double *error = residue_errors(e, &e->server[chunk], 1), *sum = test_doubles(e->chunk),
           *size = test_doubles(e->chunk);
    double *scale = test_doubles(e->scales);
    for (uint64_t i = 0; i < e->chunk; i++) size[i] = fabs(error[i]);
    for (uint32_t r = 0; r < e->shape.ranks; r++) {
        const char *packet = e->packets[r] + chunk * e->stride;
        double *sign = test_doubles(e->chunk);
        for (uint64_t i = 0; i < e->chunk; i++) {
            sign[i] = packet_sign(e, packet, i);
            size[i] += (double)packet_scale(e, packet, i);
        }
        float *scale_of = test_floats(e->scales);
        memcpy(scale_of, packet, e->scales * sizeof *scale_of);
        signs[r] = sign, scales[r] = test_widen(e->scales, scale_of);
        test_release(scale_of);
    }
    slc_compress_server_ref(&e->shape, signs, scales, error, sum, scale);
    serve_chunk(e, chunk, piece);
    check_scales(e, "server", e->chunk ? 1 : 0, e->server[chunk].scale, scale, size);
    check_signs(e, "server", e->result + chunk * e->stride, sum, size, e->server[chunk].sum);
    for (uint32_t r = 0; r < e->shape.ranks; r++)
        test_release((double *)(uintptr_t)signs[r]), test_release((double *)(uintptr_t)scales[r]);
    test_release(error), test_release(sum), test_release(size), test_release(scale);
}

parameter frozen_parameter_create(uint64_t count)
{
    parameter p = {test_uniform_floats(count, -1, 1, 3), test_uniform_floats(count, 1e-4f, 1e-2f, 4),
                   (uint16_t *)test_floats(count)};
    for (uint64_t i = 0; i < count; i += 7) p.variance[i] = 0;
    return p;
}

void frozen_parameter_destroy(parameter *p)
{
    test_release(p->value), test_release(p->variance), test_release(p->rounded);
}

slc_frozen_range frozen_range_of(const exchange *e, const parameter *p, void *momentum, bool mask)
{
    return (slc_frozen_range){.count = e->shape.count,
                              .value = p->value,
                              .momentum = momentum,
                              .momentum_dtype = e->momentum_dtype,
                              .exp_avg_sq = p->variance,
                              .rounded = p->rounded,
                              .mask = mask};
}

void check_frozen_update(const exchange *e, const parameter *p, const void *momentum, const float *before,
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
    test_release(got);
}

void apply_and_check(exchange *e, parameter *p, bool mask)
{
    uint64_t count = e->shape.count, cut = count / 32 * 16;
    float *before = test_copy(count, p->value);
    double *m64 = test_doubles(count);
    for (uint64_t i = 0; i < count; i++) {
        const char *packet = e->result + i / e->chunk * e->stride;
        m64[i] = packet_sign(e, packet, i % e->chunk) * (double)packet_scale(e, packet, i % e->chunk);
    }
    slc_frozen_range range = frozen_range_of(e, p, e->momentum, mask);
    *e->finite = true;
    for (int piece = 1; piece >= 0; piece--) {
        const slc_compress_results results = {&e->shape, e->result, e->stride, piece ? cut : 0,
                                              piece ? count - cut : cut};
        assert_int_equal(slc_compress_apply(&e->stream, &settings, &results, &range, e->finite), SLUICE_OK);
    }
    assert_true(*e->finite);
    check_frozen_update(e, p, e->momentum, before, m64, mask, 0);
    test_release(before), test_release(m64);
}

void check_exchange_bits(const exchange *e, const parameter *p, float **first)
{
    uint64_t n = e->shape.ranks, packets = n * e->stride / sizeof(float) + 1, all = n * e->chunk,
             count = e->shape.count;
    float *row = test_zeroed(((n + 1) * (packets + all) + 2 * count + 16) * sizeof(float)), *at = row;
    for (uint32_t r = 0; r < n; r++) {
        memcpy(at, e->packets[r], n * e->stride), at += packets;
        memcpy(at, e->worker[r].sum, all * sizeof *at), at += all;
        memcpy(at, e->server[r].sum, e->chunk * sizeof *at), at += e->chunk;
    }
    memcpy(at, e->result, n * e->stride), at += packets;
    memcpy(at, p->value, count * sizeof *at), at += count;
    memcpy(at, e->momentum, count * sluice_dtype_bytes(e->momentum_dtype)), at += count;
    test_same_bits("exchange", (uint64_t)(at - row), row, first);
    test_release(row);
}
