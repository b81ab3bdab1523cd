/* 1-bit Adam against the rules written plainly in float64 (DeepSpeed 0.16.4 as executed; native mode with Adam's
 * corrections), every step started from the state that the fast one has: all within 2e-6. Ranks are simulated in one
 * process. And when it freezes. */
#include "lib/kernels/kernel_test.h"
#include "lib/optim/onebit_adam.h"

enum { MOST_RANKS = 4, STEPS = 12, FREEZE = 4 };
static const double rate = 1e-3, bar = 2e-6;
static const sluice_adamw adam = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01};

typedef struct {
    uint32_t ranks;
    uint64_t count;
    bool compat, mask, compressed;
} mode;

/* ---- The rules ---- */

typedef struct {
    double *p, *m, *v, *we[MOST_RANKS], *se[MOST_RANKS];
} plain;

static double sign_of(double x)
{
    return x < 0 ? -1 : 1;
}

static double rms(const double *x, uint64_t count)
{
    double squares = 0;
    for (uint64_t i = 0; i < count; i++) squares += x[i] * x[i];
    return sqrt(squares / (double)count);
}

/* x of all ranks; out: what every rank gets. */
static void compressed_allreduce(uint32_t n, uint64_t numel, uint64_t all, double *const *x, plain *s, double *out)
{
    uint64_t chunk = all / n;
    double *sign[MOST_RANKS], ws[MOST_RANKS];
    for (uint32_t r = 0; r < n; r++) {
        sign[r] = test_doubles(all);
        for (uint64_t i = 0; i < all; i++) s->we[r][i] += i < numel ? x[r][i] : 0;
        ws[r] = rms(s->we[r], all);
        for (uint64_t i = 0; i < all; i++) sign[r][i] = sign_of(s->we[r][i]);
        for (uint64_t i = 0; i < all; i++) s->we[r][i] -= ws[r] * sign[r][i];
    }
    for (uint32_t k = 0; k < n; k++) {
        double *a = s->se[k];
        for (uint64_t i = 0; i < chunk; i++)
            for (uint32_t r = 0; r < n; r++) a[i] += sign[r][k * chunk + i] * ws[r] / n;
        double ss = rms(a, chunk);
        for (uint64_t i = 0; i < chunk; i++) {
            double t = sign_of(a[i]);
            if (k * chunk + i < numel) out[k * chunk + i] = ss * t;
            a[i] -= ss * t;
        }
    }
    for (uint32_t r = 0; r < n; r++) free(sign[r]);
}

/* g: of each rank; the averaged one in g[0] where gradients are averaged. */
static void plain_step(const mode *c, uint64_t step, uint64_t frozen_at, uint64_t all, float *const *g, plain *s)
{
    const double b1 = adam.beta1, b2 = adam.beta2;
    bool frozen = frozen_at && step > frozen_at;
    if (c->compat && step == 1) return;
    double c1 = c->compat ? 1 : 1 - pow(b1, (double)step);
    double c2 = c->compat ? 1 : 1 - pow(b2, (double)(frozen ? frozen_at : step));
    if (frozen && c->compressed) {
        double *x[MOST_RANKS];
        for (uint32_t r = 0; r < c->ranks; r++) {
            x[r] = test_doubles(c->count);
            for (uint64_t i = 0; i < c->count; i++) x[r][i] = b1 * s->m[i] + (1 - b1) * (double)g[r][i];
        }
        compressed_allreduce(c->ranks, c->count, all, x, s, s->m);
        for (uint32_t r = 0; r < c->ranks; r++) free(x[r]);
    }
    for (uint64_t i = 0; i < c->count; i++) {
        double gradient = (double)g[0][i];
        if (!frozen || !c->compressed) s->m[i] = b1 * s->m[i] + (1 - b1) * gradient;
        if (!frozen) s->v[i] = b2 * s->v[i] + (1 - b2) * gradient * gradient;
        if (frozen && c->mask && s->v[i] == 0) s->m[i] = 0;
        double u = s->m[i] / c1 / (sqrt(s->v[i]) / sqrt(c2) + adam.epsilon) + adam.weight_decay * s->p[i];
        s->p[i] -= rate * u;
    }
}

/* ---- The fast one ---- */

typedef struct {
    mode mode;
    slc_compress_shape shape;
    uint64_t chunk, stride;
    slc_stream stream;
    slc_compressed onebit;
    float *value, *state[2], *gradient[MOST_RANKS];
    slc_residue worker[MOST_RANKS], server[MOST_RANKS];
    char *packets[MOST_RANKS], *results;
    uint64_t offset;
    slc_compress_group group;
} job;

static void *zeroed(uint64_t bytes)
{
    void *x = aligned_alloc(64, (bytes + 127) / 64 * 64);
    assert_non_null(x);
    return memset(x, 0, (bytes + 127) / 64 * 64);
}

static void job_init(job *j, const mode *c)
{
    *j = (job){.mode = *c, .shape = {c->count, 0, c->ranks}, .stream = test_stream(1)};
    const slc_onebit_adam_settings settings = {
        .adam = adam, .freeze_step = FREEZE, .compat = c->compat, .mask = c->mask};
    assert_int_equal(slc_onebit_adam_create(&settings, &j->stream, &j->onebit), SLUICE_OK);
    const slc_compressed_parameter parameter = {.count = c->count};
    assert_int_equal(j->onebit.commit(j->onebit.context, c->ranks, 1, &parameter), SLUICE_OK);
    j->chunk = slc_compress_chunk(&j->shape), j->stride = slc_compress_stride(&j->shape);
    j->group = (slc_compress_group){1, &j->shape, &j->offset, j->stride, j->stride};
    j->value = test_uniform_floats(c->count, -1, 1, 7);
    for (int i = 0; i < 2; i++) j->state[i] = zeroed(c->count * sizeof(float));
    for (uint32_t r = 0; r < c->ranks; r++) {
        j->worker[r] = (slc_residue){zeroed(c->ranks * j->chunk * 4), zeroed(c->ranks * 4)};
        j->server[r] = (slc_residue){zeroed(j->chunk * 4), zeroed(4)};
        j->packets[r] = zeroed(c->ranks * j->stride);
    }
    j->results = zeroed(c->ranks * j->stride);
}

static void job_destroy(job *j)
{
    for (uint32_t r = 0; r < j->mode.ranks; r++) {
        free(j->worker[r].sum), free(j->worker[r].scale), free(j->server[r].sum), free(j->server[r].scale);
        free(j->packets[r]);
    }
    free(j->results), free(j->value), free(j->state[0]), free(j->state[1]);
    j->onebit.destroy(j->onebit.context);
    slc_stream_destroy(&j->stream);
}

static sluice_update update_of(const job *j, uint64_t step, uint32_t rank)
{
    return (sluice_update){.value = j->value,
                           .gradient = j->gradient[rank],
                           .state = {j->state[0], j->state[1]},
                           .count = j->mode.count,
                           .step = step,
                           .learning_rate = rate,
                           .gradient_factor = 1};
}

static slc_step_mode mode_at(job *j, uint64_t step)
{
    return j->onebit.begin_step(j->onebit.context, step, rate, false);
}

static void end_step(job *j, uint64_t step)
{
    assert_int_equal(j->onebit.wants_norms(j->onebit.context, step), 0);
    uint32_t bits = j->onebit.end_step(j->onebit.context, step, (const double *[SLUICE_OPTIMIZER_STATES_MAX]){0});
    assert_int_equal(bits, step == FREEZE ? SLC_PHASE_CHANGED | SLC_RESET_ERRORS : 0);
}

static slc_onebit_unit unit_of(job *j, const sluice_update *update, uint32_t rank)
{
    return (slc_onebit_unit){.tensor_count = 1,
                             .tensors = update,
                             .group = &j->group,
                             .workers = &j->worker[rank],
                             .packets = j->packets[rank],
                             .results = j->results};
}

/* What an engine does in a step, for all ranks. */
static void fast_step(job *j, uint64_t step)
{
    sluice_update update = update_of(j, step, 0);
    if (mode_at(j, step) != SLC_STEP_EXCHANGE || !j->mode.compressed) {
        assert_int_equal(j->onebit.optimizer.update(&update, j->onebit.context), SLUICE_OK);
    } else {
        uint32_t bad = UINT32_MAX;
        for (uint32_t r = 0; r < j->mode.ranks; r++) {
            sluice_update own = update_of(j, step, r);
            slc_onebit_unit unit = unit_of(j, &own, r);
            assert_int_equal(j->onebit.compress(j->onebit.context, &unit, &bad), SLUICE_OK);
        }
        for (uint32_t k = 0; k < j->mode.ranks; k++) {
            const void *packets[MOST_RANKS];
            int64_t bins[SLC_NORM_BINS] = {0};
            for (uint32_t r = 0; r < j->mode.ranks; r++) packets[r] = j->packets[r] + k * j->stride;
            char *result = j->results + k * j->stride;
            slc_compress_server(&j->stream, &j->shape, packets, 0, j->chunk, &j->server[k], bins, result);
            slc_compress_server_end(&j->shape, &j->server[k], bins, result);
        }
        slc_onebit_unit unit = unit_of(j, &update, 0);
        assert_int_equal(j->onebit.apply(j->onebit.context, &unit, &bad), SLUICE_OK);
        assert_int_equal(bad, UINT32_MAX);
    }
    end_step(j, step);
}

/* ---- One beside the other ---- */

static double *error_of(const slc_residue *residue, uint64_t count)
{
    double *error = test_doubles(count), scale = (double)residue->scale[0];
    for (uint64_t i = 0; i < count; i++) error[i] = (double)residue->sum[i] - scale * sign_of((double)residue->sum[i]);
    return error;
}

static plain plain_of(const job *j)
{
    plain s = {test_widen(j->mode.count, j->value),
               test_widen(j->mode.count, j->state[0]),
               test_widen(j->mode.count, j->state[1]),
               {0},
               {0}};
    for (uint32_t r = 0; r < j->mode.ranks; r++) {
        s.we[r] = error_of(&j->worker[r], j->mode.ranks * j->chunk);
        s.se[r] = error_of(&j->server[r], j->chunk);
    }
    return s;
}

static void plain_destroy(plain *s, uint32_t ranks)
{
    for (uint32_t r = 0; r < ranks; r++) free(s->we[r]), free(s->se[r]);
    free(s->p), free(s->m), free(s->v);
}

static void check_errors(const slc_residue *residue, uint64_t count, const double *want)
{
    double *got = error_of(residue, count), scale = (double)residue->scale[0];
    for (uint64_t i = 0; i < count; i++) assert_true(fabs(got[i] - want[i]) <= bar * (fabs(want[i]) + scale));
    free(got);
}

static double largest(uint64_t count, const double *x)
{
    double most = 0;
    for (uint64_t i = 0; i < count; i++) most = fmax(most, fabs(x[i]));
    return most;
}

/* largest_before: of the momentum; a tensor of one element may have lost all of it. */
static void check_state(const job *j, const plain *s, const float *before, double largest_before)
{
    double most = fmax(largest_before, largest(j->mode.count, s->m));
    for (uint64_t i = 0; i < j->mode.count; i++) {
        double p = (double)j->value[i], old = (double)before[i];
        if (!(fabs(p - s->p[i]) <= bar * (fabs(old) + fabs(s->p[i]))))
            fail_msg("value %llu: %.9g, not %.9g", (unsigned long long)i, p, s->p[i]);
        if (!(fabs((double)j->state[0][i] - s->m[i]) <= bar * most))
            fail_msg("momentum %llu of %llu: %.9g, not %.9g", (unsigned long long)i, (unsigned long long)j->mode.count,
                     (double)j->state[0][i], s->m[i]);
        assert_true(fabs((double)j->state[1][i] - s->v[i]) <= bar * s->v[i]);
    }
    for (uint32_t r = 0; r < j->mode.ranks; r++) {
        check_errors(&j->worker[r], j->mode.ranks * j->chunk, s->we[r]);
        check_errors(&j->server[r], j->chunk, s->se[r]);
    }
}

/* Every eleventh element never has a gradient. */
static void draw_gradients(job *j, uint64_t step, bool averaged)
{
    for (uint32_t r = 0; r < j->mode.ranks; r++) {
        j->gradient[r] = test_uniform_floats(j->mode.count, -0.1f, 0.15f, 100 * step + r);
        for (uint64_t i = 10; i < j->mode.count; i += 11) j->gradient[r][i] = 0;
    }
    for (uint32_t r = 1; averaged && r < j->mode.ranks; r++)
        for (uint64_t i = 0; i < j->mode.count; i++) j->gradient[0][i] += j->gradient[r][i];
    for (uint64_t i = 0; averaged && i < j->mode.count; i++) j->gradient[0][i] /= (float)j->mode.ranks;
}

static void check_mode(const mode *c)
{
    job j;
    job_init(&j, c);
    for (uint64_t step = 1; step <= STEPS; step++) {
        plain s = plain_of(&j);
        float *before = test_copy(c->count, j.value);
        double largest_before = largest(c->count, s.m);
        bool frozen = mode_at(&j, step) == SLC_STEP_EXCHANGE;
        assert_int_equal(frozen, step > FREEZE);
        draw_gradients(&j, step, !frozen || !c->compressed);
        plain_step(c, step, step > FREEZE ? FREEZE : 0, c->ranks * j.chunk, j.gradient, &s);
        fast_step(&j, step);
        check_state(&j, &s, before, largest_before);
        for (uint32_t r = 0; r < c->ranks; r++) free(j.gradient[r]);
        free(before);
        plain_destroy(&s, c->ranks);
    }
    job_destroy(&j);
}

static void check_modes(bool compat, bool mask, bool compressed)
{
    const uint64_t counts[] = {1, 70, 1003, 20011};
    TEST_EACH_ISA(isa)
    for (uint32_t ranks = 1 + compressed; ranks <= MOST_RANKS; ranks++)
        for (size_t i = 0; i < TEST_COUNT_OF(counts); i++)
            check_mode(&(mode){ranks, counts[i], compat, mask, compressed});
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

static uint64_t first_frozen_step(const slc_onebit_adam_settings *settings, double growth)
{
    slc_stream stream = test_stream(1);
    slc_compressed o;
    assert_int_equal(slc_onebit_adam_create(settings, &stream, &o), SLUICE_OK);
    const slc_compressed_parameter parameters[2] = {{.count = 3}, {.count = 4}};
    assert_int_equal(o.commit(o.context, 2, 2, parameters), SLUICE_OK);
    uint64_t step = 1;
    for (; step < 1000 && !o.phase(o.context, step).compressed; step++) {
        double norm = 1 + growth / (double)step;
        double v = settings->compat ? norm : norm * (1 - pow(settings->adam.beta2, (double)step));
        const double each[2] = {0.6 * v, 0.8 * v};
        bool looks = o.wants_norms(o.context, step) == 1 << 1;
        o.end_step(o.context, step, (const double *[SLUICE_OPTIMIZER_STATES_MAX]){NULL, looks ? each : NULL});
    }
    o.destroy(o.context);
    slc_stream_destroy(&stream);
    return step;
}

static void freezes_when_it_is_time(void **state)
{
    (void)state;
    slc_onebit_adam_settings s = {.adam = {0.9, 0.9, 1e-8, 0}, .freeze_step = 1};
    assert_int_equal(first_frozen_step(&s, 0), 2);
    s.freeze_step = 5;
    assert_int_equal(first_frozen_step(&s, 0), 6);
    s.compat = true;
    assert_int_equal(first_frozen_step(&s, 0), 6);
    for (s.freeze_step = 1; s.freeze_step <= 2; s.freeze_step++) assert_int_equal(first_frozen_step(&s, 0), 3);

    /* A look every ten steps: 1 + 10/t is 2, 1.5, 1.333, 1.25, 1.2 at 10 ... 50: changes of .333, .125, .067, .042. */
    s.freeze_step = 0;
    const double changes[] = {0.4, 0.3, 0.1, 0.05};
    const uint64_t frozen[] = {21, 31, 41, 51};
    for (int compat = 0; compat < 2; compat++)
        for (size_t i = 0; i < TEST_COUNT_OF(changes); i++) {
            s.compat = compat, s.freeze_change = changes[i];
            assert_int_equal(first_frozen_step(&s, 10), frozen[i]);
        }
}

static void refuses_what_cannot_be(void **state)
{
    (void)state;
    slc_stream stream = test_stream(1);
    slc_compressed onebit;
    slc_onebit_adam_settings s = {.adam = adam};
    assert_int_equal(slc_onebit_adam_create(&s, &stream, &onebit), SLUICE_ERR_ARGUMENT);
    s.freeze_change = NAN;
    assert_int_equal(slc_onebit_adam_create(&s, &stream, &onebit), SLUICE_ERR_ARGUMENT);
    s.freeze_step = 3, s.adam.beta1 = 1;
    assert_int_equal(slc_onebit_adam_create(&s, &stream, &onebit), SLUICE_ERR_ARGUMENT);
    slc_stream_destroy(&stream);

    job j;
    job_init(&j, &(mode){2, 100, false, true, true});
    draw_gradients(&j, 1, false);
    sluice_update update = update_of(&j, FREEZE, 0);
    slc_onebit_unit unit = unit_of(&j, &update, 0);
    uint32_t bad = UINT32_MAX;
    assert_int_equal(j.onebit.compress(j.onebit.context, &unit, &bad), SLUICE_ERR_ORDER);
    assert_int_equal(j.onebit.apply(j.onebit.context, &unit, &bad), SLUICE_ERR_ORDER);
    assert_int_equal(j.onebit.progress_load(j.onebit.context, UINT32_MAX, (double[]){0.5, 0, 0}), SLUICE_ERR_ARGUMENT);
    assert_int_equal(j.onebit.progress_load(j.onebit.context, UINT32_MAX, (double[]){-1, 0, 0}), SLUICE_ERR_ARGUMENT);
    assert_int_equal(j.onebit.progress_load(j.onebit.context, UINT32_MAX, (double[]){2, 0, NAN}), SLUICE_ERR_ARGUMENT);
    assert_int_equal(j.onebit.progress_load(j.onebit.context, UINT32_MAX, (double[]){2, 0, 0}), SLUICE_OK);
    update.count = 99;
    assert_int_equal(j.onebit.compress(j.onebit.context, &unit, &bad), SLUICE_ERR_ARGUMENT);
    free(j.gradient[0]), free(j.gradient[1]);
    job_destroy(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compat_follows_the_original),     cmocka_unit_test(native_keeps_corrections_and_masks),
        cmocka_unit_test(tensors_that_are_not_compressed), cmocka_unit_test(freezes_when_it_is_time),
        cmocka_unit_test(refuses_what_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
