#include "tests/support/optim/onebit_job.h"

void onebit_job_begin(onebit_job *j, const onebit_mode *mode, bool fuses)
{
    slc_compressed_parameter parameters[TEST_TENSORS];
    slc_compress_shape shapes[TEST_TENSORS];
    j->mode = *mode, j->fuses = fuses;
    for (uint32_t t = 0; t < TEST_TENSORS; t++) {
        parameters[t] = (slc_compressed_parameter){.count = test_counts[t], .no_decay = t == TEST_NO_DECAY};
        shapes[t] = (slc_compress_shape){test_counts[t], 0, mode->ranks};
        j->value[t] = test_uniform_floats(test_counts[t], -1, 1, t);
        j->rounded[t] = test_typed(SLUICE_BF16, test_counts[t], j->value[t]);
        for (int s = 0; s < TEST_STATES; s++) j->state[t][s] = test_zeros(test_counts[t] * sizeof(float));
        j->elements += test_counts[t];
    }
    j->flat_elements = slc_flat_elements(j->elements, mode->ranks);
    for (uint32_t r = 0; r < mode->ranks; r++) j->flat[r] = test_zeros(j->flat_elements * sizeof(float));
    if (fuses) shapes[0].count = j->flat_elements;
    test_exchange_init(&j->exchange, fuses ? 1 : TEST_TENSORS, shapes);
    assert_int_equal(j->onebit.commit(j->onebit.context, mode->ranks, TEST_TENSORS, parameters), SLUICE_OK);
}

void onebit_job_destroy(onebit_job *j)
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

void test_draw_gradients(onebit_job *j, uint64_t step)
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

void test_free_gradients(onebit_job *j)
{
    for (uint32_t t = 0; t < TEST_TENSORS; t++) {
        for (uint32_t r = 0; r < j->mode.ranks; r++) test_release(j->gradient[r][t]);
        test_release(j->average[t]);
    }
}

/* ---- A step as an engine makes it ---- */

sluice_update test_update_of(const onebit_job *j, uint64_t step, uint32_t t, const void *gradient)
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
static sluice_update test_piece_of(const sluice_update *all, uint64_t at, uint64_t piece)
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
static void test_update_pieces(onebit_job *j, uint64_t step, uint64_t piece,
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

static void test_average_step(onebit_job *j, uint64_t step, uint64_t piece)
{
    const sluice_optimizer *o = &j->onebit.optimizer;
    double(*norms)[SLUICE_OPTIMIZER_NORMS_MAX] = test_bytes(TEST_TENSORS * sizeof *norms);
    int64_t(*bins)[SLC_NORM_BINS] = test_bytes(SLUICE_OPTIMIZER_NORMS_MAX * sizeof *bins);
    for (uint32_t t = 0; o->norm_count && t < TEST_TENSORS; t++) {
        int64_t *const sums[] = {bins[0], bins[1], bins[2]};
        memset(bins, 0, SLUICE_OPTIMIZER_NORMS_MAX * sizeof *bins);
        sluice_update all = test_update_of(j, step, t, j->average[t]);
        for (uint64_t at = 0; at < test_counts[t]; at += piece) {
            sluice_update u = test_piece_of(&all, at, piece);
            assert_int_equal(o->measure(&u, sums, o->context), SLUICE_OK);
        }
        for (uint32_t i = 0; i < o->norm_count; i++) norms[t][i] = slc_norm_result(bins[i]);
        for (uint32_t i = o->norm_count; i < o->norm_count + o->maximum_count; i++)
            memcpy(&norms[t][i], bins[i], sizeof norms[t][i]);
        assert_false(j->onebit.agreed(o->context, step, 1, &(slc_agreed){.parameter = t, .norms = norms[t]}));
    }
    test_update_pieces(j, step, piece, norms);
    test_release(norms), test_release(bins);
}

void test_make_unit(onebit_job *j, uint64_t step, uint32_t rank, sluice_update updates[TEST_TENSORS],
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

uint32_t test_exchange_step(onebit_job *j, uint64_t step)
{
    sluice_update updates[TEST_TENSORS];
    slc_onebit_unit unit;
    float *flat[TEST_TENSORS];
    uint32_t *found = test_bytes(sizeof *found);
    *found = UINT32_MAX;
    for (uint32_t r = 0; r < j->mode.ranks; r++) {
        test_make_unit(j, step, r, updates, &unit, flat);
        assert_int_equal(j->onebit.compress(j->onebit.context, &unit, found), SLUICE_OK);
    }
    test_exchange_run(&j->exchange, &j->stream);
    test_make_unit(j, step, 0, updates, &unit, flat);
    assert_int_equal(j->onebit.apply(j->onebit.context, &unit, found), SLUICE_OK);
    for (uint32_t r = 1; r < j->mode.ranks; r++) memcpy(j->flat[r], j->flat[0], j->flat_elements * sizeof(float));
    const uint32_t bad = *found;
    test_release(found);
    return bad;
}

/* Returns the bits of end_step. */
static uint32_t test_end_step(onebit_job *j, uint64_t step)
{
    double made[TEST_STATES][TEST_TENSORS + 1]; /* the last ones are nobody's */
    const double *norms[SLUICE_OPTIMIZER_STATES_MAX] = {0};
    uint32_t wanted = j->onebit.wants_norms(j->onebit.context, step);
    for (int s = 0; s < TEST_STATES; s++) {
        if (!(wanted >> s & 1)) continue;
        for (uint32_t t = 0; t < TEST_TENSORS; t++) {
            int64_t *bins = test_zeros(SLC_NORM_BINS * sizeof *bins);
            assert_int_equal(slc_norm_add(&j->stream, SLUICE_FP32, test_counts[t], j->state[t][s], bins), SLUICE_OK);
            made[s][t] = slc_norm_result(bins);
            test_release(bins);
        }
        made[s][TEST_TENSORS] = 1e30;
        norms[s] = made[s];
    }
    return j->onebit.end_step(j->onebit.context, step, NULL, norms);
}

uint32_t onebit_job_step(onebit_job *j, uint64_t step, uint64_t piece)
{
    slc_step_mode mode = j->onebit.begin_step(j->onebit.context, step, j->rate, false, NULL);
    bool compressed = j->onebit.phase(j->onebit.context, step).compressed;
    assert_int_equal(mode, compressed ? SLC_STEP_EXCHANGE : SLC_STEP_AVERAGE);
    if (compressed && j->mode.exchanged)
        assert_int_equal(test_exchange_step(j, step), UINT32_MAX);
    else
        test_average_step(j, step, piece);
    return test_end_step(j, step);
}

double test_gradient_at(const onebit_job *j, const void *gradient, uint64_t i)
{
    return 0.5 * (j->mode.gradient_dtype == SLUICE_BF16 ? (double)sluice_bf16_to_float(((const uint16_t *)gradient)[i])
                                                        : (double)((const float *)gradient)[i]);
}
