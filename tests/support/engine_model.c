/* The drawn model of the engine's tests: registration, an optimizer of its own, first values. */
#include "tests/support/engine_model.h"

#include "lib/base/element.h"
#include "lib/engine/engine.h"
#include "tests/support/draw.h"
#include "tests/support/drawn_planners.h"
#include "tests/support/ranks.h"
#include "tests/support/scale.h"

#include <math.h>

void engine_model_dawdle(uint64_t *chance)
{
    if (*chance && draw(chance, 3) == 0) usleep((useconds_t)draw(chance, 250));
}

sluice_status engine_model_update(const sluice_update *u, void *context)
{
    static _Thread_local uint64_t chance; /* several threads may be here */
    if (context && !chance) chance = *(uint64_t *)context + u->parameter;
    engine_model_dawdle(&chance);
    float rate = (float)u->learning_rate, factor = (float)u->gradient_factor;
    for (size_t i = 0; i < u->count; i++) {
        float g = slc_element_value(u->gradient, u->gradient_dtype, i);
        g = g * factor;
        u->state[0][i] = u->state[0][i] * 0.5f + g;
        u->value[i] = u->value[i] - rate * (u->state[0][i] + (u->no_decay ? 0 : 0.01f * u->value[i]));
        if (u->rounded) ((uint16_t *)u->rounded)[i] = sluice_bf16_from_float(u->value[i]);
    }
    return SLUICE_OK;
}

static sluice_status update_fp32(const sluice_update *u, void *context)
{
    if (u->gradient_dtype != SLUICE_FP32 || u->rounded) return SLUICE_ERR_FORMAT;
    return engine_model_update(u, context);
}

/* Creates the runtime with the model's own optimizer and, if the trial draws plans, a planner that draws them. */
static int create(engine_model *w, sluice_world *world, sluice_config *config)
{
    char drawn[32];
    if (w->t->delays) w->chance = mix(w->t->seed * 16 + (uint64_t)w->rank) | 1;
    sluice_optimizer own_optimizer = {.struct_size = sizeof(sluice_optimizer),
                                      .name = "test",
                                      .state_count = 1,
                                      .state_name = {"momentum"},
                                      .update = w->t->mixed_update ? engine_model_update : update_fp32,
                                      .mixed_precision = w->t->mixed_update,
                                      .concurrent = w->t->updates};
    if (test_brief()) config->steps = STEPS; /* a planner under a sanitizer takes long: it is not what is tested here */
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
    slc_planner planner = {.plan = plan_as_named, .fuse = fuse_drawn};
    if (w->t->regroups) {
        planner.plan = plan_ever_faster;
        planner.wants_times = wants_unread_times;
        setenv("SLUICE_PLAN_DRIFT", "1000000", 1); /* the predictions are made up */
    }
    RANK_CHECK(!slc_engine_create(world, config, planner, &w->rt));
    return 0;
}

/* Most tied parameters of a trial with look-ups are looked up by rows. */
static void draw_shape(known_param *p, bool split, uint64_t *random)
{
    if (draw(random, 5) == 0) return;
    p->frozen = false;
    p->row_elements = 1 + draw(random, 40);
    p->count = p->row_elements * (1 + draw(random, 60));
    p->most_rows = 1 + draw(random, LOOKED_UP_MAX);
    p->split = split;
}

static int add_params(engine_model *w, uint64_t *random)
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
            p->group = w->param_count % GROUPS;
            bool tied = l + 1 < w->t->layers && draw(random, w->t->look_ups ? 2 : 4) == 0;
            if (tied) p->tied_layer = (int)(l + 1 + draw(random, w->t->layers - l - 1));
            if (tied && w->t->look_ups) draw_shape(p, w->t->split, random);
            int left = (int)w->t->layers - 1 - p->tied_layer;
            uint64_t third = mix(*random);
            if (tied && left > 0 && draw(&third, 2))
                p->last_layer = p->tied_layer + 1 + (int)draw(&third, (uint64_t)left);
            p->no_backward_value = draw(random, 4) == 0;
            RANK_CHECK(!sluice_param_add(w->layer[l],
                                         &(sluice_param_desc){.struct_size = sizeof(sluice_param_desc),
                                                              .name = name,
                                                              .count = p->count,
                                                              .frozen = p->frozen,
                                                              .no_decay = p->no_decay,
                                                              .tied = tied,
                                                              .no_backward_value = p->no_backward_value,
                                                              .row_elements = p->row_elements,
                                                              .most_rows = p->most_rows,
                                                              .group = p->group},
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

int engine_model_write_noise(known_param *k, uint64_t seed)
{
    for (uint64_t i = 0; i < k->count; i++) k->value[i] = noise(seed, i);
    RANK_CHECK(!sluice_param_write(k->param, 0, k->count, k->value));
    for (uint64_t i = 0; k->frozen && k->bf16 && i < k->count; i++) k->value[i] = engine_model_rounded(k->value[i]);
    return 0;
}

int engine_model_build(engine_model *w, sluice_world *world)
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
    config.precision = t->bf16_layers & 1 ? SLUICE_BF16 : SLUICE_FP32; /* layer 0's; layers that differ say so */
    if (create(w, world, &config)) return 1;
    for (uint32_t l = 0; l < t->layers; l++) {
        char name[16];
        snprintf(name, sizeof name, "layer%u", l);
        RANK_CHECK(!sluice_layer_add(w->rt, name, &w->layer[l]));
        if ((t->bf16_layers >> l & 1) != (t->bf16_layers & 1))
            RANK_CHECK(!sluice_layer_precision(w->layer[l], t->bf16_layers >> l & 1 ? SLUICE_BF16 : SLUICE_FP32));
        RANK_CHECK(!sluice_activation_add(w->layer[l],
                                          &SLUICE_INIT(sluice_activation_desc, .name = "a",
                                                       .bytes = 64 + draw(&random, 4096), .last = SLUICE_BACKWARD),
                                          &w->activation[l]));
        w->can_recompute[l] = draw(&random, 2);
        w->remade_bytes[l] = 64 + draw(&random, 4096);
        RANK_CHECK(!sluice_layer_can_recompute(w->layer[l], w->can_recompute[l]));
        RANK_CHECK(!sluice_activation_add(w->layer[l],
                                          &(sluice_activation_desc){.struct_size = sizeof(sluice_activation_desc),
                                                                    .name = "r",
                                                                    .bytes = w->remade_bytes[l],
                                                                    .last = SLUICE_BACKWARD,
                                                                    .recomputable = w->can_recompute[l]},
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
        if (!t->random && t->recompute == SLUICE_RECOMPUTE_ALL) RANK_CHECK(recomputes == w->can_recompute[l]);
        if (!t->random && t->recompute == SLUICE_RECOMPUTE_NONE) RANK_CHECK(!recomputes);
    }
    for (uint32_t p = 0; p < w->param_count; p++)
        if (engine_model_write_noise(&w->params[p], t->seed + p)) return 1;
    return 0;
}

float engine_model_rounded(float x)
{
    return sluice_bf16_to_float(sluice_bf16_from_float(x));
}

float engine_model_seen(const known_param *k, uint64_t i)
{
    return k->bf16 ? engine_model_rounded(k->value[i]) : k->value[i];
}

bool engine_model_uses(const known_param *p, uint32_t layer)
{
    return p->layer == layer || p->tied_layer == (int)layer || p->last_layer == (int)layer;
}

bool engine_model_looks_up(const known_param *p, uint32_t layer)
{
    return p->row_elements && p->layer == layer;
}

void engine_model_destroy(engine_model *w)
{
    sluice_runtime_destroy(w->rt);
    for (uint32_t p = 0; p < w->param_count; p++) {
        free(w->params[p].value);
        free(w->params[p].gradient);
        free(w->params[p].m);
        free(w->params[p].v);
    }
}
