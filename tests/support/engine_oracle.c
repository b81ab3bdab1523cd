/* All ranks' contributions, added in rank order, and the update of plain arrays. */
#include "tests/support/engine_oracle.h"

#include "lib/kernels/lamb/lamb.h"
#include "tests/support/draw.h"
#include "tests/support/ranks.h"

#include <math.h>

float engine_oracle_contribution(int rank, uint64_t step, uint32_t m, uint32_t p, uint32_t use, uint64_t i, float value)
{
    uint64_t key = ((step * 8 + m) * 32 + p) * 4 + use;
    return value * 0.01f + noise(key * 16 + (uint64_t)rank, i);
}

uint32_t engine_oracle_rows(const known_param *k, int rank, uint64_t step, uint32_t m, uint32_t p, int32_t *rows)
{
    uint64_t random = mix((((step * 8 + m) * 32 + p) * 8) + (uint64_t)rank), from = random;
    uint32_t count = (uint32_t)draw(&random, LOOKED_UP_MAX + 1);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t which = draw(&random, k->most_rows);
        rows[i] = (int32_t)(mix(from + which) % (k->count / k->row_elements));
    }
    return count;
}

float engine_oracle_row_contribution(const known_param *k, int rank, uint64_t step, uint32_t m, uint32_t p,
                                     uint32_t number, int32_t row, uint64_t e)
{
    return engine_oracle_contribution(rank, step, m, p, 3, number * k->row_elements + e,
                                      engine_model_seen(k, (uint32_t)row * k->row_elements + e));
}

/* Adds to one element what the look-ups of a micro-batch add; false: they add nothing. */
static bool add_looked_up(const known_param *k, int rank, uint64_t step, uint32_t m, uint32_t p, uint64_t i, float *sum)
{
    int32_t rows[LOOKED_UP_MAX], row = (int32_t)(i / k->row_elements);
    uint32_t count = engine_oracle_rows(k, rank, step, m, p, rows);
    bool any = false;
    for (uint32_t number = 0; number < count; number++) {
        if (rows[number] != row) continue;
        *sum = *sum + engine_oracle_row_contribution(k, rank, step, m, p, number, row, i % k->row_elements);
        if (k->bf16_gradient) *sum = engine_model_rounded(*sum);
        any = true;
    }
    return any;
}

/* The sum of a split parameter's look-ups: each micro-batch is added up from zero, then the micro-batches are added. */
static bool local_rows(const known_param *k, int rank, uint64_t step, uint32_t first, uint32_t last, uint32_t p,
                       uint64_t i, float *sum)
{
    bool any = false;
    for (uint32_t m = first; m <= last; m++) {
        float of_one = 0;
        if (!add_looked_up(k, rank, step, m, p, i, &of_one)) continue;
        *sum = any ? *sum + of_one : of_one;
        any = true;
    }
    return any;
}

/* The sum over the ranks that have looked the row up. */
static bool sum_rows(const known_param *k, int ranks, uint64_t step, uint32_t first, uint32_t last, uint32_t p,
                     uint64_t i, float *sum)
{
    bool any = false;
    for (int r = 0; r < ranks; r++) {
        float own;
        if (!local_rows(k, r, step, first, last, p, i, &own)) continue;
        *sum = any ? *sum + own : own;
        any = true;
    }
    return any;
}

bool engine_oracle_leaves_out(const engine_model *w, uint64_t step, uint32_t layer)
{
    bool may = w->t->leaves_out && layer && layer + 1 < w->t->layers;
    for (uint32_t p = 0; may && p < w->param_count; p++) may = !engine_model_looks_up(&w->params[p], layer);
    return may && mix((w->t->seed * 64 + step) * 8 + layer) % 3 == 0;
}

static bool leaves_out_param(const engine_model *w, uint64_t step, const known_param *k)
{
    return k->tied_layer < 0 && engine_oracle_leaves_out(w, step, k->layer);
}

uint64_t engine_oracle_updates(const engine_model *w, const known_param *k, uint64_t step)
{
    uint64_t count = 0;
    for (uint64_t s = 1; s <= step; s++) count += !leaves_out_param(w, s, k);
    return count;
}

/* The gradient of one rank over micro-batches first..last, added in the order in which the slots add; each sum is of
 * the gradient's type. */
static float local_gradient(const engine_model *w, int rank, uint64_t step, uint32_t first, uint32_t last, uint32_t p,
                            uint64_t i)
{
    const known_param *k = &w->params[p];
    const uint32_t users[] = {k->layer, (uint32_t)k->tied_layer, (uint32_t)k->last_layer};
    float sum = 0;
    bool any = false;
    for (uint32_t m = first; m <= last; m++)
        for (uint32_t use = k->last_layer >= 0 ? 3 : k->tied_layer >= 0 ? 2 : 1; use-- > 0;) {
            if (engine_oracle_leaves_out(w, step, users[use])) continue;
            if (k->row_elements && use == 0) {
                if (!k->split) add_looked_up(k, rank, step, m, p, i, &sum);
                continue;
            }
            float add = engine_oracle_contribution(rank, step, m, p, use, i, engine_model_seen(k, i));
            sum = any ? sum + add : add;
            if (k->bf16_gradient) sum = engine_model_rounded(sum);
            any = true;
        }
    return sum;
}

uint32_t engine_oracle_micro_batches(const trial *t, uint64_t step)
{
    return t->fewer ? 1 + (uint32_t)(mix(t->seed + step) % t->micro_batches) : t->micro_batches;
}

sluice_step_options engine_oracle_options(const trial *t, uint64_t step)
{
    static const double rates[][GROUPS] = {{1, 0.5, 3}, {0, 1.25, -1}};
    double mean = 1.0 / ((double)t->ranks * engine_oracle_micro_batches(t, step));
    const bool by_group = step % 4 != 1;
    return (sluice_step_options){.struct_size = sizeof(sluice_step_options),
                                 .learning_rate = 0.02 * (double)(1 + step % 3),
                                 .gradient_scale = step % 2 ? 0 : 0.7 * mean,
                                 .group_rates = by_group ? rates[step % 4 == 2] : NULL,
                                 .group_count = by_group ? GROUPS : 0,
                                 .micro_batches = t->fewer ? engine_oracle_micro_batches(t, step) : 0};
}

static double rate_of(const engine_model *w, uint64_t step, const known_param *k)
{
    const sluice_step_options options = engine_oracle_options(w->t, step);
    return options.group_rates ? options.learning_rate * options.group_rates[k->group] : options.learning_rate;
}

void engine_oracle_reduce(engine_model *w, uint64_t step)
{
    const trial *t = w->t;
    double given = engine_oracle_options(t, step).gradient_scale;
    const uint32_t micro_batches = engine_oracle_micro_batches(t, step);
    float scale = (float)(given != 0 ? given : 1.0 / ((double)t->ranks * micro_batches));
    for (uint32_t p = 0; p < w->param_count; p++) {
        known_param *k = &w->params[p];
        for (uint64_t i = 0; i < k->count; i++) {
            float reduced = 0, looked_up;
            bool narrow = k->bf16_gradient && t->micro_batches == 1; /* a sum over micro-batches stays fp32 */
            uint32_t groups = t->each ? micro_batches : 1;
            for (uint32_t g = 0; g < groups; g++) {
                uint32_t first = t->each ? g : 0, last = t->each ? g : micro_batches - 1;
                float sum = local_gradient(w, 0, step, first, last, p, i);
                for (int r = 1; r < t->ranks; r++) sum = sum + local_gradient(w, r, step, first, last, p, i);
                reduced = g ? reduced + scale * sum : scale * sum;
                if (narrow) reduced = engine_model_rounded(reduced);
                if (!k->split || !sum_rows(k, t->ranks, step, first, last, p, i, &looked_up)) continue;
                reduced = reduced + scale * looked_up;
                if (narrow) reduced = engine_model_rounded(reduced);
            }
            k->gradient[i] = leaves_out_param(w, step, k) ? 0 : reduced;
        }
    }
}

double engine_oracle_norm(const engine_model *w)
{
    double sum = 0;
    for (uint32_t p = 0; p < w->param_count; p++)
        for (uint64_t i = 0; !w->params[p].frozen && i < w->params[p].count; i++)
            sum += (double)w->params[p].gradient[i] * w->params[p].gradient[i];
    return sqrt(sum);
}

static void apply_own(engine_model *w, uint64_t step, double factor)
{
    for (uint32_t p = 0; p < w->param_count; p++) {
        known_param *k = &w->params[p];
        sluice_update u = {.value = k->value,
                           .gradient = k->gradient,
                           .state = {k->m},
                           .count = k->count,
                           .step = engine_oracle_updates(w, k, step),
                           .learning_rate = rate_of(w, step, k),
                           .gradient_factor = factor,
                           .no_decay = k->no_decay};
        if (!k->frozen && !leaves_out_param(w, step, k)) engine_model_update(&u, NULL);
    }
}

/* LAMB's kernel runs on whole parameters; its own test compares it with float64. */
static int apply_lamb(engine_model *w, uint64_t step)
{
    slc_device *device;
    sluice_stream stream;
    sluice_config config;
    sluice_config_init(&config);
    const sluice_lamb *lamb = &config.lamb;
    slc_adamw_settings settings = {.beta1 = lamb->beta1,
                                   .beta2 = lamb->beta2,
                                   .epsilon = lamb->epsilon,
                                   .weight_decay = lamb->weight_decay,
                                   .gradient_factor = 1};
    RANK_CHECK(!slc_device_open("cpu", &device));
    RANK_CHECK(!slc_stream_create(device, 1, &stream));
    for (uint32_t p = 0; p < w->param_count; p++) {
        known_param *k = &w->params[p];
        if (k->frozen || leaves_out_param(w, step, k)) continue;
        const double applied = (double)engine_oracle_updates(w, k, step);
        settings.learning_rate = rate_of(w, step, k);
        settings.bias_correction1 = 1 - pow(lamb->beta1, applied);
        settings.bias_correction2 = 1 - pow(lamb->beta2, applied);
        int64_t values[SLC_NORM_BINS] = {0}, updates[SLC_NORM_BINS] = {0};
        const slc_lamb_bins bins = {values, updates};
        const slc_adamw_range range = {.count = k->count,
                                       .gradient = k->gradient,
                                       .value = k->value,
                                       .exp_avg = k->m,
                                       .exp_avg_sq = k->v,
                                       .no_decay = k->no_decay};
        RANK_CHECK(!slc_lamb_measure(&stream, &settings, 1, &range, &bins));
        double trust = slc_lamb_trust(slc_norm_result(values), slc_norm_result(updates),
                                      &(slc_lamb_bounds){0, INFINITY, 0, INFINITY});
        if (k->no_decay) trust = 1;
        RANK_CHECK(!slc_lamb_apply(&stream, &settings, 1, &range, &trust));
    }
    slc_stream_destroy(&stream);
    slc_device_close(device);
    return 0;
}

int engine_oracle_update(engine_model *w, uint64_t step, double factor)
{
    if (w->t->lamb) return apply_lamb(w, step);
    apply_own(w, step, factor);
    return 0;
}
