#include "tests/support/optim/onebit_exchange.h"

static double sign_of(double x)
{
    return x < 0 ? -1 : 1;
}

double rms(const double *x, uint64_t count)
{
    double squares = 0;
    for (uint64_t i = 0; i < count; i++) squares += x[i] * x[i];
    return count ? sqrt(squares / (double)count) : 0;
}

double largest(uint64_t count, const double *x)
{
    double most = 0;
    for (uint64_t i = 0; i < count; i++) most = fmax(most, fabs(x[i]));
    return most;
}

/* ---- The exchange, plainly ---- */

void plain_exchange(uint32_t n, uint64_t count, uint64_t all, double *const *x, plain_errors *e, double *out)
{
    uint64_t chunk = all / n;
    double *sign[MOST_RANKS], scale[MOST_RANKS];
    for (uint32_t r = 0; r < n; r++) {
        double *b = e->worker[r];
        sign[r] = test_doubles(all);
        for (uint64_t i = 0; i < count; i++) {
            e->size = fmax(e->size, fabs(b[i]) + fabs(x[r][i]));
            b[i] += x[r][i];
        }
        scale[r] = rms(b, all);
        for (uint64_t i = 0; i < all; i++) sign[r][i] = sign_of(b[i]), b[i] -= scale[r] * sign[r][i];
    }
    for (uint32_t k = 0; k < n; k++) {
        double *a = e->server[k];
        for (uint64_t i = 0; i < chunk; i++)
            for (uint32_t r = 0; r < n; r++) a[i] += sign[r][k * chunk + i] * scale[r] / n;
        double result = rms(a, chunk);
        for (uint64_t i = 0; i < chunk; i++) {
            double t = sign_of(a[i]);
            if (k * chunk + i < count) out[k * chunk + i] = result * t;
            a[i] -= result * t;
        }
    }
    for (uint32_t r = 0; r < n; r++) test_release(sign[r]);
}

/* ---- The exchange, by the kernels ---- */

void test_exchange_init(test_exchange *e, uint32_t tensors, const slc_compress_shape *shapes)
{
    *e = (test_exchange){0};
    assert_int_equal(slc_compress_group_init(&e->group, tensors, shapes), SLUICE_OK);
    const uint32_t ranks = shapes[0].ranks;
    for (uint32_t r = 0; r < ranks; r++) {
        e->worker_memory[r] = test_zeros(slc_compress_group_worker_bytes(&e->group));
        e->server_memory[r] = test_zeros(slc_compress_group_server_bytes(&e->group));
        slc_compress_group_residues(&e->group, e->worker_memory[r], e->server_memory[r], e->worker[r], e->server[r]);
        e->packets[r] = test_zeros(ranks * e->group.stride);
    }
    e->results = test_zeros(ranks * e->group.stride);
}

void test_exchange_fini(test_exchange *e)
{
    for (uint32_t r = 0; r < MOST_RANKS; r++)
        test_release(e->worker_memory[r]), test_release(e->server_memory[r]), test_release(e->packets[r]);
    test_release(e->results);
    slc_compress_group_fini(&e->group);
}

void test_exchange_run(test_exchange *e, sluice_stream *stream)
{
    for (uint32_t i = 0; i < e->group.count; i++) {
        const slc_compress_shape *shape = &e->group.shapes[i];
        for (uint32_t k = 0; k < shape->ranks && shape->count; k++) {
            const uint64_t at = k * e->group.stride + e->group.offsets[i];
            const void *packets[MOST_RANKS];
            int64_t *bins = e->server[k][i].bins;
            assert_int_equal(slc_fill_zero(stream, bins, SLC_NORM_BINS * sizeof *bins), SLUICE_OK);
            for (uint32_t r = 0; r < shape->ranks; r++) packets[r] = e->packets[r] + at;
            const slc_compress_served chunk = {shape, packets, &e->server[k][i], bins, e->results + at, NULL};
            assert_int_equal(slc_compress_server(stream, &chunk, 0, slc_compress_chunk(shape)), SLUICE_OK);
            assert_int_equal(slc_compress_server_end(stream, &chunk), SLUICE_OK);
        }
    }
}

/* ---- Comparison ---- */

static double *error_of(const slc_residue *residue, uint64_t count)
{
    double *error = test_doubles(count), scale = count ? (double)residue->scale[0] : 0;
    for (uint64_t i = 0; i < count; i++) error[i] = (double)residue->sum[i] - scale * sign_of((double)residue->sum[i]);
    return error;
}

plain_errors plain_errors_of(const test_exchange *e, uint32_t tensor)
{
    const slc_compress_shape *shape = &e->group.shapes[tensor];
    const uint64_t chunk = slc_compress_chunk(shape);
    plain_errors errors = {0};
    for (uint32_t r = 0; r < shape->ranks; r++) {
        errors.worker[r] = error_of(&e->worker[r][tensor], shape->ranks * chunk);
        errors.server[r] = error_of(&e->server[r][tensor], chunk);
    }
    return errors;
}

void plain_errors_fini(plain_errors *e)
{
    for (int r = 0; r < MOST_RANKS; r++) test_release(e->worker[r]), test_release(e->server[r]);
}

static void check_error(const slc_residue *residue, uint64_t count, const double *want, double size)
{
    double *got = error_of(residue, count), scale = count ? (double)residue->scale[0] : 0;
    for (uint64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - want[i]) <= bar * fmax(fabs(want[i]) + scale, size)))
            fail_msg("error %llu of %llu: %.9g, not %.9g", (unsigned long long)i, (unsigned long long)count, got[i],
                     want[i]);
    test_release(got);
}

void check_errors(const test_exchange *e, uint32_t tensor, const plain_errors *want)
{
    const slc_compress_shape *shape = &e->group.shapes[tensor];
    const uint64_t chunk = slc_compress_chunk(shape);
    for (uint32_t r = 0; r < shape->ranks; r++) {
        check_error(&e->worker[r][tensor], shape->ranks * chunk, want->worker[r], want->size);
        check_error(&e->server[r][tensor], chunk, want->server[r], want->size);
    }
}

void check_values(uint64_t count, const float *got, const float *before, const double *want)
{
    for (uint64_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - want[i]) <= bar * (fabs((double)before[i]) + fabs(want[i]))))
            fail_msg("value %llu of %llu: %.9g, not %.9g", (unsigned long long)i, (unsigned long long)count,
                     (double)got[i], want[i]);
}

void check_momenta(uint64_t count, const float *got, double most_before, const double *want)
{
    double most = fmax(most_before, largest(count, want));
    for (uint64_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - want[i]) <= bar * most))
            fail_msg("momentum %llu of %llu: %.9g, not %.9g", (unsigned long long)i, (unsigned long long)count,
                     (double)got[i], want[i]);
}

void check_variances(uint64_t count, const float *got, const double *want)
{
    for (uint64_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - want[i]) <= bar * want[i]))
            fail_msg("variance %llu of %llu: %.9g, not %.9g", (unsigned long long)i, (unsigned long long)count,
                     (double)got[i], want[i]);
}
