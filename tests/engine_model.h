/* A model drawn from a seed, and an oracle: its gradients are a known function of rank, micro-batch, step and value.
 * Every rank computes what all ranks contribute, adds in rank order and updates plain arrays; values seen inside slots
 * and read between steps must be equal to that to the bit. Some tied parameters are looked up by rows, drawn anew for
 * each rank and micro-batch, in one gradient with their other use or split from it. */
#ifndef SLC_TESTS_ENGINE_MODEL_H
#define SLC_TESTS_ENGINE_MODEL_H

#include "lib/plan/request.h"
#include "lib/engine/engine.h"
#include "lib/kernels/lamb/lamb.h"
#include "tests/drawn_planners.h"
#include "tests/ranks.h"
#include "tests/scale.h"

#include <math.h>
#include <sluice/sluice.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

enum { LAYERS_MAX = 5, PARAMS_MAX = 16, STEPS = 4, STEPS_RANDOM = 8, STEPS_A_WORLD = 40, STEPS_A_PLAN = 8 };
enum { LOOKED_UP_MAX = 24 };

typedef struct {
    uint64_t seed;
    int ranks;
    uint32_t layers, micro_batches;
    const char *schedule, *strategy, *recompute;
    bool random;             /* strategies and order from the seed */
    uint32_t changing_steps; /* > 0: so many, under plans of all schedules, one after the other */
    bool each, direct, delays;
    bool bf16_wire, mixed_update; /* the optimizer reads bf16 and rounds by itself */
    bool lamb;                    /* instead of it */
    bool look_ups, split;         /* some tied parameters are looked up by rows */
    uint64_t bf16_layers;         /* bits */
    double clip;
    uint64_t block;
    const char *updates;      /* SLUICE_PLAN_UPDATES; NULL: its own optimizer takes one thread at a time */
    uint32_t threads, larger; /* parameters are so many times larger */
} trial;

typedef struct {
    sluice_param *param;
    bool bf16, bf16_gradient;
    float *value, *gradient, *m, *v; /* value: the master */
    uint64_t count;
    uint32_t layer;
    int tied_layer, last_layer; /* second and third use, or -1 */
    bool frozen, no_decay, no_backward_value;
    uint64_t row_elements, most_rows; /* 0: its layer reads all */
    int32_t rows[LOOKED_UP_MAX], places[LOOKED_UP_MAX];
    uint32_t looked_up; /* in the micro-batch that runs, by this rank */
    bool split;
} known_param;

typedef struct {
    const trial *t;
    int rank;
    sluice_runtime *rt;
    sluice_layer *layer[LAYERS_MAX];
    sluice_activation *activation[LAYERS_MAX], *remade[LAYERS_MAX]; /* the second: where the layer can recompute */
    uint64_t remade_bytes[LAYERS_MAX];
    bool can_recompute[LAYERS_MAX];
    known_param params[PARAMS_MAX];
    uint32_t param_count;
    uint64_t chance, update_chance; /* others on every rank, for each thread; 0: no delays */
} model;

static inline float noise(uint64_t a, uint64_t b)
{
    return (float)((int64_t)(mix(a * 1000003u + b) % 20001u) - 10000) * 1e-4f;
}

static inline float rounded(float x)
{
    return sluice_bf16_to_float(sluice_bf16_from_float(x));
}

/* What rank `rank` adds to element i of parameter p in one use. */
static inline float contribution(int rank, uint64_t step, uint32_t m, uint32_t p, uint32_t use, uint64_t i, float value)
{
    uint64_t key = ((step * 8 + m) * 32 + p) * 4 + use;
    return value * 0.01f + noise(key * 16 + (uint64_t)rank, i);
}

/* What a rank looks up in a micro-batch: some of a few rows, again and again. */
static inline uint32_t draw_rows(const known_param *k, int rank, uint64_t step, uint32_t m, uint32_t p, int32_t *rows)
{
    uint64_t random = mix((((step * 8 + m) * 32 + p) * 8) + (uint64_t)rank), from = random;
    uint32_t count = (uint32_t)draw(&random, LOOKED_UP_MAX + 1);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t which = draw(&random, k->most_rows);
        rows[i] = (int32_t)(mix(from + which) % (k->count / k->row_elements));
    }
    return count;
}

/* Sometimes waits for up to a quarter of a millisecond. */
static inline void dawdle(uint64_t *chance)
{
    if (*chance && draw(chance, 3) == 0) usleep((useconds_t)draw(chance, 250));
}

/* A user's own optimizer with one state, in operations that any compiler rounds alike. Only one that says so is to get
 * anything but fp32. */
static inline sluice_status update(const sluice_update *u, void *context)
{
    static _Thread_local uint64_t chance; /* several threads may be here */
    if (context && !chance) chance = *(uint64_t *)context + u->parameter;
    dawdle(&chance);
    float rate = (float)u->learning_rate, factor = (float)u->gradient_factor;
    bool narrow = u->gradient_dtype == SLUICE_BF16;
    for (size_t i = 0; i < u->count; i++) {
        float g = narrow ? sluice_bf16_to_float(((const uint16_t *)u->gradient)[i]) : ((const float *)u->gradient)[i];
        g = g * factor;
        u->state[0][i] = u->state[0][i] * 0.5f + g;
        u->value[i] = u->value[i] - rate * (u->state[0][i] + (u->no_decay ? 0 : 0.01f * u->value[i]));
        if (u->rounded) ((uint16_t *)u->rounded)[i] = sluice_bf16_from_float(u->value[i]);
    }
    return SLUICE_OK;
}

static inline sluice_status update_fp32(const sluice_update *u, void *context)
{
    if (u->gradient_dtype != SLUICE_FP32 || u->rounded) return SLUICE_ERR_FORMAT;
    return update(u, context);
}

static inline int create(model *w, sluice_world *world, sluice_config *config)
{
    char drawn[32];
    if (w->t->delays) w->chance = mix(w->t->seed * 16 + (uint64_t)w->rank) | 1;
    sluice_optimizer own_optimizer = {.name = "test",
                                      .state_count = 1,
                                      .state_name = {"momentum"},
                                      .update = w->t->mixed_update ? update : update_fp32,
                                      .mixed_precision = w->t->mixed_update,
                                      .concurrent = w->t->updates};
    setenv("SLUICE_PLAN_UPDATES", w->t->updates ? w->t->updates : "auto", 1);
    uint64_t *chance = NULL;
    if (w->t->delays) {
        chance = &w->update_chance;
        *chance = w->chance + 1;
    }
    own_optimizer.context = chance;
    config->optimizer = w->t->lamb ? NULL : &own_optimizer;
    if (w->t->lamb) config->optimizer_name = "lamb";
    if (!w->t->random) {
        RANK_CHECK(!sluice_runtime_create(world, config, &w->rt));
        return 0;
    }
    snprintf(drawn, sizeof drawn, "drawn/%llu", (unsigned long long)w->t->seed);
    config->schedule = drawn;
    RANK_CHECK(!slc_engine_create(world, config, (slc_planner){plan_as_named, fuse_drawn}, &w->rt));
    return 0;
}

/* Most are looked up by rows. */
static inline void draw_shape(known_param *p, bool split, uint64_t *random)
{
    if (draw(random, 5) == 0) return;
    p->frozen = false;
    p->row_elements = 1 + draw(random, 40);
    p->count = p->row_elements * (1 + draw(random, 60));
    p->most_rows = 1 + draw(random, LOOKED_UP_MAX);
    p->split = split;
}

static inline int add_params(model *w, uint64_t *random)
{
    for (uint32_t l = 0; l < w->t->layers; l++) {
        uint32_t count = 1 + (uint32_t)draw(random, 3);
        for (uint32_t k = 0; k < count; k++) {
            known_param *p = &w->params[w->param_count];
            char name[16];
            snprintf(name, sizeof name, "p%u", k);
            *p = (known_param){
                .count = (1 + draw(random, 700)) * (w->t->larger + 1), .layer = l, .tied_layer = -1, .last_layer = -1};
            p->bf16 = w->t->bf16_layers >> l & 1;
            p->bf16_gradient = p->bf16 && w->t->bf16_wire && (w->t->micro_batches == 1 || w->t->each);
            p->frozen = draw(random, 6) == 0;
            p->no_decay = draw(random, 2);
            bool tied = l + 1 < w->t->layers && draw(random, w->t->look_ups ? 2 : 4) == 0;
            if (tied) p->tied_layer = (int)(l + 1 + draw(random, w->t->layers - l - 1));
            if (tied && w->t->look_ups) draw_shape(p, w->t->split, random);
            int left = (int)w->t->layers - 1 - p->tied_layer;
            uint64_t third = mix(*random);
            if (tied && left > 0 && draw(&third, 2))
                p->last_layer = p->tied_layer + 1 + (int)draw(&third, (uint64_t)left);
            p->no_backward_value = draw(random, 4) == 0;
            RANK_CHECK(!sluice_param_add(w->layer[l],
                                         &(sluice_param_desc){.name = name,
                                                              .count = p->count,
                                                              .frozen = p->frozen,
                                                              .no_decay = p->no_decay,
                                                              .tied = tied,
                                                              .no_backward_value = p->no_backward_value,
                                                              .row_elements = p->row_elements,
                                                              .most_rows = p->most_rows},
                                         &p->param));
            RANK_CHECK(sluice_param_dtype(p->param) == (p->bf16 ? SLUICE_BF16 : SLUICE_FP32));
            RANK_CHECK(sluice_param_gradient_dtype(p->param) == (p->bf16_gradient ? SLUICE_BF16 : SLUICE_FP32));
            p->value = calloc(p->count, sizeof(float));
            p->gradient = calloc(p->count, sizeof(float));
            p->m = calloc(p->count, sizeof(float));
            p->v = calloc(p->count, sizeof(float));
            w->param_count++;
        }
    }
    return 0;
}

/* A frozen parameter in bf16 has no master: it is what rounding leaves. */
static inline int write_noise(known_param *k, uint64_t seed)
{
    for (uint64_t i = 0; i < k->count; i++) k->value[i] = noise(seed, i);
    RANK_CHECK(!sluice_param_write(k->param, 0, k->count, k->value));
    for (uint64_t i = 0; k->frozen && k->bf16 && i < k->count; i++) k->value[i] = rounded(k->value[i]);
    return 0;
}

static inline int build(model *w, sluice_world *world)
{
    const trial *t = w->t;
    uint64_t random = t->seed;
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = t->strategy;
    config.schedule = t->schedule;
    config.recompute = t->recompute;
    config.micro_batches = t->micro_batches;
    config.accumulate = t->each ? SLUICE_ACCUMULATE_EACH : SLUICE_ACCUMULATE_LAST;
    config.clip = t->clip;
    config.block_bytes = t->block;
    config.threads = t->threads;
    config.tied = t->split ? SLUICE_TIED_SPLIT : SLUICE_TIED_JOINT;
    config.wire = t->bf16_wire ? SLUICE_BF16 : SLUICE_FP32;
    config.precision = t->bf16_layers & 1 ? SLUICE_BF16 : SLUICE_FP32; /* what the first layer has: others say so */
    if (create(w, world, &config)) return 1;
    for (uint32_t l = 0; l < t->layers; l++) {
        char name[16];
        snprintf(name, sizeof name, "layer%u", l);
        RANK_CHECK(!sluice_layer_add(w->rt, name, &w->layer[l]));
        if ((t->bf16_layers >> l & 1) != (t->bf16_layers & 1))
            RANK_CHECK(!sluice_layer_precision(w->layer[l], t->bf16_layers >> l & 1 ? SLUICE_BF16 : SLUICE_FP32));
        RANK_CHECK(!sluice_activation_add(
            w->layer[l],
            &(sluice_activation_desc){.name = "a", .bytes = 64 + draw(&random, 4096), .last = SLUICE_BACKWARD},
            &w->activation[l]));
        w->can_recompute[l] = draw(&random, 2);
        w->remade_bytes[l] = 64 + draw(&random, 4096);
        RANK_CHECK(!sluice_layer_can_recompute(w->layer[l], w->can_recompute[l]));
        RANK_CHECK(!sluice_activation_add(
            w->layer[l],
            &(sluice_activation_desc){
                .name = "r", .bytes = w->remade_bytes[l], .last = SLUICE_BACKWARD, .recomputable = w->can_recompute[l]},
            &w->remade[l]));
    }
    if (add_params(w, &random)) return 1;
    for (uint32_t p = 0; p < w->param_count; p++) {
        const known_param *k = &w->params[p];
        if (k->tied_layer >= 0) RANK_CHECK(!sluice_param_use(w->layer[k->tied_layer], k->param));
        if (k->last_layer >= 0) RANK_CHECK(!sluice_param_use(w->layer[k->last_layer], k->param));
    }
    RANK_CHECK(!sluice_runtime_commit(w->rt));
    for (uint32_t l = 0; l < t->layers; l++) {
        bool recomputes = sluice_layer_recomputes(w->layer[l]);
        RANK_CHECK(!recomputes || w->can_recompute[l]);
        if (!t->random && !strcmp(t->recompute, "all")) RANK_CHECK(recomputes == w->can_recompute[l]);
        if (!t->random && !strcmp(t->recompute, "none")) RANK_CHECK(!recomputes);
    }
    for (uint32_t p = 0; p < w->param_count; p++)
        if (write_noise(&w->params[p], t->seed + p)) return 1;
    return 0;
}

/* The value that compute sees. */
static inline float seen(const known_param *k, uint64_t i)
{
    return k->bf16 ? rounded(k->value[i]) : k->value[i];
}

static inline bool uses(const known_param *p, uint32_t layer)
{
    return p->layer == layer || p->tied_layer == (int)layer || p->last_layer == (int)layer;
}

static inline bool looks_up(const known_param *p, uint32_t layer)
{
    return p->row_elements && p->layer == layer;
}

/* Elements of an array, as they are in the runtime's. */
static inline int check_equal(const known_param *k, const void *array, uint64_t at, const float *want, uint64_t count)
{
    if (!k->bf16) RANK_CHECK(!memcmp((const float *)array + at, want, count * sizeof *want));
    for (uint64_t i = 0; k->bf16 && i < count; i++)
        RANK_CHECK(((const uint16_t *)array)[at + i] == sluice_bf16_from_float(want[i]));
    return 0;
}

static inline int check_values(model *w, uint32_t layer, bool backward)
{
    for (uint32_t p = 0; p < w->param_count; p++) {
        known_param *k = &w->params[p];
        uint64_t row = k->row_elements;
        if (!uses(k, layer) || (backward && k->layer == layer && k->no_backward_value)) continue;
        const void *value = sluice_param_value(k->param);
        RANK_CHECK(value);
        if (!looks_up(k, layer)) {
            if (check_equal(k, value, 0, k->value, k->count)) return 1;
            continue;
        }
        for (uint32_t i = 0; i < k->looked_up; i++)
            if (check_equal(k, value, row * (uint32_t)k->places[i], k->value + row * (uint32_t)k->rows[i], row))
                return 1;
    }
    return 0;
}

/* Before a micro-batch, or a pass of an evaluation. */
static inline int look_up(model *w, uint64_t step, uint32_t m)
{
    for (uint32_t p = 0; p < w->param_count; p++) {
        known_param *k = &w->params[p];
        if (!k->row_elements) continue;
        dawdle(&w->chance);
        k->looked_up = draw_rows(k, w->rank, step, m, p, k->rows);
        RANK_CHECK(!sluice_rows_set(k->param, k->rows, k->looked_up, k->places));
    }
    return 0;
}

static inline unsigned char pattern(const model *w, uint32_t layer)
{
    return (unsigned char)mix(w->t->seed + layer);
}

static inline void make(model *w, uint32_t layer)
{
    memset(sluice_activation_data(w->remade[layer]), pattern(w, layer), w->remade_bytes[layer]);
}

static inline int check_made(model *w, uint32_t layer)
{
    const unsigned char *bytes = sluice_activation_data(w->remade[layer]);
    for (uint64_t i = 0; i < w->remade_bytes[layer]; i++) RANK_CHECK(bytes[i] == pattern(w, layer));
    return 0;
}

static inline int recompute(model *w, uint32_t layer)
{
    if (!sluice_layer_recomputes(w->layer[layer])) return 0;
    RANK_CHECK(!sluice_recompute_begin(w->layer[layer]));
    dawdle(&w->chance);
    if (check_values(w, layer, false)) return 1;
    make(w, layer);
    RANK_CHECK(!sluice_recompute_end(w->layer[layer]));
    return 0;
}

static inline int forward(model *w, uint32_t layer)
{
    dawdle(&w->chance);
    RANK_CHECK(!sluice_forward_begin(w->layer[layer]));
    dawdle(&w->chance);
    if (check_values(w, layer, false)) return 1;
    *(uint64_t *)sluice_activation_data(w->activation[layer]) = 77 + layer;
    make(w, layer);
    RANK_CHECK(!sluice_forward_end(w->layer[layer]));
    return 0;
}

static inline void add_element(const known_param *k, void *gradient, uint64_t at, bool fresh, float add)
{
    float *wide = gradient;
    uint16_t *narrow = gradient;
    if (k->bf16_gradient)
        narrow[at] = sluice_bf16_from_float(fresh ? add : sluice_bf16_to_float(narrow[at]) + add);
    else
        wide[at] = fresh ? add : wide[at] + add;
}

/* What the look-up numbered `number` adds to element e of its row. */
static inline float row_contribution(const known_param *k, int rank, uint64_t step, uint32_t m, uint32_t p,
                                     uint32_t number, int32_t row, uint64_t e)
{
    return contribution(rank, step, m, p, 3, number * k->row_elements + e,
                        seen(k, (uint32_t)row * k->row_elements + e));
}

static inline void add_rows(const model *w, uint32_t p, uint64_t step, uint32_t m, void *gradient)
{
    const known_param *k = &w->params[p];
    for (uint32_t i = 0; i < k->looked_up; i++)
        for (uint64_t e = 0; e < k->row_elements; e++)
            add_element(k, gradient, (uint32_t)k->places[i] * k->row_elements + e, false,
                        row_contribution(k, w->rank, step, m, p, i, k->rows[i], e));
}

static inline int backward(model *w, uint32_t layer, uint64_t step, uint32_t m)
{
    dawdle(&w->chance);
    if (recompute(w, layer)) return 1;
    RANK_CHECK(!sluice_backward_begin(w->layer[layer]));
    if (check_made(w, layer) || check_values(w, layer, true)) return 1;
    dawdle(&w->chance);
    RANK_CHECK(*(uint64_t *)sluice_activation_data(w->activation[layer]) == 77 + layer);
    for (uint32_t p = 0; p < w->param_count; p++) {
        known_param *k = &w->params[p];
        if (!uses(k, layer) || k->frozen) continue;
        uint32_t use = k->layer == layer ? 0 : k->tied_layer == (int)layer ? 1 : 2;
        bool fresh = false, ask = (p + step) % 2;
        void *gradient = ask ? sluice_param_gradient_fresh(k->param, &fresh) : sluice_param_gradient(k->param);
        RANK_CHECK(gradient);
        if (looks_up(k, layer)) {
            RANK_CHECK(!fresh);
            add_rows(w, p, step, m, gradient);
            continue;
        }
        for (uint64_t i = 0; i < k->count; i++)
            add_element(k, gradient, i, fresh, contribution(w->rank, step, m, p, use, i, seen(k, i)));
    }
    RANK_CHECK(!sluice_backward_end(w->layer[layer]));
    return 0;
}

/* To one element, what the look-ups of a micro-batch add; false: nothing. */
static inline bool add_looked_up(const known_param *k, int rank, uint64_t step, uint32_t m, uint32_t p, uint64_t i,
                                 float *sum)
{
    int32_t rows[LOOKED_UP_MAX], row = (int32_t)(i / k->row_elements);
    uint32_t count = draw_rows(k, rank, step, m, p, rows);
    bool any = false;
    for (uint32_t number = 0; number < count; number++) {
        if (rows[number] != row) continue;
        *sum = *sum + row_contribution(k, rank, step, m, p, number, row, i % k->row_elements);
        if (k->bf16_gradient) *sum = rounded(*sum);
        any = true;
    }
    return any;
}

/* Where it is split: of each micro-batch from zero, then those added up. */
static inline bool local_rows(const known_param *k, int rank, uint64_t step, uint32_t first, uint32_t last, uint32_t p,
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

/* Over the ranks that have the row. */
static inline bool sum_rows(const known_param *k, int ranks, uint64_t step, uint32_t first, uint32_t last, uint32_t p,
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

/* The gradient of one rank over micro-batches first..last, added in the order in which the slots add; each sum is of
 * the gradient's type. */
static inline float local_gradient(const known_param *k, int rank, uint64_t step, uint32_t first, uint32_t last,
                                   uint32_t p, uint64_t i)
{
    float sum = 0;
    bool any = false;
    for (uint32_t m = first; m <= last; m++)
        for (uint32_t use = k->last_layer >= 0 ? 3 : k->tied_layer >= 0 ? 2 : 1; use-- > 0;) {
            if (k->row_elements && use == 0) {
                if (!k->split) add_looked_up(k, rank, step, m, p, i, &sum);
                continue;
            }
            float add = contribution(rank, step, m, p, use, i, seen(k, i));
            sum = any ? sum + add : add;
            if (k->bf16_gradient) sum = rounded(sum);
            any = true;
        }
    return sum;
}

/* Settings of a step, other ones in the next. */
static inline sluice_step_options options_of(const trial *t, uint64_t step)
{
    double mean = 1.0 / ((double)t->ranks * t->micro_batches);
    return (sluice_step_options){.learning_rate = 0.02 * (double)(1 + step % 3),
                                 .gradient_scale = step % 2 ? 0 : 0.7 * mean};
}

static inline void reduce(model *w, uint64_t step)
{
    const trial *t = w->t;
    double given = options_of(t, step).gradient_scale;
    float scale = (float)(given != 0 ? given : 1.0 / ((double)t->ranks * t->micro_batches));
    for (uint32_t p = 0; p < w->param_count; p++) {
        known_param *k = &w->params[p];
        for (uint64_t i = 0; i < k->count; i++) {
            float reduced = 0, looked_up;
            bool narrow = k->bf16_gradient && t->micro_batches == 1; /* what adds up micro-batches stays fp32 */
            uint32_t groups = t->each ? t->micro_batches : 1;
            for (uint32_t g = 0; g < groups; g++) {
                uint32_t first = t->each ? g : 0, last = t->each ? g : t->micro_batches - 1;
                float sum = local_gradient(k, 0, step, first, last, p, i);
                for (int r = 1; r < t->ranks; r++) sum = sum + local_gradient(k, r, step, first, last, p, i);
                reduced = g ? reduced + scale * sum : scale * sum;
                if (narrow) reduced = rounded(reduced);
                if (!k->split || !sum_rows(k, t->ranks, step, first, last, p, i, &looked_up)) continue;
                reduced = reduced + scale * looked_up;
                if (narrow) reduced = rounded(reduced);
            }
            k->gradient[i] = reduced;
        }
    }
}

/* The norm over the gradient in a plain double sum; compared with a tolerance, its bits are the norm kernel's affair.
 */
static inline double norm_of(const model *w)
{
    double sum = 0;
    for (uint32_t p = 0; p < w->param_count; p++)
        for (uint64_t i = 0; !w->params[p].frozen && i < w->params[p].count; i++)
            sum += (double)w->params[p].gradient[i] * w->params[p].gradient[i];
    return sqrt(sum);
}

static inline void apply(model *w, uint64_t step, double rate, double factor)
{
    for (uint32_t p = 0; p < w->param_count; p++) {
        known_param *k = &w->params[p];
        sluice_update u = {.value = k->value,
                           .gradient = k->gradient,
                           .state = {k->m},
                           .count = k->count,
                           .step = step,
                           .learning_rate = rate,
                           .gradient_factor = factor,
                           .no_decay = k->no_decay};
        if (!k->frozen) update(&u, NULL);
    }
}

/* The kernel on whole parameters; its own test compares it with float64. */
static inline int apply_lamb(model *w, uint64_t step, double rate)
{
    slc_device *device;
    slc_stream stream;
    sluice_config config;
    sluice_config_init(&config);
    const sluice_lamb *lamb = &config.lamb;
    const slc_adamw_settings settings = {.learning_rate = rate,
                                         .beta1 = lamb->beta1,
                                         .beta2 = lamb->beta2,
                                         .epsilon = lamb->epsilon,
                                         .weight_decay = lamb->weight_decay,
                                         .gradient_factor = 1,
                                         .bias_correction1 = 1 - pow(lamb->beta1, (double)step),
                                         .bias_correction2 = 1 - pow(lamb->beta2, (double)step)};
    RANK_CHECK(!slc_device_open("cpu", &device));
    RANK_CHECK(!slc_stream_create(device, 1, &stream));
    for (uint32_t p = 0; p < w->param_count; p++) {
        known_param *k = &w->params[p];
        if (k->frozen) continue;
        int64_t values[SLC_NORM_BINS] = {0}, updates[SLC_NORM_BINS] = {0};
        const slc_lamb_bins bins = {values, updates};
        const slc_adamw_range range = {.count = k->count,
                                       .gradient = k->gradient,
                                       .value = k->value,
                                       .exp_avg = k->m,
                                       .exp_avg_sq = k->v,
                                       .no_decay = k->no_decay};
        RANK_CHECK(!slc_lamb_measure(&stream, &settings, 1, &range, &bins));
        double trust = slc_lamb_trust(slc_norm_result(values), slc_norm_result(updates), 0, INFINITY);
        if (k->no_decay) trust = 1;
        RANK_CHECK(!slc_lamb_apply(&stream, &settings, 1, &range, &trust));
    }
    slc_stream_destroy(&stream);
    slc_device_close(device);
    return 0;
}

static inline int check_state(const known_param *k, const char *name, const float *want)
{
    float *got = calloc(k->count, sizeof *got);
    RANK_CHECK(!sluice_param_state_read(k->param, name, 0, k->count, got));
    RANK_CHECK(!memcmp(got, want, k->count * sizeof *got));
    free(got);
    return 0;
}

static inline int check_read(model *w)
{
    for (uint32_t p = 0; p < w->param_count; p++) {
        known_param *k = &w->params[p];
        float *got = calloc(k->count, sizeof *got);
        RANK_CHECK(!sluice_param_read(k->param, 0, k->count, got));
        RANK_CHECK(!memcmp(got, k->value, k->count * sizeof *got));
        free(got);
        if (!k->frozen && check_state(k, w->t->lamb ? "exp_avg" : "momentum", k->m)) return 1;
        if (!k->frozen && w->t->lamb && check_state(k, "exp_avg_sq", k->v)) return 1;
    }
    return 0;
}

static inline int evaluate(model *w, uint32_t passes)
{
    RANK_CHECK(!sluice_evaluate_begin(w->rt));
    for (uint32_t pass = 0; pass < passes; pass++) {
        if (look_up(w, 0, pass)) return 1;
        for (uint32_t l = 0; l < w->t->layers; l++)
            if (forward(w, l)) return 1;
    }
    RANK_CHECK(!sluice_evaluate_end(w->rt));
    return 0;
}

static inline int one_step(model *w, uint64_t step)
{
    const trial *t = w->t;
    const sluice_step_options options = options_of(t, step);
    double factor = 1;
    RANK_CHECK(!sluice_step_begin(w->rt, &options));
    for (uint32_t m = 0; m < t->micro_batches; m++) {
        if (look_up(w, step, m)) return 1;
        for (uint32_t l = 0; l < t->layers; l++)
            if (forward(w, l)) return 1;
        for (uint32_t l = t->layers; l-- > 0;)
            if (backward(w, l, step, m)) return 1;
    }
    sluice_step_report report;
    RANK_CHECK(!sluice_step_end(w->rt, &report));
    RANK_CHECK(report.step == step && !report.skipped);
    reduce(w, step);
    if (t->clip > 0) {
        double norm = norm_of(w);
        RANK_CHECK(fabs(report.gradient_norm - norm) <= 1e-6 * norm);
        factor = t->clip / (report.gradient_norm + 1e-6);
        if (factor > 1) factor = 1;
    }
    if (t->lamb) return apply_lamb(w, step, options.learning_rate);
    apply(w, step, options.learning_rate, factor);
    return 0;
}

static inline void destroy(model *w)
{
    sluice_runtime_destroy(w->rt);
    for (uint32_t p = 0; p < w->param_count; p++) {
        free(w->params[p].value);
        free(w->params[p].gradient);
        free(w->params[p].m);
        free(w->params[p].v);
    }
}

/* Between steps: often nothing, else one of the calls that want everything applied. */
static inline int interrupt(model *w, uint64_t step)
{
    known_param *k = &w->params[step % w->param_count];
    uint64_t random = mix(w->t->seed * 100 + step);
    switch (draw(&random, 7)) {
    case 0: return check_read(w);
    case 1: return evaluate(w, 2);
    case 2: RANK_CHECK(!sluice_runtime_sync(w->rt) && !sluice_runtime_sync(w->rt)); return 0;
    case 3: return write_noise(k, random);
    default: return 0;
    }
}

/* Another plan from here on, of any schedule and any strategies. */
static inline int change_plan(model *w, uint64_t step)
{
    static const char *const schedules[] = {
        "serial", "one_ahead", "bucketed", "priority", "greedy", SLC_SCHEDULE_DEFAULT, SLC_SCHEDULE_DEFAULT,
        "drawn",  "drawn",     "drawn"};
    static const char *const strategies[] = {"auto", "auto", "dp", "oss", "sdp", "fsdp", "mixed", "random:1"};
    char name[48], strategy[16];
    uint64_t random = mix(w->t->seed * 1000 + step);
    const char *schedule = schedules[draw(&random, sizeof schedules / sizeof *schedules)];
    snprintf(strategy, sizeof strategy, "%s", strategies[draw(&random, sizeof strategies / sizeof *strategies)]);
    if (!strcmp(strategy, "random:1")) snprintf(strategy, sizeof strategy, "random:%u", (unsigned)draw(&random, 1000));
    snprintf(name, sizeof name, "%s/%llu", schedule, (unsigned long long)mix(random));
    sluice_status status = sluice_runtime_replan(w->rt, strategy, name, 0);
    if (status && w->rank == 0)
        fprintf(stderr, "step %u: %s, %s: %s\n", (unsigned)step, strategy, name, sluice_status_name(status));
    RANK_CHECK(!status);
    return 0;
}

/* The arena refuses what is above the running plan; the peak is of all plans so far. */
static inline int check_peak(const model *w)
{
    sluice_memory_report memory;
    RANK_CHECK(!sluice_runtime_memory(w->rt, &memory));
    RANK_CHECK(memory.peak_bytes == memory.planned_bytes);
    RANK_CHECK(!w->t->random || w->t->changing_steps || memory.peak_bytes <= memory.budget_bytes);
    return 0;
}

static inline int run_trial(int rank, int size, void *context)
{
    model w = {.t = context, .rank = rank};
    sluice_world *world;
    uint64_t steps = w.t->changing_steps ? w.t->changing_steps : w.t->random ? STEPS_RANDOM : STEPS;
    if (!w.t->direct) setenv("SLUICE_COMM_DIRECT", "off", 1);
    RANK_CHECK(!sluice_world_create(NULL, &world));
    RANK_CHECK(sluice_world_size(world) == size);
    if (build(&w, world)) return 1;
    if (check_read(&w)) return 1;
    for (uint64_t step = 1; step <= steps; step++) {
        if (w.t->changing_steps && step % STEPS_A_PLAN == 0 && change_plan(&w, step)) return 1;
        if (one_step(&w, step) || interrupt(&w, step)) return 1;
    }
    if (check_read(&w)) return 1;
    if (evaluate(&w, 1)) return 1;
    if (check_peak(&w)) return 1;
    destroy(&w);
    sluice_world_destroy(world);
    return 0;
}

static inline trial random_trial(uint64_t seed)
{
    static const char *const strategies[] = {"dp", "oss", "sdp", "fsdp", "random:1", "random:2", "random:3", "mixed"};
    static const char *const recomputes[] = {"auto", "none", "all"};
    static const uint64_t blocks[] = {64, 1024, 4096, 1 << 20};
    uint64_t random = mix(seed), other = mix(seed + 77777);
    /* All layers in bf16, each as it comes, or all in fp32. */
    uint64_t kind = draw(&other, 3), layers = kind == 0 ? UINT64_MAX : kind == 1 ? draw(&other, 1 << LAYERS_MAX) : 0;
    static const char *const updates[] = {NULL, "auto", "communication", "compute", "compute"};
    uint64_t lanes = mix(seed + 88888);
    bool lamb = draw(&other, 3) == 0;
    return (trial){.seed = seed,
                   .updates = updates[draw(&lanes, 5)],
                   .threads = (uint32_t)draw(&lanes, 4),
                   .lamb = lamb,
                   .bf16_layers = layers,
                   .bf16_wire = draw(&other, 4) > 0,
                   .mixed_update = draw(&other, 2),
                   .ranks = 1 + (int)draw(&random, 4),
                   .layers = 1 + (uint32_t)draw(&random, LAYERS_MAX),
                   .micro_batches = 1 + (uint32_t)draw(&random, 3),
                   .schedule = draw(&random, 3) ? "one_ahead" : "serial",
                   .strategy = strategies[draw(&random, 8)],
                   .recompute = recomputes[draw(&random, 3)],
                   .each = draw(&random, 2),
                   .direct = draw(&random, 2),
                   .clip = draw(&random, 3) || lamb ? 0 : 0.5,
                   .block = blocks[draw(&random, 4)]};
}

/* Most tied parameters are looked up by rows, three in four split. */
static inline trial look_up_trial(uint64_t seed)
{
    trial t = random_trial(seed);
    t.layers = 2 + t.layers % (LAYERS_MAX - 1);
    t.look_ups = true;
    t.split = seed % 4;
    return t;
}

static inline void check_trial(trial t)
{
    int failed = run_ranks(t.ranks, run_trial, &t, t.changing_steps ? 300 : 120);
    if (failed)
        print_error("seed %llu: %d ranks, %u layers, M %u, %s, %s, each %d, direct %d, clip %g, block %llu, %u "
                    "changing steps, bf16 layers %llx, wire %d, mixed update %d, lamb %d, look-ups %d, split %d, "
                    "updates %s, %u threads\n",
                    (unsigned long long)t.seed, t.ranks, t.layers, t.micro_batches, t.random ? "random" : t.schedule,
                    t.strategy, t.each, t.direct, t.clip, (unsigned long long)t.block, t.changing_steps,
                    (unsigned long long)t.bf16_layers, t.bf16_wire, t.mixed_update, t.lamb, t.look_ups, t.split,
                    t.updates ? t.updates : "one at a time", t.threads);
    assert_int_equal(failed, 0);
}

/* What a test's command line may ask for: only tests whose name matches, so many random plans or steps under changing
 * plans, from that seed on. */
typedef struct {
    uint32_t many, first_seed; /* many 0: few */
} extent;

static inline void read_extent(int argc, char **argv, extent *asked)
{
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    if (argc > 2) asked->many = (uint32_t)strtoul(argv[2], NULL, 10);
    if (argc > 3) asked->first_seed = (uint32_t)strtoul(argv[3], NULL, 10);
}

/* Returns how many plans that were. */
static inline uint32_t check_random_plans(const extent *asked, uint32_t few, trial (*draw_trial)(uint64_t seed))
{
    uint32_t rounds = asked->many ? asked->many : few;
    for (uint64_t seed = 1; seed <= rounds; seed++) {
        trial t = draw_trial(asked->first_seed + seed);
        t.random = true;
        t.delays = seed % 3 == 0;
        check_trial(t);
    }
    return rounds;
}

#endif
