/* The LAMB optimizer must agree over 20 steps with the formula in float64, in one range or many, and must refuse bad
 * settings. */
#include "lib/kernels/norm/norm.h"
#include "lib/optim/lamb.h"
#include "tests/support/optim/two_moments.h"

static const sluice_lamb settings = {
    .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-6, .weight_decay = 0.1, .norm_min = 0, .norm_max = 12};

/* Measures or updates each range by a call of its own, or all by one. */
static void take_ranges(const sluice_optimizer *o, const sluice_update *updates, size_t count, int64_t *const *sums,
                        bool measures, bool together)
{
    if (together) {
        sluice_optimizer_sums all[SLUICE_OPTIMIZER_RANGES_MAX];
        for (size_t i = 0; i < count; i++) all[i] = (sluice_optimizer_sums){{sums[0], sums[1]}};
        assert_int_equal(measures ? o->measure_many(updates, count, all, o->context)
                                  : o->update_many(updates, count, o->context),
                         SLUICE_OK);
        return;
    }
    for (size_t i = 0; i < count; i++)
        assert_int_equal(measures ? o->measure(&updates[i], sums, o->context) : o->update(&updates[i], o->context),
                         SLUICE_OK);
}

/* Runs steps 1..STEPS as the engine does: every range is measured, then every range is updated. */
static void train_by(const sluice_optimizer *optimizer, parameter *p, uint64_t piece, bool no_decay, bool together)
{
    for (uint64_t step = 1; step <= STEPS; step++) {
        float *gradient = test_uniform_floats(COUNT, -0.1f, 0.1f, 100 + step);
        int64_t(*bins)[SLC_NORM_BINS] = test_bytes(2 * sizeof *bins), *const sums[] = {bins[0], bins[1]};
        memset(bins, 0, 2 * sizeof *bins);
        for (int phase = 0; phase < 2; phase++) {
            sluice_update updates[SLUICE_OPTIMIZER_RANGES_MAX];
            size_t count = 0;
            for (uint64_t at = 0; at < COUNT; at += piece) {
                updates[count] = two_moments_range(p, gradient, at, piece, step, no_decay);
                updates[count++].norms = phase ? p->norms : NULL;
            }
            take_ranges(optimizer, updates, count, sums, !phase, together);
            for (int i = 0; i < 2; i++) p->norms[i] = slc_norm_result(bins[i]);
        }
        test_release(gradient), test_release(bins);
    }
}

static void train(const sluice_optimizer *optimizer, parameter *p, uint64_t piece, bool no_decay)
{
    train_by(optimizer, p, piece, no_decay, false);
}

static void train_together(const sluice_optimizer *optimizer, parameter *p, uint64_t piece, bool no_decay)
{
    train_by(optimizer, p, piece, no_decay, true);
}

static void train_in_float64(double *w, double *m, double *v, bool no_decay)
{
    const sluice_lamb *s = &settings;
    double *u = test_doubles(COUNT);
    for (uint64_t step = 1; step <= STEPS; step++) {
        float *gradient = test_uniform_floats(COUNT, -0.1f, 0.1f, 100 + step);
        double c1 = 1 - pow(s->beta1, (double)step), c2 = 1 - pow(s->beta2, (double)step), values = 0, updates = 0;
        for (uint64_t i = 0; i < COUNT; i++) {
            double g = (double)gradient[i];
            m[i] = s->beta1 * m[i] + (1 - s->beta1) * g;
            v[i] = s->beta2 * v[i] + (1 - s->beta2) * g * g;
            u[i] = m[i] / c1 / (sqrt(v[i] / c2) + s->epsilon) + (no_decay ? 0 : s->weight_decay * w[i]);
            values += w[i] * w[i];
            updates += u[i] * u[i];
        }
        double trust = no_decay ? 1 : fmin(sqrt(values), s->norm_max) / sqrt(updates);
        for (uint64_t i = 0; i < COUNT; i++) w[i] -= 1e-2 / (double)step * trust * u[i];
        test_release(gradient);
    }
    free(u);
}

static sluice_status create(sluice_stream *stream, sluice_optimizer *out)
{
    const sluice_status status = slc_lamb_create(&settings, stream, out);
    assert_true(status || out->norm_count == 2);
    return status;
}

/* The clamp was active, unless there was no decay and so no norm. */
static void look_at_norms(const parameter *p, bool no_decay)
{
    assert_true(no_decay ? p->norms[0] == 0 : p->norms[0] > settings.norm_max);
}

static void twenty_steps_agree_with_float64(void **state)
{
    (void)state;
    check_agrees_with_float64("lamb", create, train, train_in_float64, look_at_norms);
}

static void ranges_and_streams_change_no_bit(void **state)
{
    (void)state;
    check_ranges_and_streams_change_no_bit(create, train);
    check_ranges_and_streams_change_no_bit(create, train_together);
}

static void refuses_settings_outside_their_range(void **state)
{
    (void)state;
    sluice_stream stream = test_stream(1);
    const sluice_lamb bad[] = {
        {.beta1 = 1, .beta2 = 0.9, .epsilon = 1e-6, .norm_max = 1},
        {.beta1 = 0.9, .beta2 = NAN, .epsilon = 1e-6, .norm_max = 1},
        {.beta1 = 0.9, .beta2 = 0.9, .epsilon = 0, .norm_max = 1},
        {.beta1 = 0.9, .beta2 = 0.9, .epsilon = 1e-6, .weight_decay = -1, .norm_max = 1},
        {.beta1 = 0.9, .beta2 = 0.9, .epsilon = 1e-6},
        {.beta1 = 0.9, .beta2 = 0.9, .epsilon = 1e-6, .norm_min = 2, .norm_max = 1},
        {.beta1 = 0.9, .beta2 = 0.9, .epsilon = 1e-6, .norm_min = -1, .norm_max = 1},
        {.beta1 = 0.9, .beta2 = 0.9, .epsilon = 1e-6, .norm_max = NAN},
    };
    for (size_t i = 0; i < TEST_COUNT_OF(bad); i++) {
        sluice_optimizer optimizer;
        assert_int_equal(slc_lamb_create(&bad[i], &stream, &optimizer), SLUICE_ERR_ARGUMENT);
    }
    slc_stream_destroy(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twenty_steps_agree_with_float64),
        cmocka_unit_test(ranges_and_streams_change_no_bit),
        cmocka_unit_test(refuses_settings_outside_their_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
