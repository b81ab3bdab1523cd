/* For tests of compressed optimizers: ranks simulated in one process, the exchange by the fast kernels and plainly in
 * float64 (DeepSpeed 0.16.4's compressed_allreduce), and how close the two must be. */
#ifndef SLC_OPTIM_ONEBIT_TEST_H
#define SLC_OPTIM_ONEBIT_TEST_H

#include "lib/kernels/kernel_test.h"
#include "lib/optim/compressed.h"

enum { MOST_RANKS = 4, MOST_TENSORS = 6 };
static const double bar = 2e-6; /* relative to the sizes that the checks at the end of this file use */

TEST_INLINE void *test_zeroed(uint64_t bytes)
{
    void *x = aligned_alloc(64, (bytes + 127) / 64 * 64);
    assert_non_null(x);
    return memset(x, 0, (bytes + 127) / 64 * 64);
}

TEST_INLINE double sign_of(double x)
{
    return x < 0 ? -1 : 1;
}

TEST_INLINE double rms(const double *x, uint64_t count)
{
    double squares = 0;
    for (uint64_t i = 0; i < count; i++) squares += x[i] * x[i];
    return count ? sqrt(squares / (double)count) : 0;
}

TEST_INLINE double largest(uint64_t count, const double *x)
{
    double most = 0;
    for (uint64_t i = 0; i < count; i++) most = fmax(most, fabs(x[i]));
    return most;
}

/* ---- The exchange, plainly ---- */

/* The errors of one tensor: each rank's of compression, `all` long, and each server's. */
typedef struct {
    double *worker[MOST_RANKS], *server[MOST_RANKS];
} plain_errors;

/* x: one array for each rank; out: the result, equal on every rank; `count` elements exist of the padded length
 * `all`. */
TEST_INLINE void plain_exchange(uint32_t n, uint64_t count, uint64_t all, double *const *x, plain_errors *e,
                                double *out)
{
    uint64_t chunk = all / n;
    double *sign[MOST_RANKS], scale[MOST_RANKS];
    for (uint32_t r = 0; r < n; r++) {
        double *b = e->worker[r];
        sign[r] = test_doubles(all);
        for (uint64_t i = 0; i < count; i++) b[i] += x[r][i];
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

/* The arrays that one unit exchanges, on all ranks. */
typedef struct {
    slc_compress_group group;
    slc_residue worker[MOST_RANKS][MOST_TENSORS], server[MOST_RANKS][MOST_TENSORS];
    void *worker_memory[MOST_RANKS], *server_memory[MOST_RANKS];
    char *packets[MOST_RANKS], *results;
} test_exchange;

TEST_INLINE void test_exchange_init(test_exchange *e, uint32_t tensors, const slc_compress_shape *shapes)
{
    *e = (test_exchange){0};
    assert_int_equal(slc_compress_group_init(&e->group, tensors, shapes), SLUICE_OK);
    const uint32_t ranks = shapes[0].ranks;
    for (uint32_t r = 0; r < ranks; r++) {
        e->worker_memory[r] = test_zeroed(slc_compress_group_worker_bytes(&e->group));
        e->server_memory[r] = test_zeroed(slc_compress_group_server_bytes(&e->group));
        slc_compress_group_residues(&e->group, e->worker_memory[r], e->server_memory[r], e->worker[r], e->server[r]);
        e->packets[r] = test_zeroed(ranks * e->group.stride);
    }
    e->results = test_zeroed(ranks * e->group.stride);
}

TEST_INLINE void test_exchange_fini(test_exchange *e)
{
    for (uint32_t r = 0; r < MOST_RANKS; r++)
        test_release(e->worker_memory[r]), test_release(e->server_memory[r]), test_release(e->packets[r]);
    test_release(e->results);
    slc_compress_group_fini(&e->group);
}

/* Runs between compress and apply: makes the servers' results from everybody's packets. */
TEST_INLINE void test_exchange_run(test_exchange *e, sluice_stream *stream)
{
    for (uint32_t i = 0; i < e->group.count; i++) {
        const slc_compress_shape *shape = &e->group.shapes[i];
        for (uint32_t k = 0; k < shape->ranks && shape->count; k++) {
            const uint64_t at = k * e->group.stride + e->group.offsets[i];
            const void *packets[MOST_RANKS];
            int64_t bins[SLC_NORM_BINS] = {0};
            for (uint32_t r = 0; r < shape->ranks; r++) packets[r] = e->packets[r] + at;
            assert_int_equal(slc_compress_server(stream, shape, packets, 0, slc_compress_chunk(shape), &e->server[k][i],
                                                 bins, e->results + at),
                             SLUICE_OK);
            slc_compress_server_end(shape, &e->server[k][i], bins, e->results + at);
        }
    }
}

/* ---- A run of one optimizer ---- */

enum { TEST_TENSORS = 6, TEST_STATES = 3, TEST_NO_DECAY = 1, TEST_STILL = 4 /* its gradients are all zero */ };
static const uint64_t test_counts[TEST_TENSORS] = {1003, 70, 0, 1, 135, 6011};

typedef struct {
    uint32_t ranks, threads;
    bool exchanged; /* else the compressed phase goes on with averaged gradients */
    sluice_dtype gradient_dtype;
} test_mode;

typedef struct {
    test_mode mode;
    const void *settings; /* settings of the optimizer */
    bool fuses;
    double rate;
    sluice_stream stream;
    slc_compressed onebit;
    float *value[TEST_TENSORS], *state[TEST_TENSORS][TEST_STATES];
    uint16_t *rounded[TEST_TENSORS]; /* for odd ones only */
    void *gradient[MOST_RANKS][TEST_TENSORS], *average[TEST_TENSORS];
    float *flat[MOST_RANKS];
    uint64_t elements, flat_elements;
    test_exchange exchange;
} test_job;

/* The caller has set settings, rate, stream and onebit. */
TEST_INLINE void test_job_begin(test_job *j, const test_mode *mode, bool fuses)
{
    slc_compressed_parameter parameters[TEST_TENSORS];
    slc_compress_shape shapes[TEST_TENSORS];
    j->mode = *mode, j->fuses = fuses;
    for (uint32_t t = 0; t < TEST_TENSORS; t++) {
        parameters[t] = (slc_compressed_parameter){.count = test_counts[t], .no_decay = t == TEST_NO_DECAY};
        shapes[t] = (slc_compress_shape){test_counts[t], 0, mode->ranks};
        j->value[t] = test_uniform_floats(test_counts[t], -1, 1, t);
        j->rounded[t] = test_typed(SLUICE_BF16, test_counts[t], j->value[t]);
        for (int s = 0; s < TEST_STATES; s++) j->state[t][s] = test_zeroed(test_counts[t] * sizeof(float));
        j->elements += test_counts[t];
    }
    j->flat_elements = slc_flat_elements(j->elements, mode->ranks);
    for (uint32_t r = 0; r < mode->ranks; r++) j->flat[r] = test_zeroed(j->flat_elements * sizeof(float));
    if (fuses) shapes[0].count = j->flat_elements;
    test_exchange_init(&j->exchange, fuses ? 1 : TEST_TENSORS, shapes);
    assert_int_equal(j->onebit.commit(j->onebit.context, mode->ranks, TEST_TENSORS, parameters), SLUICE_OK);
}

TEST_INLINE void test_job_destroy(test_job *j)
{
    for (uint32_t t = 0; t < TEST_TENSORS; t++) {
        test_release(j->value[t]), test_release(j->rounded[t]);
        for (int s = 0; s < TEST_STATES; s++) test_release(j->state[t][s]);
    }
    for (uint32_t r = 0; r < j->mode.ranks; r++) test_release(j->flat[r]);
    test_exchange_fini(&j->exchange);
    j->onebit.destroy(j->onebit.context);
    slc_stream_destroy(&j->stream);
}

/* Draws gradients in which every eleventh element is always 0. */
TEST_INLINE void test_draw_gradients(test_job *j, uint64_t step)
{
    for (uint32_t t = 0; t < TEST_TENSORS; t++) {
        float *sum = test_zeroed(test_counts[t] * sizeof(float));
        for (uint32_t r = 0; r < j->mode.ranks; r++) {
            float *g = test_uniform_floats(test_counts[t], -0.1f, 0.15f, 1000 * step + 10 * t + r);
            for (uint64_t i = 0; i < test_counts[t]; i++) {
                if (i % 11 == 10 || t == TEST_STILL) g[i] = 0;
                sum[i] += g[i] / (float)j->mode.ranks;
            }
            j->gradient[r][t] = test_typed(j->mode.gradient_dtype, test_counts[t], g);
            test_release(g);
        }
        j->average[t] = test_typed(j->mode.gradient_dtype, test_counts[t], sum);
        test_release(sum);
    }
}

TEST_INLINE void test_free_gradients(test_job *j)
{
    for (uint32_t t = 0; t < TEST_TENSORS; t++) {
        for (uint32_t r = 0; r < j->mode.ranks; r++) test_release(j->gradient[r][t]);
        test_release(j->average[t]);
    }
}

/* ---- A step as an engine makes it ---- */

TEST_INLINE sluice_update test_update_of(const test_job *j, uint64_t step, uint32_t t, const void *gradient)
{
    return (sluice_update){.value = j->value[t],
                           .rounded = t % 2 ? j->rounded[t] : NULL,
                           .gradient = gradient,
                           .gradient_dtype = j->mode.gradient_dtype,
                           .state = {j->state[t][0], j->state[t][1], j->state[t][2]},
                           .count = test_counts[t],
                           .step = step,
                           .learning_rate = j->rate,
                           .gradient_factor = 0.5,
                           .no_decay = t == TEST_NO_DECAY,
                           .parameter = t};
}

/* Returns the update of elements from `at` on, at most `piece`. */
TEST_INLINE sluice_update test_piece_of(const sluice_update *all, uint64_t at, uint64_t piece)
{
    sluice_update u = *all;
    u.value += at;
    u.gradient = (const char *)all->gradient + at * sluice_dtype_bytes(all->gradient_dtype);
    if (u.rounded) u.rounded = (uint16_t *)all->rounded + at;
    for (int s = 0; s < TEST_STATES; s++) u.state[s] += at;
    u.count = all->count - at < piece ? all->count - at : piece;
    return u;
}

/* Calls `update` with each piece of each averaged tensor and its norms. */
TEST_INLINE void test_update_pieces(test_job *j, uint64_t step, uint64_t piece,
                                    double norms[TEST_TENSORS][SLUICE_OPTIMIZER_NORMS_MAX])
{
    for (uint32_t t = 0; t < TEST_TENSORS; t++) {
        sluice_update all = test_update_of(j, step, t, j->average[t]);
        all.norms = norms[t];
        for (uint64_t at = 0; at < test_counts[t]; at += piece) {
            sluice_update u = test_piece_of(&all, at, piece);
            assert_int_equal(j->onebit.optimizer.update(&u, j->onebit.context), SLUICE_OK);
        }
    }
}

TEST_INLINE void test_average_step(test_job *j, uint64_t step, uint64_t piece)
{
    const sluice_optimizer *o = &j->onebit.optimizer;
    double norms[TEST_TENSORS][SLUICE_OPTIMIZER_NORMS_MAX];
    for (uint32_t t = 0; o->norm_count && t < TEST_TENSORS; t++) {
        int64_t bins[SLUICE_OPTIMIZER_NORMS_MAX][SLC_NORM_BINS] = {0}, *const sums[] = {bins[0], bins[1], bins[2]};
        sluice_update all = test_update_of(j, step, t, j->average[t]);
        for (uint64_t at = 0; at < test_counts[t]; at += piece) {
            sluice_update u = test_piece_of(&all, at, piece);
            assert_int_equal(o->measure(&u, sums, o->context), SLUICE_OK);
        }
        for (uint32_t i = 0; i < o->norm_count; i++) norms[t][i] = slc_norm_result(bins[i]);
        for (uint32_t i = o->norm_count; i < o->norm_count + o->maximum_count; i++)
            memcpy(&norms[t][i], bins[i], sizeof norms[t][i]);
        o->agreed(t, step, norms[t], o->context);
    }
    test_update_pieces(j, step, piece, norms);
}

TEST_INLINE void test_make_unit(test_job *j, uint64_t step, uint32_t rank, sluice_update updates[TEST_TENSORS],
                                slc_onebit_unit *unit, float *flat[TEST_TENSORS])
{
    uint64_t at = 0;
    for (uint32_t t = 0; t < TEST_TENSORS; at += test_counts[t++]) {
        updates[t] = test_update_of(j, step, t, j->gradient[rank][t]);
        flat[t] = j->flat[rank] + at;
    }
    *unit = (slc_onebit_unit){.tensor_count = TEST_TENSORS,
                              .tensors = updates,
                              .local = {flat},
                              .group = &j->exchange.group,
                              .workers = j->exchange.worker[rank],
                              .packets = j->exchange.packets[rank],
                              .results = j->exchange.results};
}

/* Replicas are equal, so the values of one serve for all; but each rank has its own padding. Returns the lowest bad
 * parameter. */
TEST_INLINE uint32_t test_exchange_step(test_job *j, uint64_t step)
{
    sluice_update updates[TEST_TENSORS];
    slc_onebit_unit unit;
    float *flat[TEST_TENSORS];
    uint32_t bad = UINT32_MAX;
    for (uint32_t r = 0; r < j->mode.ranks; r++) {
        test_make_unit(j, step, r, updates, &unit, flat);
        assert_int_equal(j->onebit.compress(j->onebit.context, &unit, &bad), SLUICE_OK);
    }
    test_exchange_run(&j->exchange, &j->stream);
    test_make_unit(j, step, 0, updates, &unit, flat);
    assert_int_equal(j->onebit.apply(j->onebit.context, &unit, &bad), SLUICE_OK);
    for (uint32_t r = 1; r < j->mode.ranks; r++) memcpy(j->flat[r], j->flat[0], j->flat_elements * sizeof(float));
    return bad;
}

/* Returns the bits of end_step. */
TEST_INLINE uint32_t test_end_step(test_job *j, uint64_t step)
{
    double made[TEST_STATES][TEST_TENSORS + 1]; /* the last ones are nobody's */
    const double *norms[SLUICE_OPTIMIZER_STATES_MAX] = {0};
    uint32_t wanted = j->onebit.wants_norms(j->onebit.context, step);
    for (int s = 0; s < TEST_STATES; s++) {
        if (!(wanted >> s & 1)) continue;
        for (uint32_t t = 0; t < TEST_TENSORS; t++) {
            int64_t bins[SLC_NORM_BINS] = {0};
            assert_int_equal(slc_norm_add(&j->stream, SLUICE_FP32, test_counts[t], j->state[t][s], bins), SLUICE_OK);
            made[s][t] = slc_norm_result(bins);
        }
        made[s][TEST_TENSORS] = 1e30;
        norms[s] = made[s];
    }
    return j->onebit.end_step(j->onebit.context, step, norms);
}

/* Runs a whole step of all ranks; averaged gradients go in pieces. */
TEST_INLINE uint32_t test_job_step(test_job *j, uint64_t step, uint64_t piece)
{
    slc_step_mode mode = j->onebit.begin_step(j->onebit.context, step, j->rate, false);
    bool compressed = j->onebit.phase(j->onebit.context, step).compressed;
    assert_int_equal(mode, compressed ? SLC_STEP_EXCHANGE : SLC_STEP_AVERAGE);
    if (compressed && j->mode.exchanged)
        assert_int_equal(test_exchange_step(j, step), UINT32_MAX);
    else
        test_average_step(j, step, piece);
    return test_end_step(j, step);
}

/* Returns a drawn gradient as the optimizer uses it. */
TEST_INLINE double test_gradient_at(const test_job *j, const void *gradient, uint64_t i)
{
    return 0.5 * (j->mode.gradient_dtype == SLUICE_BF16 ? (double)sluice_bf16_to_float(((const uint16_t *)gradient)[i])
                                                        : (double)((const float *)gradient)[i]);
}

/* ---- Comparison ---- */

TEST_INLINE double *error_of(const slc_residue *residue, uint64_t count)
{
    double *error = test_doubles(count), scale = count ? (double)residue->scale[0] : 0;
    for (uint64_t i = 0; i < count; i++) error[i] = (double)residue->sum[i] - scale * sign_of((double)residue->sum[i]);
    return error;
}

TEST_INLINE plain_errors errors_of(const test_exchange *e, uint32_t tensor)
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

TEST_INLINE void plain_errors_fini(plain_errors *e)
{
    for (int r = 0; r < MOST_RANKS; r++) test_release(e->worker[r]), test_release(e->server[r]);
}

TEST_INLINE void check_error(const slc_residue *residue, uint64_t count, const double *want)
{
    double *got = error_of(residue, count), scale = count ? (double)residue->scale[0] : 0;
    for (uint64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - want[i]) <= bar * (fabs(want[i]) + scale)))
            fail_msg("error %llu of %llu: %.9g, not %.9g", (unsigned long long)i, (unsigned long long)count, got[i],
                     want[i]);
    test_release(got);
}

TEST_INLINE void check_errors(const test_exchange *e, uint32_t tensor, const plain_errors *want)
{
    const slc_compress_shape *shape = &e->group.shapes[tensor];
    const uint64_t chunk = slc_compress_chunk(shape);
    for (uint32_t r = 0; r < shape->ranks; r++) {
        check_error(&e->worker[r][tensor], shape->ranks * chunk, want->worker[r]);
        check_error(&e->server[r][tensor], chunk, want->server[r]);
    }
}

/* Values are compared relative to |before| + |want|, momenta to their largest, variances each to itself. */
TEST_INLINE void check_values(uint64_t count, const float *got, const float *before, const double *want)
{
    for (uint64_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - want[i]) <= bar * (fabs((double)before[i]) + fabs(want[i]))))
            fail_msg("value %llu of %llu: %.9g, not %.9g", (unsigned long long)i, (unsigned long long)count,
                     (double)got[i], want[i]);
}

/* most_before: the largest momentum before the step, because a tensor of one element may have lost all of it. */
TEST_INLINE void check_momenta(uint64_t count, const float *got, double most_before, const double *want)
{
    double most = fmax(most_before, largest(count, want));
    for (uint64_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - want[i]) <= bar * most))
            fail_msg("momentum %llu of %llu: %.9g, not %.9g", (unsigned long long)i, (unsigned long long)count,
                     (double)got[i], want[i]);
}

TEST_INLINE void check_variances(uint64_t count, const float *got, const double *want)
{
    for (uint64_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - want[i]) <= bar * want[i]))
            fail_msg("variance %llu of %llu: %.9g, not %.9g", (unsigned long long)i, (unsigned long long)count,
                     (double)got[i], want[i]);
}

#endif
