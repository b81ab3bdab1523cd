/* LAMB over several steps and parameters must agree with float64; norms and values must have equal bits for every
 * instruction set, thread count and cut of the parameters into ranges. */
#include "lib/kernels/kernel_test.h"
#include "lib/kernels/lamb/lamb.h"
#include "lib/kernels/lamb/lamb_ref.h"

enum { PARAMETERS = 6, MOST_RANGES = 400, STEPS = 4 };
static const uint64_t counts[PARAMETERS] = {1, 15, 197, 1000, 40003, 64};

static slc_adamw_settings settings_at(int step)
{
    slc_adamw_settings s = {.learning_rate = 3e-2,
                            .beta1 = 0.9,
                            .beta2 = 0.95,
                            .epsilon = 1e-6,
                            .weight_decay = 0.1,
                            .gradient_factor = 0.7};
    s.bias_correction1 = 1 - pow(s.beta1, step);
    s.bias_correction2 = 1 - pow(s.beta2, step);
    return s;
}

typedef struct {
    float *value[PARAMETERS], *exp_avg[PARAMETERS], *exp_avg_sq[PARAMETERS];
    uint16_t *rounded[PARAMETERS];
    void *gradient[PARAMETERS];
    sluice_dtype gradient_dtype;
    bool rounds;
    int64_t bins[PARAMETERS][2][SLC_NORM_BINS]; /* of the last step: values, updates */
} model;

/* Makes six parameters; parameter 1 has no decay, parameter 5 is 0 at first. */
static model *model_create(sluice_dtype gradient_dtype, bool rounds)
{
    model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->gradient_dtype = gradient_dtype;
    m->rounds = rounds;
    for (uint64_t p = 0; p < PARAMETERS; p++) {
        m->value[p] = test_uniform_floats(counts[p], p == 5 ? 0 : -1, p == 5 ? 0 : 1, p);
        m->exp_avg[p] = test_floats(counts[p]);
        m->exp_avg_sq[p] = test_floats(counts[p]);
        m->rounded[p] = (uint16_t *)test_floats(counts[p]);
        memset(m->exp_avg[p], 0, counts[p] * sizeof(float));
        memset(m->exp_avg_sq[p], 0, counts[p] * sizeof(float));
    }
    return m;
}

static void model_destroy(model *m)
{
    for (int p = 0; p < PARAMETERS; p++)
        test_release(m->value[p]), test_release(m->exp_avg[p]), test_release(m->exp_avg_sq[p]),
            test_release(m->rounded[p]);
    test_release(m);
}

static void draw_gradients(void **gradient, sluice_dtype dtype, int step)
{
    for (uint64_t p = 0; p < PARAMETERS; p++)
        gradient[p] = test_uniform_typed(dtype, counts[p], -0.1f, 0.1f, 100 * (uint64_t)step + p);
}

/* Cuts all parameters into ranges of `piece` elements, the last ones first. */
static uint32_t cut(const model *m, uint64_t piece, slc_adamw_range *ranges, uint32_t *parameter)
{
    uint32_t count = 0;
    for (uint32_t p = PARAMETERS; p-- > 0;)
        for (uint64_t at = 0; at < counts[p]; at += piece) {
            assert_true(count < MOST_RANGES);
            parameter[count] = p;
            ranges[count++] = (slc_adamw_range){
                .count = counts[p] - at < piece ? counts[p] - at : piece,
                .gradient_dtype = m->gradient_dtype,
                .gradient = (char *)m->gradient[p] + at * sluice_dtype_bytes(m->gradient_dtype),
                .value = m->value[p] + at,
                .exp_avg = m->exp_avg[p] + at,
                .exp_avg_sq = m->exp_avg_sq[p] + at,
                .rounded = m->rounds ? m->rounded[p] + at : NULL,
                .no_decay = p == 1,
            };
        }
    return count;
}

static void step_of(model *m, uint32_t threads, int step, uint64_t piece)
{
    sluice_stream stream = test_stream(threads);
    slc_adamw_settings settings = settings_at(step);
    slc_adamw_range ranges[MOST_RANGES];
    uint32_t parameter[MOST_RANGES];
    slc_lamb_bins bins[MOST_RANGES];
    double trust[MOST_RANGES];
    draw_gradients(m->gradient, m->gradient_dtype, step);
    uint32_t count = cut(m, piece, ranges, parameter);
    memset(m->bins, 0, sizeof m->bins);
    for (uint32_t i = 0; i < count; i++) bins[i] = (slc_lamb_bins){m->bins[parameter[i]][0], m->bins[parameter[i]][1]};
    assert_int_equal(slc_lamb_measure(&stream, &settings, count, ranges, bins), SLUICE_OK);
    for (uint32_t i = 0; i < count; i++)
        trust[i] = slc_lamb_trust(slc_norm_result(bins[i].value), slc_norm_result(bins[i].update), 0, INFINITY);
    assert_int_equal(slc_lamb_apply(&stream, &settings, count, ranges, trust), SLUICE_OK);
    for (int p = 0; p < PARAMETERS; p++) test_release(m->gradient[p]);
    slc_stream_destroy(&stream);
}

static void agrees_with_float64(void **state)
{
    (void)state;
    TEST_EACH_DTYPE(dtype)
    {
        model *m = model_create(dtype, false);
        double *w[PARAMETERS], *a[PARAMETERS], *b[PARAMETERS];
        for (int p = 0; p < PARAMETERS; p++) {
            w[p] = test_widen(counts[p], m->value[p]);
            a[p] = test_doubles(counts[p]);
            b[p] = test_doubles(counts[p]);
        }
        for (int step = 1; step <= STEPS; step++) {
            step_of(m, 2, step, UINT64_MAX / 2);
            void *gradient[PARAMETERS];
            draw_gradients(gradient, dtype, step);
            slc_adamw_settings settings = settings_at(step);
            for (int p = 0; p < PARAMETERS; p++) {
                double norms[2], *wide = test_widen_typed(dtype, counts[p], gradient[p]);
                slc_lamb_ref(&settings, p == 1, counts[p], wide, w[p], a[p], b[p], norms);
                for (int i = 0; i < 2; i++) {
                    double got = slc_norm_result(m->bins[p][i]);
                    assert_true(fabs(got - norms[i]) <= 1e-6 * norms[i]);
                }
                test_release(wide), test_release(gradient[p]);
            }
        }
        for (int p = 0; p < PARAMETERS; p++) {
            test_close("value", counts[p], m->value[p], w[p], 1e-6);
            test_close("exp_avg", counts[p], m->exp_avg[p], a[p], 1e-6);
            test_close("exp_avg_sq", counts[p], m->exp_avg_sq[p], b[p], 1e-6);
            test_release(w[p]), test_release(a[p]), test_release(b[p]);
        }
        model_destroy(m);
    }
}

static void any_cut_gives_equal_bits(void **state)
{
    (void)state;
    const uint64_t pieces[] = {UINT64_MAX / 2, 40000, 4096, 160, 128};
    for (int variant = 0; variant < 4; variant++) {
        float *first[PARAMETERS][3] = {0};
        int64_t bins[PARAMETERS][2][SLC_NORM_BINS];
        bool begun = false;
        TEST_EACH_ISA(isa)
        for (size_t i = 0; i < TEST_COUNT_OF(pieces); i++) {
            model *m = model_create(variant & 1 ? SLUICE_BF16 : SLUICE_FP32, variant & 2);
            for (int step = 1; step <= STEPS; step++) step_of(m, 1 + (uint32_t)i % 3, step, pieces[i]);
            if (!begun) memcpy(bins, m->bins, sizeof bins);
            begun = true;
            assert_memory_equal(m->bins, bins, sizeof bins);
            for (int p = 0; p < PARAMETERS; p++) {
                test_same_bits("value", counts[p], m->value[p], &first[p][0]);
                test_same_bits("exp_avg", counts[p], m->exp_avg[p], &first[p][1]);
                test_same_bits("exp_avg_sq", counts[p], m->exp_avg_sq[p], &first[p][2]);
                for (uint64_t k = 0; m->rounds && k < counts[p]; k++)
                    assert_int_equal(m->rounded[p][k], sluice_bf16_from_float(m->value[p][k]));
            }
            model_destroy(m);
        }
        for (int p = 0; p < PARAMETERS; p++)
            for (int i = 0; i < 3; i++) test_release(first[p][i]);
    }
}

static void measuring_changes_nothing(void **state)
{
    (void)state;
    enum { COUNT = 100 };
    float *w = test_uniform_floats(COUNT, -1, 1, 1), *a = test_uniform_floats(COUNT, -1, 1, 2),
          *b = test_uniform_floats(COUNT, 0, 1, 3), *g = test_uniform_floats(COUNT, -1, 1, 4);
    float *before[] = {test_copy(COUNT, w), test_copy(COUNT, a), test_copy(COUNT, b)}, *now[] = {w, a, b};
    g[77] = NAN;
    sluice_stream stream = test_stream(1);
    slc_adamw_settings settings = settings_at(2);
    const slc_adamw_range range = {.count = COUNT, .gradient = g, .value = w, .exp_avg = a, .exp_avg_sq = b};
    TEST_EACH_ISA(isa)
    {
        int64_t values[SLC_NORM_BINS] = {0}, updates[SLC_NORM_BINS] = {0};
        const slc_lamb_bins bins = {values, updates};
        assert_int_equal(slc_lamb_measure(&stream, &settings, 1, &range, &bins), SLUICE_OK);
        assert_true(isfinite(slc_norm_result(values)));
        assert_true(isinf(slc_norm_result(updates)));
        for (int i = 0; i < 3; i++) assert_memory_equal(now[i], before[i], COUNT * sizeof(float));
    }
    for (int i = 0; i < 3; i++) test_release(now[i]), test_release(before[i]);
    test_release(g);
    slc_stream_destroy(&stream);
}

static void trust_ratio(void **state)
{
    (void)state;
    assert_true(slc_lamb_trust(3, 2, 0, INFINITY) == 1.5);
    assert_true(slc_lamb_trust(0, 2, 0, INFINITY) == 1);
    assert_true(slc_lamb_trust(3, 0, 0, INFINITY) == 1);
    assert_true(slc_lamb_trust(0, 2, 0.5, 10) == 1);
    assert_true(slc_lamb_trust(30, 2, 0.5, 10) == 5);
    assert_true(slc_lamb_trust(0.1, 2, 0.5, 10) == 0.25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_float64),
        cmocka_unit_test(any_cut_gives_equal_bits),
        cmocka_unit_test(measuring_changes_nothing),
        cmocka_unit_test(trust_ratio),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
