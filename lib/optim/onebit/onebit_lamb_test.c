/* 1-bit LAMB must agree within 2e-6 with its rules written plainly in float64 (DeepSpeed 0.16.4 as executed; native
 * mode as in onebit_lamb.h), where every step starts from the fast code's state. Ranks are simulated in one process. */
#include "lib/optim/onebit/onebit_lamb.h"
#include "lib/optim/lamb.h"
#include "tests/support/optim/onebit_job.h"

enum { STEPS = 9, FREEZE = 4 };
enum { COEFFICIENT, RATIOS, LAST_FACTOR, SCALING, NUMBERS };

/* With decay a factor takes any value up to its maximum; without decay it meets the other bounds. */
static slc_compressed_settings settings_of(bool compat, bool mask, double decay)
{
    return (slc_compressed_settings){
        .lamb = {.beta1 = 0.9, .beta2 = 0.97, .epsilon = 1e-6, .weight_decay = decay, .norm_max = 9},
        .onebit.freeze_step = FREEZE,
        .onebit.compat = compat,
        .onebit.compat_mask = mask,
        .onebit.coefficient_beta = 0.9,
        .onebit.trust_min = 0.01,
        .onebit.trust_max = decay > 0 ? 10 : 0.3,
        .onebit.factor_min = decay > 0 ? 0.01 : 0.5,
        .onebit.factor_max = decay > 0 ? 1.3 : 4,
        .onebit.factor_threshold = decay > 0 ? 0.99 : 0.1};
}

static void job_init(onebit_job *j, const slc_compressed_settings *settings, const onebit_mode *mode)
{
    *j = (onebit_job){.stream = test_stream(mode->threads), .settings = settings, .rate = 1e-2};
    assert_int_equal(slc_onebit_lamb_create(settings, &j->stream, &j->onebit), SLUICE_OK);
    onebit_job_begin(j, mode, settings->onebit.compat);
}

/* Runs a step and checks which step does what. */
static void fast_step(onebit_job *j, uint64_t step, uint64_t piece)
{
    const slc_compressed_settings *c = j->settings;
    slc_compressed_phase phase = j->onebit.phase(j->onebit.context, step);
    assert_int_equal(phase.compressed, step > FREEZE);
    assert_int_equal(phase.fuses, c->onebit.compat);
    assert_int_equal(phase.local_arrays, phase.compressed && c->onebit.compat);
    assert_int_equal(j->onebit.wants_norms(j->onebit.context, step), step == FREEZE ? 1 : 0);
    assert_int_equal(onebit_job_step(j, step, piece), step == FREEZE ? SLC_PHASE_CHANGED | SLC_RESET_ERRORS : 0);
}

/* ---- The rules ---- */

typedef struct {
    double *p[TEST_TENSORS], *m[TEST_TENSORS], *v[TEST_TENSORS], *fresh[TEST_TENSORS], *tail;
    double number[TEST_TENSORS][SLC_PROGRESS_MAX];
    plain_errors errors[TEST_TENSORS];
} plain;

static plain plain_of(const onebit_job *j)
{
    plain s = {.tail = test_widen(j->flat_elements - j->elements, j->flat[0] + j->elements)};
    for (uint32_t t = 0; t < TEST_TENSORS; t++) {
        s.p[t] = test_widen(test_counts[t], j->value[t]);
        s.m[t] = test_widen(test_counts[t], j->state[t][0]);
        s.v[t] = test_widen(test_counts[t], j->state[t][1]);
        s.fresh[t] = test_widen(test_counts[t], j->state[t][2]);
        j->onebit.progress_save(j->onebit.context, t, s.number[t]);
        if (t < j->exchange.group.count) s.errors[t] = plain_errors_of(&j->exchange, t);
    }
    return s;
}

static void plain_destroy(plain *s)
{
    for (uint32_t t = 0; t < TEST_TENSORS; t++) {
        test_release(s->p[t]), test_release(s->m[t]), test_release(s->v[t]), test_release(s->fresh[t]);
        plain_errors_fini(&s->errors[t]);
    }
    test_release(s->tail);
}

static double norm_of(const double *x, uint64_t count)
{
    return rms(x, count) * sqrt((double)count);
}

static double clamp(double x, double low, double high)
{
    return fmax(low, fmin(high, x));
}

static void plain_warm_up(const onebit_job *j, uint64_t step, uint32_t t, plain *s)
{
    const slc_compressed_settings *c = j->settings;
    const double b1 = c->lamb.beta1, b2 = c->lamb.beta2, wd = t == TEST_NO_DECAY ? 0 : c->lamb.weight_decay;
    const double c1 = c->onebit.compat ? 1 : 1 - pow(b1, (double)step),
                 c2 = c->onebit.compat ? 1 : 1 - pow(b2, (double)step);
    double *u = test_doubles(test_counts[t]), *number = s->number[t], trust = 1;
    for (uint64_t i = 0; i < test_counts[t]; i++) {
        double g = test_gradient_at(j, j->average[t], i);
        s->m[t][i] = b1 * s->m[t][i] + (1 - b1) * g;
        s->v[t][i] = b2 * s->v[t][i] + (1 - b2) * g * g;
        u[i] = s->m[t][i] / c1 / (sqrt(s->v[t][i] / c2) + c->lamb.epsilon) + wd * s->p[t][i];
    }
    double wn = norm_of(s->p[t], test_counts[t]), un = norm_of(u, test_counts[t]);
    if (wn != 0 && un != 0)
        trust = c->onebit.compat ? clamp(wn / un, c->onebit.trust_min, c->onebit.trust_max) : fmin(wn, 9) / un;
    if (!c->onebit.compat && t == TEST_NO_DECAY) trust = 1;
    if (trust != 1) {
        number[COEFFICIENT] = 0.9 * number[COEFFICIENT] + 0.1 * clamp(trust, c->onebit.trust_min, c->onebit.trust_max);
        number[RATIOS]++;
    }
    for (uint64_t i = 0; i < test_counts[t]; i++) s->p[t][i] -= j->rate * trust * u[i];
    test_release(u);
}

/* Computes m of all tensors after the exchange, before the mask, in place of the former m. */
static void plain_momenta(const onebit_job *j, plain *s)
{
    const double b1 = 0.9;
    const uint32_t n = j->mode.ranks;
    double *x[MOST_RANKS], *flat = test_doubles(j->flat_elements);
    for (uint32_t r = 0; r < n; r++) {
        double *at = x[r] = test_doubles(j->flat_elements);
        for (uint32_t t = 0; t < TEST_TENSORS; t++)
            for (uint64_t i = 0; i < test_counts[t]; i++) {
                const double kept = b1 * s->m[t][i], added = (1 - b1) * test_gradient_at(j, j->gradient[r][t], i);
                plain_errors *errors = &s->errors[j->fuses ? 0 : t];
                errors->size = fmax(errors->size, (fabs(kept) + fabs(added)) * s->number[t][SCALING]);
                *at++ = (kept + added) * s->number[t][SCALING];
            }
        memcpy(at, s->tail, (j->flat_elements - j->elements) * sizeof *at);
    }
    uint64_t at = 0;
    if (j->fuses) {
        plain_exchange(n, j->flat_elements, j->flat_elements, x, &s->errors[0], flat);
        memcpy(s->tail, flat + j->elements, (j->flat_elements - j->elements) * sizeof *flat);
    }
    for (uint32_t t = 0; t < TEST_TENSORS; at += test_counts[t++]) {
        double *own[MOST_RANKS];
        for (uint32_t r = 0; r < n; r++) own[r] = x[r] + at;
        if (!j->fuses)
            plain_exchange(n, test_counts[t], n * slc_compress_chunk(&j->exchange.group.shapes[t]), own, &s->errors[t],
                           flat + at);
        for (uint64_t i = 0; i < test_counts[t]; i++) s->m[t][i] = flat[at + i] / s->number[t][SCALING];
    }
    for (uint32_t r = 0; r < n; r++) test_release(x[r]);
    test_release(flat);
}

/* Updates tensor t; `last` is its momentum before the step, s->m[t] the new one. */
static void plain_frozen(const onebit_job *j, uint64_t step, uint32_t t, const double *last, plain *s)
{
    const slc_compressed_settings *c = j->settings;
    const double b1 = c->lamb.beta1, b2 = c->lamb.beta2, wd = t == TEST_NO_DECAY ? 0 : c->lamb.weight_decay;
    const bool native = !c->onebit.compat, masks = native || c->onebit.compat_mask;
    const double c1 = native ? 1 - pow(b1, (double)step) : 1, c2 = native ? 1 - pow(b2, FREEZE) : 1,
                 c3 = native ? 1 - pow(b2, (double)step) : 1;
    double *u = test_doubles(test_counts[t]), *up = test_doubles(test_counts[t]), *number = s->number[t], ratio = 0;
    for (uint64_t i = 0; i < test_counts[t]; i++) {
        bool masked = masks && s->v[t][i] == 0;
        if (masked) s->m[t][i] = 0;
        double g = (s->m[t][i] - b1 * last[i]) / (1 - b1), before = step == FREEZE + 1 ? s->v[t][i] : s->fresh[t][i];
        s->fresh[t][i] = b2 * before + (1 - b2) * g * g;
        double below = sqrt(s->v[t][i] / c2) + c->lamb.epsilon;
        if (!(native && masked)) ratio = fmax(ratio, below / (sqrt(s->fresh[t][i] / c3) + c->lamb.epsilon));
        up[i] = s->m[t][i] / c1 / below;
        u[i] = up[i] + wd * s->p[t][i];
    }
    double move = norm_of(up, test_counts[t]), all = norm_of(u, test_counts[t]),
           share = all > 0 ? fmin(1, move / all) : 1;
    double factor = wd > 0 ? ratio * share + 1 - share : ratio, coefficient = number[COEFFICIENT];
    factor = fmax(fmin(factor, c->onebit.factor_max), c->onebit.factor_min);
    factor = fmin(factor, number[LAST_FACTOR] * (1 + c->onebit.factor_threshold));
    factor = fmax(factor, number[LAST_FACTOR] * (1 - c->onebit.factor_threshold));
    if (native && t == TEST_NO_DECAY) factor = 1;
    if (native) coefficient = number[RATIOS] > 0 ? coefficient / (1 - pow(0.9, number[RATIOS])) : 1;
    number[LAST_FACTOR] = factor;
    for (uint64_t i = 0; i < test_counts[t]; i++) s->p[t][i] -= j->rate * coefficient * factor * u[i];
    test_release(u), test_release(up);
}

static void plain_scale(plain *s)
{
    double each[TEST_TENSORS], sum = 0, moving = 0;
    for (uint32_t t = 0; t < TEST_TENSORS; t++) {
        each[t] = rms(s->m[t], test_counts[t]);
        sum += each[t], moving += each[t] > 0;
    }
    for (uint32_t t = 0; t < TEST_TENSORS; t++) s->number[t][SCALING] = each[t] > 0 ? sum / moving / each[t] : 1;
}

static void plain_step(const onebit_job *j, uint64_t step, plain *s)
{
    if (step == 1 && j->fuses) return;
    if (step <= FREEZE) {
        for (uint32_t t = 0; t < TEST_TENSORS; t++) plain_warm_up(j, step, t, s);
        if (step == FREEZE) plain_scale(s);
        return;
    }
    double *last[TEST_TENSORS];
    for (uint32_t t = 0; t < TEST_TENSORS; t++) {
        last[t] = test_doubles(test_counts[t]);
        memcpy(last[t], s->m[t], test_counts[t] * sizeof(double));
        for (uint64_t i = 0; !j->mode.exchanged && i < test_counts[t]; i++)
            s->m[t][i] = 0.9 * s->m[t][i] + (1 - 0.9) * test_gradient_at(j, j->average[t], i);
    }
    if (j->mode.exchanged) plain_momenta(j, s);
    for (uint32_t t = 0; t < TEST_TENSORS; t++) plain_frozen(j, step, t, last[t], s), test_release(last[t]);
}

/* ---- Comparison ---- */

static void check_state(const onebit_job *j, const plain *s, float *const *before, const double *most)
{
    for (uint32_t t = 0; t < TEST_TENSORS; t++) {
        double number[SLC_PROGRESS_MAX];
        j->onebit.progress_save(j->onebit.context, t, number);
        for (int i = 0; i < NUMBERS; i++)
            if (!(fabs(number[i] - s->number[t][i]) <= bar * s->number[t][i]))
                fail_msg("tensor %u: %s is %.9g, not %.9g", t, j->onebit.parameter_progress_name[i], number[i],
                         s->number[t][i]);
        check_momenta(test_counts[t], j->state[t][0], most[t], s->m[t]);
        check_variances(test_counts[t], j->state[t][1], s->v[t]);
        check_variances(test_counts[t], j->state[t][2], s->fresh[t]);
        check_values(test_counts[t], j->value[t], before[t], s->p[t]);
        if (t < j->exchange.group.count) check_errors(&j->exchange, t, &s->errors[t]);
        for (uint64_t i = 0; t % 2 && i < test_counts[t]; i++)
            assert_int_equal(j->rounded[t][i], sluice_bf16_from_float(j->value[t][i]));
    }
    for (uint64_t i = j->elements; i < j->flat_elements; i++)
        assert_true(fabs((double)j->flat[0][i] - s->tail[i - j->elements]) <= bar * fabs(s->tail[i - j->elements]));
}

static void check_mode(const slc_compressed_settings *settings, const onebit_mode *mode)
{
    onebit_job j;
    job_init(&j, settings, mode);
    for (uint64_t step = 1; step <= STEPS; step++) {
        plain s = plain_of(&j);
        float *before[TEST_TENSORS];
        double most[TEST_TENSORS];
        for (uint32_t t = 0; t < TEST_TENSORS; t++) {
            before[t] = test_copy(test_counts[t], j.value[t]);
            most[t] = largest(test_counts[t], s.m[t]);
        }
        test_draw_gradients(&j, step);
        plain_step(&j, step, &s);
        fast_step(&j, step, 160);
        check_state(&j, &s, before, most);
        for (uint32_t t = 0; t < TEST_TENSORS; t++) {
            if (step == 1 && settings->onebit.compat)
                assert_memory_equal(before[t], j.value[t], test_counts[t] * sizeof(float));
            test_release(before[t]);
        }
        test_free_gradients(&j);
        plain_destroy(&s);
    }
    onebit_job_destroy(&j);
}

static void check_modes(bool compat, bool mask, bool exchanged)
{
    TEST_EACH_WAY(way)
    for (uint32_t ranks = 1 + exchanged; ranks <= MOST_RANKS; ranks++)
        for (int decay = 0; decay < 2; decay++) {
            slc_compressed_settings settings = settings_of(compat, mask, decay ? 0.05 : 0);
            check_mode(&settings, &(onebit_mode){ranks, 1, exchanged, ranks == 3 ? SLUICE_BF16 : SLUICE_FP32});
        }
}

static void compat_follows_the_original(void **state)
{
    (void)state;
    check_modes(true, false, true);
    check_modes(true, true, true);
}

static void native_keeps_corrections_and_masks(void **state)
{
    (void)state;
    check_modes(false, true, true);
}

static void tensors_that_are_not_compressed(void **state)
{
    (void)state;
    check_modes(false, true, false);
    check_modes(true, true, false);
}

/* ---- Equal bits ---- */

static void threads_ranges_and_instruction_sets_change_no_bit(void **state)
{
    (void)state;
    const uint64_t pieces[] = {UINT64_MAX / 2, 4096, 16};
    for (int variant = 0; variant < 4; variant++) {
        slc_compressed_settings settings = settings_of(variant & 1, false, 0.05);
        float *first[TEST_TENSORS][4] = {0};
        TEST_EACH_WAY(way)
        for (uint32_t i = 0; i < (test_on_gpu() ? 2 : 3); i++) {
            onebit_job j;
            job_init(&j, &settings, &(onebit_mode){.ranks = 3, .threads = 1 + i, .exchanged = variant & 2});
            for (uint64_t step = 1; step <= STEPS; step++) {
                test_draw_gradients(&j, step);
                fast_step(&j, step, pieces[i]);
                test_free_gradients(&j);
            }
            for (uint32_t t = 0; t < TEST_TENSORS; t++) {
                test_same_bits("value", test_counts[t], j.value[t], &first[t][0]);
                for (int s = 0; s < 3; s++) test_same_bits("state", test_counts[t], j.state[t][s], &first[t][1 + s]);
            }
            onebit_job_destroy(&j);
        }
        for (uint32_t t = 0; t < TEST_TENSORS; t++)
            for (int s = 0; s < 4; s++) test_release(first[t][s]);
    }
}

static void warm_up_is_lamb_to_the_bit(void **state)
{
    (void)state;
    onebit_job j;
    slc_compressed_settings settings = settings_of(false, false, 0.05);
    job_init(&j, &settings, &(onebit_mode){.ranks = 1, .threads = 1});
    sluice_optimizer lamb;
    assert_int_equal(slc_lamb_create(&settings.lamb, &j.stream, &lamb), SLUICE_OK);
    for (uint64_t step = 1; step <= FREEZE; step++) {
        test_draw_gradients(&j, step);
        float *want[TEST_TENSORS][3];
        for (uint32_t t = 0; t < TEST_TENSORS; t++) {
            int64_t bins[2][SLC_NORM_BINS] = {0}, *const sums[] = {bins[0], bins[1]};
            sluice_update u = test_update_of(&j, step, t, j.average[t]);
            want[t][0] = u.value = test_copy(test_counts[t], j.value[t]);
            for (int s = 0; s < 2; s++) want[t][1 + s] = u.state[s] = test_copy(test_counts[t], j.state[t][s]);
            assert_int_equal(lamb.measure(&u, sums, lamb.context), SLUICE_OK);
            u.norms = (double[]){slc_norm_result(bins[0]), slc_norm_result(bins[1])};
            assert_int_equal(lamb.update(&u, lamb.context), SLUICE_OK);
        }
        fast_step(&j, step, 4096);
        for (uint32_t t = 0; t < TEST_TENSORS; t++) {
            assert_memory_equal(want[t][0], j.value[t], test_counts[t] * sizeof(float));
            for (int s = 0; s < 2; s++)
                assert_memory_equal(want[t][1 + s], j.state[t][s], test_counts[t] * sizeof(float));
            for (int s = 0; s < 3; s++) test_release(want[t][s]);
        }
        test_free_gradients(&j);
    }
    slc_adam_destroy(&lamb);
    onebit_job_destroy(&j);
}

/* ---- Hard inputs ---- */

static void check_finite(const onebit_job *j)
{
    for (uint32_t t = 0; t < TEST_TENSORS; t++)
        for (uint64_t i = 0; i < test_counts[t]; i++) {
            assert_true(isfinite(j->value[t][i]));
            for (int s = 0; s < 3; s++) assert_true(isfinite(j->state[t][s][i]));
        }
}

/* If the exchange of the first step after the freeze fails, the next ones must go on from the variance. */
static void the_first_exchange_may_fail(void **state)
{
    (void)state;
    TEST_EACH_WAY(way)
    for (int compat = 0; compat < 2; compat++) {
        onebit_job j;
        slc_compressed_settings settings = settings_of(compat, true, 0.05);
        job_init(&j, &settings, &(onebit_mode){.ranks = 2, .threads = 1, .exchanged = true});
        for (uint64_t step = 1; step <= FREEZE; step++) {
            test_draw_gradients(&j, step);
            fast_step(&j, step, 4096);
            test_free_gradients(&j);
        }
        test_draw_gradients(&j, FREEZE + 1);
        ((float *)j.gradient[1][5])[77] = NAN;
        assert_int_equal(test_exchange_step(&j, FREEZE + 1), compat ? 0 : 5);
        assert_memory_equal(j.state[5][2], j.state[5][1], test_counts[5] * sizeof(float));
        test_free_gradients(&j);
        onebit_job_destroy(&j);
    }
}

/* One rank's gradient of tensor 5 is infinite once: everything that is exchanged with it must stay as it was, on every
 * rank. */
static void infinities_are_skipped(void **state)
{
    (void)state;
    TEST_EACH_WAY(way)
    for (int compat = 0; compat < 2; compat++) {
        onebit_job j;
        slc_compressed_settings settings = settings_of(compat, true, 0.05);
        job_init(&j, &settings, &(onebit_mode){.ranks = 3, .threads = 1, .exchanged = true});
        for (uint64_t step = 1; step <= STEPS; step++) {
            test_draw_gradients(&j, step);
            if (step == FREEZE + 2) {
                float *before[TEST_TENSORS];
                for (uint32_t t = 0; t < TEST_TENSORS; t++) before[t] = test_copy(test_counts[t], j.value[t]);
                ((float *)j.gradient[1][5])[77] = INFINITY;
                assert_int_equal(test_exchange_step(&j, step), compat ? 0 : 5);
                for (uint32_t t = 0; t < TEST_TENSORS; t++) {
                    bool same = !memcmp(before[t], j.value[t], test_counts[t] * sizeof(float));
                    assert_int_equal(same, compat || t == 5 || !test_counts[t]);
                    test_release(before[t]);
                }
                check_finite(&j);
                ((float *)j.gradient[1][5])[77] = 0;
            }
            fast_step(&j, step, 4096);
            check_finite(&j);
            test_free_gradients(&j);
        }
        onebit_job_destroy(&j);
    }
}

static void checkpoints_keep_every_number(void **state)
{
    (void)state;
    onebit_job j;
    slc_compressed_settings settings = settings_of(false, false, 0.05);
    const onebit_mode mode = {.ranks = 2, .threads = 1, .exchanged = true};
    job_init(&j, &settings, &mode);
    for (uint64_t step = 1; step <= FREEZE + 2; step++) {
        test_draw_gradients(&j, step);
        fast_step(&j, step, 4096);
        test_free_gradients(&j);
    }
    double of_job[SLC_PROGRESS_MAX], numbers[TEST_TENSORS][SLC_PROGRESS_MAX], again[SLC_PROGRESS_MAX];
    j.onebit.progress_save(j.onebit.context, UINT32_MAX, of_job);
    for (uint32_t t = 0; t < TEST_TENSORS; t++) j.onebit.progress_save(j.onebit.context, t, numbers[t]);
    onebit_job_destroy(&j);

    job_init(&j, &settings, &mode);
    assert_int_equal(j.onebit.progress_load(j.onebit.context, UINT32_MAX, of_job), SLUICE_OK);
    assert_true(j.onebit.phase(j.onebit.context, FREEZE + 1).compressed);
    for (uint32_t t = 0; t < TEST_TENSORS; t++) {
        assert_int_equal(j.onebit.progress_load(j.onebit.context, t, numbers[t]), SLUICE_OK);
        j.onebit.progress_save(j.onebit.context, t, again);
        assert_memory_equal(again, numbers[t], (NUMBERS + 1) * sizeof *again); /* and the updates at the freeze */
    }
    const double bad[][SLC_PROGRESS_MAX] = {{-1, 0, 1, 1}, {1, 0.5, 1, 1}, {1, 1, 0, 1},
                                            {1, 1, 1, 0},  {NAN, 1, 1, 1}, {1, 1, INFINITY, 1}};
    for (size_t i = 0; i < TEST_COUNT_OF(bad); i++)
        assert_int_equal(j.onebit.progress_load(j.onebit.context, 0, bad[i]), SLUICE_ERR_ARGUMENT);
    assert_int_equal(j.onebit.progress_load(j.onebit.context, TEST_TENSORS, numbers[0]), SLUICE_ERR_ARGUMENT);
    onebit_job_destroy(&j);
}

static void refuses_what_cannot_be(void **state)
{
    (void)state;
    sluice_stream stream = test_stream(1);
    slc_compressed lamb;
    slc_compressed_settings bad[9];
    for (size_t i = 0; i < TEST_COUNT_OF(bad); i++) bad[i] = settings_of(i == 8, false, 0);
    bad[0].lamb.beta1 = 1, bad[1].onebit.freeze_step = 0, bad[2].onebit.coefficient_beta = 1,
    bad[3].onebit.trust_min = 1;
    bad[4].onebit.factor_min = 0, bad[5].onebit.factor_max = 0.1, bad[6].onebit.factor_threshold = NAN,
    bad[7].lamb.norm_max = -1;
    bad[8].onebit.freeze_step = 1;
    for (size_t i = 0; i < TEST_COUNT_OF(bad); i++)
        assert_int_equal(slc_onebit_lamb_create(&bad[i], &stream, &lamb), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), "freeze_step of 2 or more"));
    for (int compat = 0; compat < 2; compat++) { /* only that is refused */
        slc_compressed_settings good = settings_of(compat, false, 0);
        good.onebit.freeze_step = 1 + (uint64_t)compat;
        assert_int_equal(slc_onebit_lamb_create(&good, &stream, &lamb), SLUICE_OK);
        lamb.destroy(lamb.context);
    }
    slc_stream_destroy(&stream);

    for (int compat = 0; compat < 2; compat++) {
        onebit_job j;
        slc_compressed_settings settings = settings_of(compat, false, 0);
        job_init(&j, &settings, &(onebit_mode){.ranks = 2, .threads = 1, .exchanged = true});
        test_draw_gradients(&j, 1);
        sluice_update updates[TEST_TENSORS];
        slc_onebit_unit unit;
        float *flat[TEST_TENSORS];
        uint32_t none = UINT32_MAX;
        test_make_unit(&j, FREEZE, 0, updates, &unit, flat);
        assert_int_equal(j.onebit.compress(j.onebit.context, &unit, &none), SLUICE_ERR_ORDER);
        assert_int_equal(j.onebit.apply(j.onebit.context, &unit, &none), SLUICE_ERR_ORDER);
        assert_int_equal(j.onebit.progress_load(j.onebit.context, UINT32_MAX, (double[]){2, 0, 0}), SLUICE_OK);
        updates[0].count = 63; /* with so few elements the flat array's padded length differs, too */
        assert_int_equal(j.onebit.compress(j.onebit.context, &unit, &none), SLUICE_ERR_ARGUMENT);
        assert_int_equal(j.onebit.apply(j.onebit.context, &unit, &none), SLUICE_ERR_ARGUMENT);
        test_free_gradients(&j);
        onebit_job_destroy(&j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compat_follows_the_original),
        cmocka_unit_test(native_keeps_corrections_and_masks),
        cmocka_unit_test(tensors_that_are_not_compressed),
        cmocka_unit_test(threads_ranges_and_instruction_sets_change_no_bit),
        cmocka_unit_test(warm_up_is_lamb_to_the_bit),
        cmocka_unit_test(infinities_are_skipped),
        cmocka_unit_test(the_first_exchange_may_fail),
        cmocka_unit_test(checkpoints_keep_every_number),
        cmocka_unit_test(refuses_what_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
