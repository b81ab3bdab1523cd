/* 1-bit Adam as the engine runs it follows its rules in float64, step by step from the engine's own state before the
 * step: values, moments and both errors, of layers that exchange compressed momenta and of those that do not. */
#include "tests/support/onebit_model.h"

#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <setjmp.h>
#include <cmocka.h>

enum { STEPS = 9, FREEZE = 4, RANDOM_STRATEGIES = 7 };

/* Everything that all ranks hold before or after a step. */
typedef struct {
    float value[COUNT_MAX], momentum[COUNT_MAX], variance[COUNT_MAX];
    float worker[RANKS_MAX][PADDED_MAX], server[RANKS_MAX][PADDED_MAX];
    uint64_t padded, chunk; /* 0: not onebit */
} tensor;

typedef struct {
    tensor t[PARAMS_MAX];
} snapshot;

/* Each rank's own gradients of each tensor, as fp32 or bf16 hold them. */
static float gradient[PARAMS_MAX][RANKS_MAX][COUNT_MAX];

static int gather_errors(model *m, known *k, tensor *t)
{
    static float own[PADDED_MAX], all[RANKS_MAX * PADDED_MAX];
    static const char *const names[] = {"error_worker", "error_server"};
    t->padded = sluice_param_state_count(k->param, names[0]);
    t->chunk = sluice_param_state_count(k->param, names[1]);
    RANK_CHECK(t->padded == t->chunk * (uint64_t)m->size || !t->padded);
    for (int s = 0; s < 2 && t->padded; s++) {
        uint64_t count = s ? t->chunk : t->padded;
        RANK_CHECK(!sluice_param_state_read(k->param, names[s], 0, count, own));
        RANK_CHECK(!sluice_world_all_gather(m->world, own, count * sizeof *own, all));
        for (int r = 0; r < m->size; r++)
            memcpy(s ? t->server[r] : t->worker[r], all + (uint64_t)r * count, count * sizeof *all);
    }
    return 0;
}

static int look(model *m, snapshot *out)
{
    for (uint32_t p = 0; p < m->param_count; p++) {
        known *k = &m->params[p];
        tensor *t = &out->t[p];
        RANK_CHECK(!sluice_param_read(k->param, 0, k->count, t->value));
        RANK_CHECK(!sluice_param_state_read(k->param, "exp_avg", 0, k->count, t->momentum));
        RANK_CHECK(!sluice_param_state_read(k->param, "exp_avg_sq", 0, k->count, t->variance));
        if (gather_errors(m, k, t)) return 1;
    }
    return 0;
}

/* ---- The rules ---- */

typedef struct {
    double own, global; /* factors of clipping */
} factors;

static void make_gradients(const model *m, const snapshot *before)
{
    uint32_t batches = m->t->micro_batches ? m->t->micro_batches : 1;
    for (uint32_t p = 0; p < m->param_count; p++) {
        const known *k = &m->params[p];
        sluice_dtype dtype = sluice_param_dtype(k->param), narrow = sluice_param_gradient_dtype(k->param);
        for (int r = 0; r < m->size; r++)
            for (uint64_t i = 0; i < k->count; i++) {
                float sum = 0, value = model_rounded(dtype, before->t[p].value[i]);
                for (uint32_t b = 0; b < batches; b++)
                    sum = model_rounded(narrow, sum + model_added(m, p, i, m->calls, b, r, value));
                gradient[p][r][i] = sum;
            }
    }
}

static double scale_of(const model *m)
{
    uint32_t batches = m->t->micro_batches ? m->t->micro_batches : 1;
    return m->t->scale != 0 ? m->t->scale : 1.0 / ((double)m->size * batches);
}

static double averaged(const model *m, uint32_t p, uint64_t i)
{
    float sum = 0;
    for (int r = 0; r < m->size; r++) sum += gradient[p][r][i];
    return model_rounded(sluice_param_gradient_dtype(m->params[p].param), sum * (float)scale_of(m));
}

static double clipping(double clip, double squares)
{
    double factor = clip / (sqrt(squares) + 1e-6);
    return clip > 0 && factor < 1 ? factor : 1;
}

static factors clip_of_rank(const model *m, const snapshot *before, int rank)
{
    double own = 0, global = 0;
    for (uint32_t p = 0; p < m->param_count; p++)
        for (uint64_t i = 0; i < m->params[p].count; i++) {
            bool onebit = before->t[p].padded > 0;
            double g = onebit ? gradient[p][rank][i] * scale_of(m) * m->size : averaged(m, p, i);
            *(onebit ? &own : &global) += g * g;
        }
    return (factors){clipping(m->t->clip, own), clipping(m->t->clip, global)};
}

static double sign(double x)
{
    return x < 0 ? -1 : 1;
}

static double mean_square(const double *x, uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) sum += x[i] * x[i];
    return sqrt(sum / (double)count);
}

/* x becomes what the compressor makes of it, and error what is left over. *terms, the largest sum of magnitudes that
 * fp32 adds up in one element, becomes that of an error: one may be far smaller than what it is the difference of.
 * False: a number is so small that fp32 may give it the other sign. */
static bool compress(double *x, double *error, uint64_t count, double *terms)
{
    double scale;
    bool sure = true;
    for (uint64_t i = 0; i < count; i++) x[i] += error[i];
    scale = mean_square(x, count);
    for (uint64_t i = 0; i < count; i++) {
        if (x[i] != 0 && fabs(x[i]) <= 1e-6 * (fabs(x[i] - error[i]) + fabs(error[i]) + scale)) sure = false;
        error[i] = x[i] - scale * sign(x[i]);
        x[i] = scale * sign(x[i]);
    }
    *terms += scale;
    return sure;
}

/* The errors that an exchange leaves, as worker and as server of each rank, and the terms that they are made of
 * (compress). */
typedef struct {
    double worker[RANKS_MAX][PADDED_MAX], server[RANKS_MAX][PADDED_MAX];
    double worker_terms[RANKS_MAX], server_terms[RANKS_MAX];
} leftovers;

/* The result of exchanging the ranks' momenta, and what it leaves; false as in compress. */
static bool exchange(const model *m, uint32_t p, const snapshot *before, double *out, leftovers *left)
{
    const tensor *t = &before->t[p];
    const known *k = &m->params[p];
    static double x[RANKS_MAX][PADDED_MAX], y[PADDED_MAX];
    bool sure = true;
    for (int r = 0; r < m->size; r++) {
        double factor = clip_of_rank(m, before, r).own * scale_of(m) * m->size, *terms = &left->worker_terms[r];
        *terms = 0;
        for (uint64_t i = 0; i < t->padded; i++) {
            double last = i < k->count ? 0.9 * t->momentum[i] : 0;
            double now = i < k->count ? (1 - 0.9) * factor * gradient[p][r][i] : 0;
            x[r][i] = last + now;
            left->worker[r][i] = t->worker[r][i];
            *terms = fmax(*terms, fabs(last) + fabs(now) + fabs(t->worker[r][i]));
        }
        sure &= compress(x[r], left->worker[r], t->padded, terms);
    }
    for (int s = 0; s < m->size; s++) {
        double *terms = &left->server_terms[s];
        *terms = 0;
        for (uint64_t i = 0; i < t->chunk; i++) {
            double sum = 0;
            y[i] = 0;
            for (int r = 0; r < m->size; r++) {
                y[i] += x[r][(uint64_t)s * t->chunk + i] / m->size;
                sum += fabs(x[r][(uint64_t)s * t->chunk + i]) / m->size;
            }
            left->server[s][i] = t->server[s][i];
            *terms = fmax(*terms, sum + fabs(t->server[s][i]));
        }
        sure &= compress(y, left->server[s], t->chunk, terms);
        memcpy(out + (uint64_t)s * t->chunk, y, t->chunk * sizeof *y);
    }
    return sure;
}

/* ---- Comparing ---- */

static bool near(double got, double expected, double size, const char *what, uint32_t p, uint64_t i)
{
    if (fabs(got - expected) <= 2e-6 * size + 1e-30) return true;
    fprintf(stderr, "parameter %u, element %llu: %s is %.9g, expected %.9g\n", p, (unsigned long long)i, what, got,
            expected);
    return false;
}

static double largest(const float *x, uint64_t count)
{
    double most = 0;
    for (uint64_t i = 0; i < count; i++)
        if (fabs(x[i]) > most) most = fabs(x[i]);
    return most;
}

static int check_errors(const model *m, uint32_t p, const tensor *after, const leftovers *left)
{
    for (int r = 0; r < m->size; r++) {
        for (uint64_t i = 0; i < after->padded; i++)
            if (!near(after->worker[r][i], left->worker[r][i], left->worker_terms[r], "the worker's error", p, i))
                return 1;
        for (uint64_t i = 0; i < after->chunk; i++)
            if (!near(after->server[r][i], left->server[r][i], left->server_terms[r], "the server's error", p, i))
                return 1;
    }
    return 0;
}

/* step: its number; *unsure counts tensors that were not compared. */
static int check_tensor(const model *m, uint64_t step, uint32_t p, const snapshot *before, const snapshot *after,
                        uint32_t *unsure)
{
    static double momentum[PADDED_MAX];
    static leftovers left;
    const known *k = &m->params[p];
    const tensor *a = &before->t[p], *b = &after->t[p];
    const bool frozen = step > m->t->freeze_step, onebit = a->padded > 0, compat = m->t->compat;
    const double global = clip_of_rank(m, before, 0).global, rate = 0.01, beta2 = 0.999;
    if (onebit && !exchange(m, p, before, momentum, &left)) {
        ++*unsure;
        return 0;
    }
    /* The errors begin anew with the phase, and only there. */
    if (onebit && b->padded && check_errors(m, p, b, &left)) return 1;
    if (compat && step == 1) { /* the first step is discarded */
        RANK_CHECK(!memcmp(a->value, b->value, k->count * sizeof *a->value) && !largest(b->momentum, k->count));
        return 0;
    }
    double most = largest(a->momentum, k->count) + largest(b->momentum, k->count);
    for (int r = 0; onebit && r < m->size; r++) most = fmax(most, left.server_terms[r]);
    for (uint64_t i = 0; i < k->count; i++) {
        const double g = global * averaged(m, p, i), was = a->variance[i];
        double mean = onebit ? momentum[i] : 0.9 * a->momentum[i] + (1 - 0.9) * g;
        const double variance = frozen ? was : beta2 * was + (1 - beta2) * g * g;
        if (frozen && was == 0 && !compat) mean = 0;
        const double from = frozen ? (double)m->t->freeze_step : (double)step;
        const double first = compat ? 1 : 1 - pow(0.9, (double)step), second = compat ? 1 : 1 - pow(beta2, from);
        const double down = sqrt(variance) / sqrt(second) + 1e-8;
        const double decay = k->no_decay ? 0 : rate * 0.01 * a->value[i];
        const double value = a->value[i] - decay - rate / first * mean / down;
        if (!near(b->momentum[i], mean, most, "the momentum", p, i)) return 1;
        if (!near(b->variance[i], variance, fabs(variance), "the variance", p, i)) return 1;
        /* fp32 adds up the terms of the momentum, which may be far larger than their sum. */
        const double terms = onebit ? fabs(mean) : 0.9 * fabs((double)a->momentum[i]) + (1 - 0.9) * fabs(g);
        const double size = fabs(value) + fabs(a->value[i]) + rate / first * terms / down;
        if (!near(b->value[i], value, size, "the value", p, i)) return 1;
    }
    return 0;
}

/* Before the freeze onebit is dp. */
static int check_strategies(const model *m, uint64_t step)
{
    const trial *t = m->t;
    for (uint32_t l = 0; l < LAYERS && t->seed != RANDOM_STRATEGIES; l++) {
        bool onebit = (t->other ? t->onebit_layers : 15) >> l & 1 && m->size > 1;
        const char *expected = !onebit && t->other ? t->other : !onebit || step < t->freeze_step ? "dp" : "onebit";
        RANK_CHECK(!strcmp(sluice_layer_strategy_name(m->layers[l]), expected));
    }
    return 0;
}

static int run(int rank, int size, void *context)
{
    static snapshot before, after;
    const trial *t = context;
    model m;
    uint32_t unsure = 0, compared = 0;
    uint64_t hash;
    if (model_world(t, rank, size, &m) || model_build(&m) || look(&m, &before)) return 1;
    for (uint64_t step = 1; step <= STEPS; step++) {
        sluice_step_report report = SLUICE_INIT(sluice_step_report);
        if (model_step(&m, &report) || look(&m, &after)) return 1;
        RANK_CHECK(report.step == step && report.compressed == (step > t->freeze_step));
        make_gradients(&m, &before);
        for (uint32_t p = 0; p < m.param_count; p++, compared++)
            if (check_tensor(&m, step, p, &before, &after, &unsure)) {
                fprintf(stderr, "step %u, rank %d of %d\n", (unsigned)step, rank, size);
                return 1;
            }
        if (model_replicas_equal(&m, &hash) || check_strategies(&m, step)) return 1;
        before = after;
    }
    RANK_CHECK(unsure * 20 < compared);
    if (model_peak_is_planned(&m)) return 1;
    return model_leave(&m);
}

static void agrees(int ranks, trial t)
{
    t.freeze_step = FREEZE;
    assert_int_equal(run_ranks(ranks, run, &t, 60), 0);
}

static void one_rank_never_compresses(void **state)
{
    (void)state;
    agrees(1, (trial){.seed = 1});
}

static void whole_models(void **state)
{
    (void)state;
    agrees(2, (trial){.seed = 2, .frozen = true});
    agrees(3, (trial){.seed = 3, .messages = true});
    agrees(4, (trial){.seed = 4, .micro_batches = 2});
}

static void as_the_original(void **state)
{
    (void)state;
    agrees(2, (trial){.seed = 15, .compat = true});
    agrees(4, (trial){.seed = 16, .compat = true, .onebit_layers = 11, .other = "sdp"});
}

static void beside_other_strategies(void **state)
{
    (void)state;
    agrees(2, (trial){.seed = 5, .onebit_layers = 5, .other = "fsdp"});
    agrees(3, (trial){.seed = 6, .onebit_layers = 6, .other = "sdp", .micro_batches = 3});
    agrees(4, (trial){.seed = RANDOM_STRATEGIES, .strategy = "random:3", .frozen = true});
}

static void in_fused_units(void **state)
{
    (void)state;
    agrees(2, (trial){.seed = 8, .fuse = "64KiB", .block = 1 << 16});
}

static void clipped(void **state)
{
    (void)state;
    agrees(2, (trial){.seed = 9, .clip = 0.3});
    agrees(4, (trial){.seed = 10, .clip = 0.2, .onebit_layers = 3, .other = "oss", .micro_batches = 2});
}

static void in_bf16(void **state)
{
    (void)state;
    agrees(2, (trial){.seed = 11, .bf16_layers = 15});
    agrees(2, (trial){.seed = 12, .bf16_layers = 6, .fp32_wire = true, .onebit_layers = 7, .other = "fsdp"});
    agrees(3, (trial){.seed = 13, .bf16_layers = 5, .micro_batches = 2});
}

static void scaled_by_the_caller(void **state)
{
    (void)state;
    agrees(3, (trial){.seed = 14, .scale = 0.07, .micro_batches = 2, .clip = 0.5});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_never_compresses),
        cmocka_unit_test(whole_models),
        cmocka_unit_test(beside_other_strategies),
        cmocka_unit_test(in_fused_units),
        cmocka_unit_test(clipped),
        cmocka_unit_test(in_bf16),
        cmocka_unit_test(scaled_by_the_caller),
        cmocka_unit_test(as_the_original),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
