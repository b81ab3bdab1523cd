/* 1-bit Adam must agree within 2e-6 with the rules written plainly in float64 (DeepSpeed 0.16.4 as executed; native
 * mode with Adam's corrections), where every step starts from the fast code's state. Ranks are simulated in one
 * process. It must also freeze when it should. */
#include "lib/optim/adamw.h"
#include "lib/optim/onebit/onebit_adam.h"
#include "tests/support/optim/onebit_job.h"

enum { STEPS = 9, FREEZE = 4 };
static const sluice_adamw adam = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01};

static void job_init(onebit_job *j, const slc_compressed_settings *settings, const onebit_mode *mode)
{
    *j = (onebit_job){.stream = test_stream(mode->threads), .settings = settings, .rate = 1e-3};
    assert_int_equal(slc_onebit_adam_create(settings, &j->stream, &j->onebit), SLUICE_OK);
    onebit_job_begin(j, mode, false);
}

static void fast_step(onebit_job *j, uint64_t step, uint64_t piece)
{
    assert_int_equal(j->onebit.phase(j->onebit.context, step).compressed, step > FREEZE);
    assert_int_equal(j->onebit.wants_norms(j->onebit.context, step), 0);
    assert_int_equal(onebit_job_step(j, step, piece), step == FREEZE ? SLC_PHASE_CHANGED | SLC_RESET_ERRORS : 0);
}

/* ---- The rules ---- */

typedef struct {
    double *p, *m, *v;
    plain_errors errors;
} plain;

static plain plain_of(const onebit_job *j, uint32_t t)
{
    return (plain){test_widen(test_counts[t], j->value[t]), test_widen(test_counts[t], j->state[t][0]),
                   test_widen(test_counts[t], j->state[t][1]), plain_errors_of(&j->exchange, t)};
}

static void plain_destroy(plain *s)
{
    test_release(s->p), test_release(s->m), test_release(s->v);
    plain_errors_fini(&s->errors);
}

static void plain_momentum(const onebit_job *j, uint32_t t, plain *s)
{
    const uint64_t count = test_counts[t];
    double *x[MOST_RANKS];
    for (uint32_t r = 0; r < j->mode.ranks; r++) {
        x[r] = test_doubles(count);
        for (uint64_t i = 0; i < count; i++) {
            const double kept = adam.beta1 * s->m[i],
                         added = (1 - adam.beta1) * test_gradient_at(j, j->gradient[r][t], i);
            s->errors.size = fmax(s->errors.size, fabs(kept) + fabs(added));
            x[r][i] = kept + added;
        }
    }
    plain_exchange(j->mode.ranks, count, j->mode.ranks * slc_compress_chunk(&j->exchange.group.shapes[t]), x,
                   &s->errors, s->m);
    for (uint32_t r = 0; r < j->mode.ranks; r++) test_release(x[r]);
}

static void plain_step(const onebit_job *j, uint64_t step, uint32_t t, plain *s)
{
    const slc_compressed_settings *c = j->settings;
    const double b1 = adam.beta1, b2 = adam.beta2, wd = t == TEST_NO_DECAY ? 0 : adam.weight_decay;
    bool frozen = step > FREEZE, compressed = frozen && j->mode.exchanged;
    if (c->onebit.compat && step == 1) return;
    double c1 = c->onebit.compat ? 1 : 1 - pow(b1, (double)step);
    double c2 = c->onebit.compat ? 1 : 1 - pow(b2, (double)(frozen ? FREEZE : step));
    if (compressed) plain_momentum(j, t, s);
    for (uint64_t i = 0; i < test_counts[t]; i++) {
        double g = test_gradient_at(j, j->average[t], i);
        if (!compressed) s->m[i] = b1 * s->m[i] + (1 - b1) * g;
        if (!frozen) s->v[i] = b2 * s->v[i] + (1 - b2) * g * g;
        if (frozen && (c->onebit.compat_mask || !c->onebit.compat) && s->v[i] == 0) s->m[i] = 0;
        double u = s->m[i] / c1 / (sqrt(s->v[i]) / sqrt(c2) + adam.epsilon) + wd * s->p[i];
        s->p[i] -= j->rate * u;
    }
}

/* ---- Comparison ---- */

static void check_tensor(const onebit_job *j, uint32_t t, const plain *s, const float *before, double most)
{
    check_momenta(test_counts[t], j->state[t][0], most, s->m);
    check_variances(test_counts[t], j->state[t][1], s->v);
    check_values(test_counts[t], j->value[t], before, s->p);
    check_errors(&j->exchange, t, &s->errors);
    for (uint64_t i = 0; t % 2 && i < test_counts[t]; i++)
        assert_int_equal(j->rounded[t][i], sluice_bf16_from_float(j->value[t][i]));
}

static void check_mode(const slc_compressed_settings *settings, const onebit_mode *mode)
{
    onebit_job j;
    job_init(&j, settings, mode);
    for (uint64_t step = 1; step <= STEPS; step++) {
        plain s[TEST_TENSORS];
        float *before[TEST_TENSORS];
        double most[TEST_TENSORS];
        test_draw_gradients(&j, step);
        for (uint32_t t = 0; t < TEST_TENSORS; t++) {
            s[t] = plain_of(&j, t);
            before[t] = test_copy(test_counts[t], j.value[t]);
            most[t] = largest(test_counts[t], s[t].m);
            plain_step(&j, step, t, &s[t]);
        }
        fast_step(&j, step, 160);
        for (uint32_t t = 0; t < TEST_TENSORS; t++) {
            check_tensor(&j, t, &s[t], before[t], most[t]);
            plain_destroy(&s[t]), test_release(before[t]);
        }
        test_free_gradients(&j);
    }
    onebit_job_destroy(&j);
}

static void check_modes(bool compat, bool mask, bool exchanged)
{
    const slc_compressed_settings settings = {
        .adamw = adam, .onebit.freeze_step = FREEZE, .onebit.compat = compat, .onebit.compat_mask = mask};
    TEST_EACH_WAY(way)
    for (uint32_t ranks = 1 + exchanged; ranks <= MOST_RANKS; ranks++)
        check_mode(&settings, &(onebit_mode){ranks, 1, exchanged, ranks == 3 ? SLUICE_BF16 : SLUICE_FP32});
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
    check_modes(false, false, true);
}

static void tensors_that_are_not_compressed(void **state)
{
    (void)state;
    check_modes(false, false, false);
    check_modes(true, true, false);
}

/* ---- Equal bits ---- */

static void threads_ranges_and_instruction_sets_change_no_bit(void **state)
{
    (void)state;
    const slc_compressed_settings settings = {.adamw = adam, .onebit.freeze_step = FREEZE};
    for (int exchanged = 0; exchanged < 2; exchanged++) {
        float *first[TEST_TENSORS][3] = {0};
        TEST_EACH_WAY(way)
        for (uint32_t i = 0; i < (test_on_gpu() ? 2 : 3); i++) {
            onebit_job j;
            job_init(&j, &settings, &(onebit_mode){.ranks = 3, .threads = 1 + i, .exchanged = exchanged});
            for (uint64_t step = 1; step <= STEPS; step++) {
                test_draw_gradients(&j, step);
                fast_step(&j, step, (uint64_t[]){UINT64_MAX / 2, 4096, 16}[i]);
                test_free_gradients(&j);
            }
            for (uint32_t t = 0; t < TEST_TENSORS; t++) {
                test_same_bits("value", test_counts[t], j.value[t], &first[t][0]);
                for (int s = 0; s < 2; s++) test_same_bits("state", test_counts[t], j.state[t][s], &first[t][1 + s]);
            }
            onebit_job_destroy(&j);
        }
        for (uint32_t t = 0; t < TEST_TENSORS; t++)
            for (int s = 0; s < 3; s++) test_release(first[t][s]);
    }
}

static void warm_up_is_adamw_to_the_bit(void **state)
{
    (void)state;
    const slc_compressed_settings settings = {.adamw = adam, .onebit.freeze_step = FREEZE};
    onebit_job j;
    job_init(&j, &settings, &(onebit_mode){.ranks = 1, .threads = 1});
    sluice_optimizer adamw;
    assert_int_equal(slc_adamw_create(&adam, &j.stream, &adamw), SLUICE_OK);
    for (uint64_t step = 1; step <= FREEZE; step++) {
        float *want[TEST_TENSORS][3];
        test_draw_gradients(&j, step);
        for (uint32_t t = 0; t < TEST_TENSORS; t++) {
            sluice_update u = test_update_of(&j, step, t, j.average[t]);
            want[t][0] = u.value = test_copy(test_counts[t], j.value[t]);
            for (int s = 0; s < 2; s++) want[t][1 + s] = u.state[s] = test_copy(test_counts[t], j.state[t][s]);
            assert_int_equal(adamw.update(&u, adamw.context), SLUICE_OK);
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
    slc_adam_destroy(&adamw);
    onebit_job_destroy(&j);
}

/* ---- The freeze ---- */

static uint64_t first_frozen_step(const slc_compressed_settings *settings, double growth)
{
    sluice_stream stream = test_stream(1);
    slc_compressed o;
    assert_int_equal(slc_onebit_adam_create(settings, &stream, &o), SLUICE_OK);
    const slc_compressed_parameter parameters[2] = {{.count = 3}, {.count = 4}};
    assert_int_equal(o.commit(o.context, 2, 2, parameters), SLUICE_OK);
    uint64_t step = 1;
    for (; step < 1000 && !o.phase(o.context, step).compressed; step++) {
        double norm = 1 + growth / (double)step;
        double v = settings->onebit.compat ? norm : norm * (1 - pow(settings->adamw.beta2, (double)step));
        const double each[2] = {0.6 * v, 0.8 * v};
        bool looks = o.wants_norms(o.context, step) == 1 << 1;
        o.end_step(o.context, step, NULL, (const double *[SLUICE_OPTIMIZER_STATES_MAX]){NULL, looks ? each : NULL});
    }
    o.destroy(o.context);
    slc_stream_destroy(&stream);
    return step;
}

static void freezes_when_it_is_time(void **state)
{
    (void)state;
    slc_compressed_settings s = {.adamw = {0.9, 0.9, 1e-8, 0}, .onebit.freeze_step = 1};
    assert_int_equal(first_frozen_step(&s, 0), 2);
    s.onebit.freeze_step = 5;
    assert_int_equal(first_frozen_step(&s, 0), 6);
    s.onebit.compat = true;
    assert_int_equal(first_frozen_step(&s, 0), 6);
    for (s.onebit.freeze_step = 1; s.onebit.freeze_step <= 2; s.onebit.freeze_step++)
        assert_int_equal(first_frozen_step(&s, 0), 3);

    /* The criterion looks every ten steps: 1 + 10/t is 2, 1.5, 1.333, 1.25, 1.2 at steps 10 to 50, so the changes are
     * .333, .125, .067, .042. */
    s.onebit.freeze_step = 0;
    const double changes[] = {0.4, 0.3, 0.1, 0.05};
    const uint64_t frozen[] = {21, 31, 41, 51};
    for (int compat = 0; compat < 2; compat++)
        for (size_t i = 0; i < TEST_COUNT_OF(changes); i++) {
            s.onebit.compat = compat, s.onebit.freeze_change = changes[i];
            assert_int_equal(first_frozen_step(&s, 10), frozen[i]);
        }
}

/* ---- Hard inputs ---- */

/* One rank's gradient of a tensor is infinite once: that tensor must stay as it was, on every rank, and then go on. */
static void infinities_are_skipped(void **state)
{
    (void)state;
    const slc_compressed_settings settings = {.adamw = adam, .onebit.freeze_step = FREEZE};
    onebit_job j;
    job_init(&j, &settings, &(onebit_mode){.ranks = 3, .threads = 1, .exchanged = true});
    for (uint64_t step = 1; step <= STEPS; step++) {
        test_draw_gradients(&j, step);
        if (step == FREEZE + 2) {
            float *before = test_copy(test_counts[5], j.value[5]);
            ((float *)j.gradient[1][5])[77] = INFINITY;
            assert_int_equal(test_exchange_step(&j, step), 5);
            assert_memory_equal(before, j.value[5], test_counts[5] * sizeof(float));
            ((float *)j.gradient[1][5])[77] = 0;
            test_release(before);
        }
        fast_step(&j, step, 4096);
        test_free_gradients(&j);
        for (uint32_t t = 0; t < TEST_TENSORS; t++)
            for (uint64_t i = 0; i < test_counts[t]; i++)
                assert_true(isfinite(j.value[t][i]) && isfinite(j.state[t][0][i]) && isfinite(j.state[t][1][i]));
    }
    onebit_job_destroy(&j);
}

/* One server's result is infinite, though all that ranks sent is finite: no element of that tensor may move, also not
 * those of other servers, and every rank learns which tensor it is. */
static void one_infinite_result_spares_the_tensor(void **state)
{
    (void)state;
    const slc_compressed_settings settings = {.adamw = adam, .onebit.freeze_step = FREEZE};
    onebit_job j;
    job_init(&j, &settings, &(onebit_mode){.ranks = 3, .threads = 1, .exchanged = true});
    for (uint64_t step = 1; step <= FREEZE + 2; step++) {
        test_draw_gradients(&j, step);
        fast_step(&j, step, 4096);
        test_free_gradients(&j);
    }
    test_draw_gradients(&j, FREEZE + 3);
    sluice_update updates[TEST_TENSORS];
    slc_onebit_unit unit;
    float *flat[TEST_TENSORS];
    uint32_t bad = UINT32_MAX;
    for (uint32_t r = 0; r < 3; r++) {
        test_make_unit(&j, FREEZE + 3, r, updates, &unit, flat);
        assert_int_equal(j.onebit.compress(j.onebit.context, &unit, &bad), SLUICE_OK);
    }
    test_exchange_run(&j.exchange, &j.stream);
    assert_int_equal(bad, UINT32_MAX);
    const float infinite = INFINITY;
    memcpy(j.exchange.results + j.exchange.group.stride + j.exchange.group.offsets[5], &infinite, sizeof infinite);
    float *value = test_copy(test_counts[5], j.value[5]), *momentum = test_copy(test_counts[5], j.state[5][0]);
    float *other = test_copy(test_counts[0], j.value[0]);
    assert_int_equal(j.onebit.apply(j.onebit.context, &unit, &bad), SLUICE_OK);
    assert_int_equal(bad, 5);
    assert_memory_equal(value, j.value[5], test_counts[5] * sizeof *value);
    assert_memory_equal(momentum, j.state[5][0], test_counts[5] * sizeof *momentum);
    assert_memory_not_equal(other, j.value[0], test_counts[0] * sizeof *other);
    test_release(value), test_release(momentum), test_release(other);
    test_free_gradients(&j);
    onebit_job_destroy(&j);
}

static void refuses_what_cannot_be(void **state)
{
    (void)state;
    sluice_stream stream = test_stream(1);
    slc_compressed onebit;
    slc_compressed_settings s = {.adamw = adam};
    assert_int_equal(slc_onebit_adam_create(&s, &stream, &onebit), SLUICE_ERR_ARGUMENT);
    s.onebit.freeze_change = NAN;
    assert_int_equal(slc_onebit_adam_create(&s, &stream, &onebit), SLUICE_ERR_ARGUMENT);
    s.onebit.freeze_step = 3, s.adamw.beta1 = 1;
    assert_int_equal(slc_onebit_adam_create(&s, &stream, &onebit), SLUICE_ERR_ARGUMENT);
    slc_stream_destroy(&stream);

    onebit_job j;
    sluice_update updates[TEST_TENSORS];
    slc_onebit_unit unit;
    float *flat[TEST_TENSORS];
    uint32_t bad = UINT32_MAX;
    s.adamw = adam;
    job_init(&j, &s, &(onebit_mode){.ranks = 2, .threads = 1, .exchanged = true});
    test_draw_gradients(&j, 1);
    test_make_unit(&j, 3, 0, updates, &unit, flat);
    assert_int_equal(j.onebit.compress(j.onebit.context, &unit, &bad), SLUICE_ERR_ORDER);
    assert_int_equal(j.onebit.apply(j.onebit.context, &unit, &bad), SLUICE_ERR_ORDER);
    const double bad_progress[][3] = {{0.5, 0, 0}, {-1, 0, 0}, {2, 0, NAN}, {2, 0x1p60, 0}};
    for (size_t i = 0; i < TEST_COUNT_OF(bad_progress); i++)
        assert_int_equal(j.onebit.progress_load(j.onebit.context, UINT32_MAX, bad_progress[i]), SLUICE_ERR_ARGUMENT);
    assert_int_equal(j.onebit.progress_load(j.onebit.context, UINT32_MAX, (double[]){2, 0, 0}), SLUICE_OK);
    const double bad_updates[] = {3, 1.5, -1}; /* of a parameter, by the freeze at 2 */
    for (size_t i = 0; i < TEST_COUNT_OF(bad_updates); i++)
        assert_int_equal(j.onebit.progress_load(j.onebit.context, 1, &bad_updates[i]), SLUICE_ERR_ARGUMENT);
    assert_int_equal(j.onebit.progress_load(j.onebit.context, 1, (double[]){NAN}), SLUICE_OK);
    updates[1].count = 69;
    assert_int_equal(j.onebit.compress(j.onebit.context, &unit, &bad), SLUICE_ERR_ARGUMENT);
    assert_int_equal(j.onebit.apply(j.onebit.context, &unit, &bad), SLUICE_ERR_ARGUMENT);
    test_free_gradients(&j);
    onebit_job_destroy(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compat_follows_the_original),
        cmocka_unit_test(native_keeps_corrections_and_masks),
        cmocka_unit_test(tensors_that_are_not_compressed),
        cmocka_unit_test(threads_ranges_and_instruction_sets_change_no_bit),
        cmocka_unit_test(warm_up_is_adamw_to_the_bit),
        cmocka_unit_test(freezes_when_it_is_time),
        cmocka_unit_test(infinities_are_skipped),
        cmocka_unit_test(one_infinite_result_spares_the_tensor),
        cmocka_unit_test(refuses_what_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
