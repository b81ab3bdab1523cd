/* 0/1 Adam must agree with its rules written plainly in float64 (compat: DeepSpeed 0.16.4 as executed), where every
 * step starts from the fast code's state. */
#include "tests/support/optim/zero_one_job.h"

typedef double numbers[MOST_RANKS][TENSORS];

/* ---- Gradients ---- */

/* Every eleventh element never has a gradient; at every thirteenth the gradients of two ranks cancel each other. */
static float gradient_at(uint64_t step, uint32_t rank, uint32_t ranks, uint64_t i, uint64_t *seed)
{
    float drawn = test_uniform(seed, -0.1f, 0.15f);
    if (i % 11 == 10) return 0;
    if (i % 13 != 12) return drawn;
    if (rank == ranks - 1 && ranks % 2) return 0;
    return (rank % 2 ? -1.0f : 1.0f) * (float)(1 + step % 3) / 64;
}

static void draw_gradients(job *j, uint64_t step, bool averaged)
{
    const uint32_t ranks = j->mode.ranks;
    for (uint32_t r = 0; r < ranks; r++)
        for (uint32_t t = 0; t < TENSORS; t++) {
            uint64_t seed = 1000 * step + 10 * r + t;
            float *g = j->gradient[r][t] = test_floats(j->shapes[t].count);
            for (uint64_t i = 0; i < j->shapes[t].count; i++) g[i] = gradient_at(step, r, ranks, i, &seed);
        }
    if (averaged) average_gradients(j);
    if (j->mode.gradient_dtype == SLUICE_FP32) return;
    for (uint32_t r = 0; r < ranks; r++)
        for (uint32_t t = 0; t < TENSORS; t++)
            for (uint64_t i = 0; i < j->shapes[t].count; i++)
                j->gradient[r][t][i] = sluice_bf16_to_float(sluice_bf16_from_float(j->gradient[r][t][i]));
}

/* ---- The rules, plainly ---- */

typedef struct {
    uint64_t K, refresh_counter, refreshes, H, local_counter;
    bool frozen;
    double rates, decay; /* since the last exchange: sum of learning rates, product of 1 - lr wd */
    bool begins;         /* the last step was an exchange */
} schedule;

static slc_step_mode plain_mode(const schedule *s, uint64_t step, bool now)
{
    if (!s->frozen) return step % s->K == 0 ? SLC_STEP_AVERAGE : SLC_STEP_EXCHANGE;
    return now || step % s->H == 0 ? SLC_STEP_EXCHANGE : SLC_STEP_LOCAL;
}

/* Ends a step in phase 1 and 2. */
static void plain_end(schedule *s, const mode *c, uint64_t step, slc_step_mode how)
{
    if (s->frozen) {
        s->begins = how == SLC_STEP_EXCHANGE;
        if (s->begins) s->rates = 0, s->decay = 1;
        if (++s->local_counter == c->local_scaler) {
            s->local_counter = 0;
            s->H = 2 * s->H < c->clipper ? 2 * s->H : c->clipper;
        }
        return;
    }
    if (how == SLC_STEP_AVERAGE && !(c->compat && step == 1) && ++s->refresh_counter == c->scaler)
        s->refresh_counter = 0, s->K *= 2;
    s->frozen = c->compat ? step > c->freeze : step >= c->freeze;
}

/* One tensor on all ranks. */
typedef struct {
    double *p[MOST_RANKS], *m[MOST_RANKS], *v[MOST_RANKS], *u[MOST_RANKS], *kept[MOST_RANKS];
    double *moved[MOST_RANKS]; /* magnitudes of the terms of u in this step */
    plain_errors errors;
} plain;

typedef struct {
    const mode *mode;
    const schedule *schedule;
    double lr, wd, c1, c2;
    uint64_t count, all;
    bool masks;
} plain_step;

static double below(const plain_step *s, double v)
{
    return sqrt(v / s->c2) + 1e-8;
}

static void plain_momentum(const plain_step *s, double *m, const double *g)
{
    for (uint64_t i = 0; i < s->count; i++) m[i] = 0.9 * m[i] + (1 - 0.9) * g[i];
}

static void plain_mask(const plain_step *s, const double *v, double *x)
{
    for (uint64_t i = 0; i < s->count; i++)
        if (s->masks && v[i] == 0) x[i] = 0;
}

/* p moves by -lr (m / D + wd p), and u with it, in native mode without the decay. */
static void plain_move(const plain_step *s, double *p, const double *m, const double *v, double *u)
{
    for (uint64_t i = 0; i < s->count; i++) {
        double q = m[i] / s->c1 / below(s, v[i]), decay = s->wd * p[i];
        p[i] += -s->lr * (q + decay);
        if (u) u[i] += -s->lr * (s->mode->compat ? q + decay : q);
    }
}

static void plain_exchange_gradients(const plain_step *s, plain *t, double *const *g)
{
    double *got = test_doubles(s->count);
    plain_exchange(s->mode->ranks, s->count, s->all, g, &t->errors, got);
    plain_mask(s, t->v[0], got);
    for (uint32_t r = 0; r < s->mode->ranks; r++) {
        plain_momentum(s, t->m[r], got);
        plain_move(s, t->p[r], t->m[r], t->v[r], NULL);
    }
    test_release(got);
}

static void plain_exchange_moves(const plain_step *s, plain *t)
{
    double *x[MOST_RANKS], *y = test_doubles(s->count);
    for (uint32_t r = 0; r < s->mode->ranks; r++) {
        x[r] = test_doubles(s->count);
        for (uint64_t i = 0; i < s->count; i++) x[r][i] = t->u[r][i] * below(s, t->v[r][i]);
    }
    plain_exchange(s->mode->ranks, s->count, s->all, x, &t->errors, y);
    plain_mask(s, t->v[0], y);
    for (uint32_t r = 0; r < s->mode->ranks; r++) {
        for (uint64_t i = 0; i < s->count; i++) {
            double kept = (s->wd > 0 ? s->schedule->decay : 1) * t->kept[r][i];
            double before = s->mode->compat ? t->p[r][i] - t->u[r][i] : kept;
            t->m[r][i] = s->schedule->rates > 0 ? -s->c1 * y[i] / s->schedule->rates : 0;
            t->p[r][i] = before + y[i] / below(s, t->v[r][i]);
        }
        test_release(x[r]);
    }
    test_release(y);
}

static void plain_frozen(const plain_step *s, plain *t, slc_step_mode how, double *const *g)
{
    for (uint32_t r = 0; r < s->mode->ranks; r++) {
        if (s->schedule->begins) {
            memset(t->u[r], 0, s->count * sizeof(double));
            memcpy(t->kept[r], t->p[r], s->count * sizeof(double));
        }
        for (uint64_t i = 0; i < s->count; i++) {
            double m = (0.9 * fabs(t->m[r][i]) + (1 - 0.9) * fabs(g[r][i])) / s->c1;
            t->moved[r][i] = fabs(t->u[r][i]) + s->lr * (m / below(s, t->v[r][i]) + s->wd * fabs(t->p[r][i]));
        }
        plain_momentum(s, t->m[r], g[r]);
        if (!s->mode->compat && how == SLC_STEP_LOCAL) plain_mask(s, t->v[r], t->m[r]);
        plain_move(s, t->p[r], t->m[r], t->v[r], t->u[r]);
    }
    if (how == SLC_STEP_EXCHANGE) plain_exchange_moves(s, t);
}

/* A step with averaged gradients: a refresh, or a tensor that is not exchanged. */
static void plain_averaged(const plain_step *s, plain *t, bool refresh, double *const *g)
{
    for (uint32_t r = 0; r < s->mode->ranks; r++) {
        if (refresh || s->schedule->frozen || !s->mode->compat || s->mode->ranks > 1) plain_momentum(s, t->m[r], g[r]);
        for (uint64_t i = 0; refresh && i < s->count; i++)
            t->v[r][i] = 0.999 * t->v[r][i] + (1 - 0.999) * g[r][i] * g[r][i];
        if (!refresh) plain_mask(s, t->v[r], t->m[r]);
        plain_move(s, t->p[r], t->m[r], t->v[r], NULL);
    }
}

/* s: the schedule at the step's beginning, except that rates and decay include this step's. */
static void plain_tensor_step(const job *j, schedule *s, uint64_t step, slc_step_mode how, uint32_t i, plain *t)
{
    const mode *c = &j->mode;
    const bool refresh = !s->frozen && how == SLC_STEP_AVERAGE;
    double *g[MOST_RANKS];
    const plain_step p = {.mode = c,
                          .schedule = s,
                          .lr = rate_at(step),
                          .wd = i == 2 ? 0 : c->weight_decay,
                          .c1 = c->compat ? 1 : 1 - pow(0.9, (double)step),
                          .c2 = c->compat ? 1 : 1 - pow(0.999, (double)(s->refreshes + refresh)),
                          .count = j->shapes[i].count,
                          .all = c->ranks * slc_compress_chunk(&j->shapes[i]),
                          .masks = c->mask || !c->compat};
    if (c->compat && step == 1) return;
    for (uint32_t r = 0; r < c->ranks; r++) g[r] = test_widen(p.count, j->gradient[r][i]);
    if (refresh || !c->onebit)
        plain_averaged(&p, t, refresh, g);
    else if (s->frozen)
        plain_frozen(&p, t, how, g);
    else
        plain_exchange_gradients(&p, t, g);
    for (uint32_t r = 0; r < c->ranks; r++) test_release(g[r]);
}

/* ---- Comparison ---- */

static plain plain_of(const job *j, uint32_t i)
{
    plain t = {.errors = plain_errors_of(&j->exchange, i)};
    const uint64_t count = j->shapes[i].count;
    for (uint32_t r = 0; r < j->mode.ranks; r++) {
        t.p[r] = test_widen(count, j->value[r][i]);
        t.m[r] = test_widen(count, j->state[r][0][i]), t.v[r] = test_widen(count, j->state[r][1][i]);
        t.u[r] = test_widen(count, j->local[r][0][i]), t.kept[r] = test_widen(count, j->local[r][1][i]);
        t.moved[r] = test_doubles(count);
    }
    return t;
}

static void plain_fini(plain *t)
{
    for (uint32_t r = 0; r < MOST_RANKS; r++)
        test_release(t->p[r]), test_release(t->m[r]), test_release(t->v[r]), test_release(t->u[r]),
            test_release(t->kept[r]), test_release(t->moved[r]);
    plain_errors_fini(&t->errors);
}

static void check_tensor(const job *j, uint32_t i, const plain *want, float *const *before, const double *most_before,
                         bool inside)
{
    const uint64_t count = j->shapes[i].count;
    for (uint32_t r = 0; r < j->mode.ranks; r++) {
        check_values(count, j->value[r][i], before[r], want->p[r]);
        check_momenta(count, j->state[r][0][i], most_before[r], want->m[r]);
        check_variances(count, j->state[r][1][i], want->v[r]);
        for (uint64_t e = 0; inside && e < count; e++) {
            double u = want->u[r][e], got = (double)j->local[r][0][i][e];
            if (!(fabs(got - u) <= bar * want->moved[r][e]))
                fail_msg("accumulator %llu: %.9g, not %.9g", (unsigned long long)e, got, u);
            if (!j->mode.compat) assert_true((double)j->local[r][1][i][e] == want->kept[r][e]);
        }
        for (uint64_t e = 0; e < count; e++)
            assert_int_equal(j->rounded[r][i][e], sluice_bf16_from_float(j->value[r][i][e]));
    }
    check_errors(&j->exchange, i, &want->errors);
}

/* A value is as exact as the largest number it is made of: the previous value and, inside an interval, w0. */
static float *sizes_before(const plain *t, uint64_t count, uint32_t rank, const job *j, const schedule *s)
{
    const bool inside = s->frozen && !s->begins && j->mode.onebit;
    float *size = test_floats(count);
    for (uint64_t i = 0; i < count; i++) {
        double p = t->p[rank][i], w0 = j->mode.compat ? p - t->u[rank][i] : t->kept[rank][i];
        size[i] = (float)(fabs(p) + (inside ? fabs(w0) : 0));
    }
    return size;
}

static void check_step(job *j, schedule *s, uint64_t step, bool now)
{
    plain want[TENSORS];
    float *before[TENSORS][MOST_RANKS];
    numbers most = {{0}};
    const slc_step_mode how = begin_step(j, step, now);
    assert_int_equal(how, plain_mode(s, step, now));
    const slc_compressed_phase phase = j->optimizer.phase(j->optimizer.context, step);
    assert_int_equal(phase.compressed, s->frozen || s->K > 1);
    assert_int_equal(phase.local_arrays, s->frozen && s->H > 1 ? (j->mode.compat ? 1 : 2) : 0);
    bool known = false;
    for (uint32_t i = 0; i < j->optimizer.phase_count; i++) {
        const slc_compressed_phase *one = &j->optimizer.phases[i];
        known |= one->compressed == phase.compressed && one->refreshes == phase.refreshes &&
                 one->local_arrays == phase.local_arrays;
    }
    assert_true(known);
    draw_gradients(j, step, how == SLC_STEP_AVERAGE || !j->mode.onebit);
    if (s->frozen) s->rates += rate_at(step), s->decay *= 1 - rate_at(step) * j->mode.weight_decay;
    for (uint32_t i = 0; i < TENSORS; i++) {
        want[i] = plain_of(j, i);
        for (uint32_t r = 0; r < j->mode.ranks; r++) {
            before[i][r] = sizes_before(&want[i], j->shapes[i].count, r, j, s);
            most[r][i] = largest(j->shapes[i].count, want[i].m[r]);
        }
        plain_tensor_step(j, s, step, how, i, &want[i]);
    }
    assert_int_equal(finish_step(j, step, how), UINT32_MAX);
    for (uint32_t i = 0; i < TENSORS; i++) {
        double most_before[MOST_RANKS];
        for (uint32_t r = 0; r < j->mode.ranks; r++) most_before[r] = most[r][i];
        const bool discarded = j->mode.compat && step == 1;
        if (!discarded) check_tensor(j, i, &want[i], before[i], most_before, j->mode.onebit && how == SLC_STEP_LOCAL);
        for (uint64_t e = 0; discarded && e < j->shapes[i].count; e++)
            for (uint32_t r = 0; r < j->mode.ranks; r++) assert_true((double)j->value[r][i][e] == want[i].p[r][e]);
        for (uint32_t r = 0; r < j->mode.ranks; r++) test_release(before[i][r]);
        plain_fini(&want[i]);
    }
    if (!s->frozen && how == SLC_STEP_AVERAGE && !(j->mode.compat && step == 1)) s->refreshes++;
    plain_end(s, &j->mode, step, how);
    free_gradients(j);
}

/* The steps are of every kind: refreshes at K 1, 2 and 4, H 1, 2, 4 and 4 again, exchanges out of turn, rates of 0. */
static void check_mode(mode c)
{
    job j;
    schedule s = {.K = 1, .H = 1, .decay = 1, .begins = true};
    c.freeze = 14, c.scaler = 3, c.local_scaler = 5, c.clipper = 4;
    zero_one_job_init(&j, &c);
    for (uint64_t step = 1; step <= 42; step++) check_step(&j, &s, step, step == 27 || step == 33 || step == 34);
    assert_true(s.frozen && s.H == 4 && s.K == 4);
    zero_one_job_fini(&j);
}

static void check_modes(mode c, uint32_t least_ranks)
{
    const uint64_t counts[] = {1, 70, 1003};
    TEST_EACH_WAY(way)
    for (c.ranks = least_ranks; c.ranks <= MOST_RANKS; c.ranks++)
        for (size_t i = 0; i < TEST_COUNT_OF(counts); i++) {
            if (test_on_gpu() && (i < 2 || c.ranks == 3)) continue; /* thousands of launches */
            c.count = counts[i], c.weight_decay = i % 2 ? 0 : 0.01, c.gradient_dtype = (c.ranks + (uint32_t)way) % 2;
            check_mode(c);
            c.weight_decay = 0.01 - c.weight_decay;
            check_mode(c);
        }
}

static void compat_follows_the_original(void **state)
{
    (void)state;
    check_modes((mode){.compat = true, .onebit = true}, 2);
    check_modes((mode){.compat = true, .onebit = true, .mask = true}, 2);
}

static void native_corrects_masks_and_keeps(void **state)
{
    (void)state;
    check_modes((mode){.onebit = true}, 2);
}

static void tensors_that_are_not_exchanged(void **state)
{
    (void)state;
    check_modes((mode){.onebit = false}, 1);
    check_modes((mode){.onebit = false, .compat = true, .mask = true}, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compat_follows_the_original),
        cmocka_unit_test(native_corrects_masks_and_keeps),
        cmocka_unit_test(tensors_that_are_not_exchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
