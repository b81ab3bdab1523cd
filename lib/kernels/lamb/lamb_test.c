/* LAMB over several steps and parameters must agree with float64; norms and values must have equal bits for every
 * instruction set, on a GPU, for every thread count and cut of the parameters into ranges. */
#include "tests/support/kernels/arrays.h"
#include "lib/kernels/lamb/lamb.h"

enum { PARAMETERS = 6, MOST_RANGES = 400, STEPS = 4 };
static const uint64_t counts[PARAMETERS] = {1, 15, 197, 1000, 40003, 64};
static const slc_lamb_bounds no_bounds = {0, INFINITY, 0, INFINITY};

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
    int64_t (*bins)[2][SLC_NORM_BINS]; /* of each parameter in the last step: values, updates */
    double (*norms)[2];                /* their results */
} model;

/* Makes six parameters; parameter 1 has no decay, parameter 5 is 0 at first. */
static model *model_create(sluice_dtype gradient_dtype, bool rounds)
{
    model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->gradient_dtype = gradient_dtype;
    m->rounds = rounds;
    m->bins = test_bytes(PARAMETERS * sizeof *m->bins);
    m->norms = test_bytes(PARAMETERS * sizeof *m->norms);
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
    test_release(m->bins), test_release(m->norms), test_release(m);
}

static void draw_gradients(void **gradient, sluice_dtype dtype, int step)
{
    for (uint64_t p = 0; p < PARAMETERS; p++) gradient[p] = test_gradients(dtype, counts[p], 100 * (uint64_t)step + p);
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

/* The kernel works the trust ratios out in steps of even numbers. */
static void step_of(model *m, uint32_t threads, int step, uint64_t piece)
{
    sluice_stream stream = test_stream(threads);
    slc_adamw_settings settings = settings_at(step);
    slc_adamw_range ranges[MOST_RANGES];
    uint32_t parameter[MOST_RANGES];
    slc_lamb_bins bins[MOST_RANGES];
    double trust[MOST_RANGES];
    const double *norms[MOST_RANGES];
    draw_gradients(m->gradient, m->gradient_dtype, step);
    uint32_t count = cut(m, piece, ranges, parameter);
    memset(m->bins, 0, PARAMETERS * sizeof *m->bins);
    for (uint32_t i = 0; i < count; i++) bins[i] = (slc_lamb_bins){m->bins[parameter[i]][0], m->bins[parameter[i]][1]};
    assert_int_equal(slc_lamb_measure(&stream, &settings, count, ranges, bins), SLUICE_OK);
    for (int p = 0; p < PARAMETERS; p++)
        for (int i = 0; i < 2; i++) m->norms[p][i] = slc_norm_result(m->bins[p][i]);
    for (uint32_t i = 0; i < count; i++) {
        norms[i] = m->norms[parameter[i]];
        trust[i] = slc_lamb_trust(norms[i][0], norms[i][1], &no_bounds);
    }
    if (step % 2)
        assert_int_equal(slc_lamb_apply(&stream, &settings, count, ranges, trust), SLUICE_OK);
    else
        assert_int_equal(slc_lamb_apply_measured(&stream, &settings, count, ranges, norms, &no_bounds), SLUICE_OK);
    for (int p = 0; p < PARAMETERS; p++) test_release(m->gradient[p]);
    slc_stream_destroy(&stream);
}

static void agrees_with_float64(void **state)
{
    (void)state;
    TEST_EACH_DTYPE(dtype)
    TEST_EACH_WAY(way)
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
    const uint64_t pieces[] = {UINT64_MAX / 2, 4096, 160, 40000, 128};
    for (int variant = 0; variant < 4; variant++) {
        float *first[PARAMETERS][3] = {0};
        int64_t bins[PARAMETERS][2][SLC_NORM_BINS];
        bool begun = false;
        TEST_EACH_WAY(way)
        for (size_t i = 0; i < TEST_SHAPES(pieces, 3); i++) {
            if (test_on_gpu() && pieces[i] < 160) continue; /* hundreds of blocks with little to do */
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

static int64_t *new_bins(void)
{
    int64_t *bins = test_bytes(SLC_NORM_BINS * sizeof *bins);
    memset(bins, 0, SLC_NORM_BINS * sizeof *bins);
    return bins;
}

static void measuring_changes_nothing(void **state)
{
    (void)state;
    enum { COUNT = 100 };
    float *w = test_uniform_floats(COUNT, -1, 1, 1), *a = test_uniform_floats(COUNT, -1, 1, 2),
          *b = test_uniform_floats(COUNT, 0, 1, 3), *g = test_uniform_floats(COUNT, -1, 1, 4);
    float *before[] = {test_copy(COUNT, w), test_copy(COUNT, a), test_copy(COUNT, b)}, *now[] = {w, a, b};
    g[77] = NAN;
    slc_adamw_settings settings = settings_at(2);
    const slc_adamw_range range = {.count = COUNT, .gradient = g, .value = w, .exp_avg = a, .exp_avg_sq = b};
    TEST_EACH_WAY(way)
    {
        sluice_stream stream = test_stream(1);
        int64_t *values = new_bins(), *updates = new_bins();
        const slc_lamb_bins bins = {values, updates};
        assert_int_equal(slc_lamb_measure(&stream, &settings, 1, &range, &bins), SLUICE_OK);
        assert_true(isfinite(slc_norm_result(values)));
        assert_true(isinf(slc_norm_result(updates)));
        for (int i = 0; i < 3; i++) assert_memory_equal(now[i], before[i], COUNT * sizeof(float));
        test_release(values), test_release(updates);
        slc_stream_destroy(&stream);
    }
    for (int i = 0; i < 3; i++) test_release(now[i]), test_release(before[i]);
    test_release(g);
}

/* ---- One parameter with trust ratios and words of all kinds ---- */

enum { ONE = 3001 };

typedef struct {
    float *value, *exp_avg, *exp_avg_sq, *gradient;
    slc_adamw_range range;
} one_parameter;

static one_parameter one_create(void)
{
    one_parameter one = {test_uniform_floats(ONE, -1, 1, 1),
                         test_uniform_floats(ONE, -1, 1, 2),
                         test_uniform_floats(ONE, 0, 1, 3),
                         test_uniform_floats(ONE, -1, 1, 4),
                         {0}};
    one.range = (slc_adamw_range){.count = ONE,
                                  .gradient = one.gradient,
                                  .value = one.value,
                                  .exp_avg = one.exp_avg,
                                  .exp_avg_sq = one.exp_avg_sq};
    return one;
}

static void one_destroy(one_parameter *one)
{
    test_release(one->value), test_release(one->exp_avg), test_release(one->exp_avg_sq), test_release(one->gradient);
}

static void norms_give_the_trust_ratio(void **state)
{
    (void)state;
    const double cases[][2] = {{3, 2}, {0, 2}, {3, 0}, {1e-3, 7}, {30, 2}, {12, 1e-30}, {1e9, 1e7}};
    const slc_lamb_bounds bounds = {0.5, 20, 0.1, 1e6};
    slc_adamw_settings settings = settings_at(2);
    for (size_t c = 0; c <= TEST_COUNT_OF(cases); c++) {
        const bool none = c == TEST_COUNT_OF(cases); /* no norms: the ratio is 1 */
        const double trust = none ? 1 : slc_lamb_trust(cases[c][0], cases[c][1], &bounds);
        float *first[3] = {0};
        TEST_EACH_WAY(way)
        for (int measured = 0; measured < 2; measured++) {
            sluice_stream stream = test_stream(1);
            one_parameter one = one_create();
            double *norms = test_bytes(2 * sizeof *norms);
            if (!none) memcpy(norms, cases[c], sizeof cases[c]);
            const double *given = none ? NULL : norms;
            if (measured)
                assert_int_equal(slc_lamb_apply_measured(&stream, &settings, 1, &one.range, &given, &bounds),
                                 SLUICE_OK);
            else
                assert_int_equal(slc_lamb_apply(&stream, &settings, 1, &one.range, &trust), SLUICE_OK);
            test_same_bits("value", ONE, one.value, &first[0]);
            test_same_bits("exp_avg", ONE, one.exp_avg, &first[1]);
            test_same_bits("exp_avg_sq", ONE, one.exp_avg_sq, &first[2]);
            one_destroy(&one), test_release(norms);
            slc_stream_destroy(&stream);
        }
        for (int i = 0; i < 3; i++) test_release(first[i]);
    }
}

/* A factor in the words must count as one in the settings, and a skipped step must change and measure nothing. */
static void words_are_heeded(void **state)
{
    (void)state;
    const double factor = 1.0 / 3, trust = 0.75;
    for (uint32_t skip = 0; skip < 2; skip++) {
        float *first[3] = {0};
        one_parameter untouched = one_create();
        TEST_EACH_WAY(way)
        for (int told = 0; told < 2; told++) {
            sluice_stream stream = test_stream(1);
            one_parameter one = one_create();
            sluice_step_words *words = test_bytes(sizeof *words);
            int64_t *values = new_bins(), *updates = new_bins();
            const slc_lamb_bins bins = {values, updates};
            slc_adamw_settings settings = settings_at(2);
            *words = (sluice_step_words){factor, skip};
            if (told)
                settings.words = words;
            else
                settings.gradient_factor = factor;
            if (told || !skip) {
                assert_int_equal(slc_lamb_measure(&stream, &settings, 1, &one.range, &bins), SLUICE_OK);
                assert_int_equal(slc_lamb_apply(&stream, &settings, 1, &one.range, &trust), SLUICE_OK);
            }
            assert_true((slc_norm_result(updates) == 0) == skip);
            test_same_bits("value", ONE, one.value, skip ? &untouched.value : &first[0]);
            test_same_bits("exp_avg", ONE, one.exp_avg, skip ? &untouched.exp_avg : &first[1]);
            test_same_bits("exp_avg_sq", ONE, one.exp_avg_sq, skip ? &untouched.exp_avg_sq : &first[2]);
            one_destroy(&one), test_release(words), test_release(values), test_release(updates);
            slc_stream_destroy(&stream);
        }
        one_destroy(&untouched);
        for (int i = 0; i < 3; i++) test_release(first[i]);
    }
}

static void trust_ratio(void **state)
{
    (void)state;
    const slc_lamb_bounds norm = {0.5, 10, 0, INFINITY}, ratio = {0, INFINITY, 0.25, 4};
    assert_true(slc_lamb_trust(3, 2, &no_bounds) == 1.5);
    assert_true(slc_lamb_trust(0, 2, &no_bounds) == 1);
    assert_true(slc_lamb_trust(3, 0, &no_bounds) == 1);
    assert_true(slc_lamb_trust(0, 2, &norm) == 1);
    assert_true(slc_lamb_trust(30, 2, &norm) == 5);
    assert_true(slc_lamb_trust(0.1, 2, &norm) == 0.25);
    assert_true(slc_lamb_trust(3, 2, &ratio) == 1.5);
    assert_true(slc_lamb_trust(9, 2, &ratio) == 4);
    assert_true(slc_lamb_trust(1, 8, &ratio) == 0.25);
    assert_true(slc_lamb_trust(0, 8, &ratio) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_float64),       cmocka_unit_test(any_cut_gives_equal_bits),
        cmocka_unit_test(measuring_changes_nothing), cmocka_unit_test(norms_give_the_trust_ratio),
        cmocka_unit_test(words_are_heeded),          cmocka_unit_test(trust_ratio),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
