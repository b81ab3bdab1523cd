/* Programs that stand at any moment of a runtime's life, from its first layer to its failure, and can go on from there.
 */
#pragma once

#include "tests/support/ranks.h"

#include <sluice/model.h>
#include <sluice/sluice.h>
#include <stdbool.h>

enum { ELEMENTS = 100, ROW = 4, ROWS = 10, TOKENS = 8 };

typedef enum { HOOKS, MODEL, CACHE } kind;

/* The letters of the table's columns. */
typedef enum {
    REGISTERING, /* before commit */
    IDLE,        /* between steps, after the first */
    IN_STEP,     /* no slot has begun */
    IN_FORWARD,  /* of the first layer; of a model: behind sluice_model_forward */
    RECOMPUTING, /* the first layer, as what follows */
    RECOMPUTED,
    IN_BACKWARD,
    SLOTS_DONE, /* step_end comes next */
    EVALUATING, /* no forward has begun */
    IN_EVALUATED_FORWARD,
    FAILED,       /* between steps; what it failed with is `planted` */
    FAILED_EARLY, /* the same before commit */
    PEER_FAILED,  /* the same, of rank 1, seen from rank 0 */
    MOMENTS
} moment;

static const char *const moment_names[MOMENTS] = {"before commit",
                                                  "between steps",
                                                  "in a step",
                                                  "in a forward",
                                                  "recomputing",
                                                  "having recomputed",
                                                  "in a backward",
                                                  "behind the last slot",
                                                  "evaluating",
                                                  "in an evaluated forward",
                                                  "failed",
                                                  "failed before commit",
                                                  "when rank 1 has failed"};
static const char planted[] = "a planted failure";

typedef struct {
    kind kind;
    moment now;
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *first, *last, *added; /* added: by the table's own row, before commit */
    sluice_param *w, *rows;
    sluice_activation *hidden;
    sluice_workspace *space;
    sluice_model *model;
} program;

static const int32_t tokens[TOKENS] = {1, 2, 3, 4, 5, 6, 7, 8}, targets[TOKENS] = {2, 3, 4, 5, 6, 7, 8, 9};

static inline sluice_model_config small_model(void)
{
    return SLUICE_INIT(sluice_model_config, .family = SLUICE_GPT2, .layers = 1, .channels = 16, .heads = 2,
                       .hidden = 32, .vocabulary = 32, .context = TOKENS, .epsilon = 1e-5, .gelu_tanh = true);
}

static inline sluice_batch small_batch(void)
{
    return SLUICE_INIT(sluice_batch, .tokens = tokens, .targets = targets);
}

static inline sluice_status register_layers(program *p)
{
    const sluice_param_desc w = SLUICE_INIT(sluice_param_desc, .name = "w", .count = ELEMENTS);
    const sluice_param_desc rows = SLUICE_INIT(sluice_param_desc, .name = "rows", .count = ROW * ROWS, .tied = true,
                                               .row_elements = ROW, .most_rows = 3);
    const sluice_activation_desc hidden = SLUICE_INIT(sluice_activation_desc, .name = "hidden", .bytes = 64,
                                                      .last = SLUICE_BACKWARD, .recomputable = true);
    const sluice_workspace_desc space =
        SLUICE_INIT(sluice_workspace_desc, .name = "space", .bytes = 64, .last = UINT32_MAX);
    sluice_status status = sluice_layer_add(p->rt, "first", &p->first);
    if (!status) status = sluice_layer_can_recompute(p->first, true);
    if (!status) status = sluice_param_add(p->first, &w, &p->w);
    if (!status) status = sluice_param_add(p->first, &rows, &p->rows);
    if (!status) status = sluice_activation_add(p->first, &hidden, &p->hidden);
    if (!status) status = sluice_workspace_add(p->first, &space, &p->space);
    if (!status) status = sluice_layer_add(p->rt, "last", &p->last);
    return status ? status : sluice_param_use(p->last, p->rows);
}

static inline sluice_status register_model(program *p)
{
    const sluice_model_config config = small_model();
    const sluice_model_options options =
        SLUICE_INIT(sluice_model_options, .batch = 1, .length = TOKENS, .cache_tokens = p->kind == CACHE ? TOKENS : 0);
    return sluice_model_create(p->rt, &config, &options, &p->model);
}

/* Types and the optimizer are such that no answer is 0 by chance. */
static inline sluice_status begin(program *p)
{
    sluice_config config;
    sluice_config_init(&config);
    config.schedule = "one_ahead";
    config.strategy = "dp";
    config.optimizer_name = "onebit_adam";
    config.precision = p->kind == HOOKS ? SLUICE_BF16 : SLUICE_FP32;
    config.recompute = SLUICE_RECOMPUTE_ALL;
    p->now = REGISTERING;
    sluice_status status = sluice_runtime_create(p->world, &config, &p->rt);
    if (!status) status = p->kind == HOOKS ? register_layers(p) : register_model(p);
    return status;
}

/* Operations that a step has begun are dropped with it, and then the world has failed. */
static inline sluice_status end(program *p)
{
    sluice_model_destroy(p->model);
    sluice_runtime_destroy(p->rt);
    *p = (program){.kind = p->kind, .world = p->world};
    if (sluice_world_size(p->world) > 1 || !sluice_world_check(p->world)) return SLUICE_OK;
    sluice_world_destroy(p->world);
    p->world = NULL;
    return sluice_world_create(NULL, &p->world);
}

static inline sluice_status set_rows(program *p)
{
    int32_t rows[2] = {7, 1};
    return sluice_rows_set(p->rows, rows, 2, rows);
}

static inline sluice_status begin_forward(program *p)
{
    sluice_status status = set_rows(p);
    return status ? status : sluice_forward_begin(p->first);
}

static inline sluice_status forward_last(program *p)
{
    sluice_status status = sluice_forward_end(p->first);
    if (!status) status = sluice_forward_begin(p->last);
    return status ? status : sluice_forward_end(p->last);
}

static inline sluice_status begin_recomputing(program *p)
{
    sluice_status status = forward_last(p);
    if (!status) status = sluice_backward_begin(p->last);
    if (!status) status = sluice_backward_end(p->last);
    return status ? status : sluice_recompute_begin(p->first);
}

/* Takes a program of hooks one moment further; `to` says whether to a step or an evaluation. */
static inline sluice_status advance_hooks(program *p, moment to)
{
    const bool evaluates = to == EVALUATING || to == IN_EVALUATED_FORWARD;
    const sluice_step_options options = SLUICE_INIT(sluice_step_options, .learning_rate = 0.1);
    sluice_status status = SLUICE_OK;
    switch (p->now) {
    case IDLE:
        p->now = evaluates ? EVALUATING : IN_STEP;
        return evaluates ? sluice_evaluate_begin(p->rt) : sluice_step_begin(p->rt, &options);
    case IN_STEP: p->now = IN_FORWARD; return begin_forward(p);
    case IN_FORWARD: p->now = RECOMPUTING; return begin_recomputing(p);
    case RECOMPUTING: p->now = RECOMPUTED; return sluice_recompute_end(p->first);
    case RECOMPUTED: p->now = IN_BACKWARD; return sluice_backward_begin(p->first);
    case IN_BACKWARD: p->now = SLOTS_DONE; return sluice_backward_end(p->first);
    case SLOTS_DONE: p->now = IDLE; return sluice_step_end(p->rt, NULL);
    case EVALUATING: p->now = IN_EVALUATED_FORWARD; return begin_forward(p);
    case IN_EVALUATED_FORWARD:
        p->now = IDLE;
        status = forward_last(p);
        return status ? status : sluice_evaluate_end(p->rt);
    default: return SLUICE_ERR_ARGUMENT;
    }
}

static inline sluice_status advance_model(program *p, moment to)
{
    const sluice_step_options options = SLUICE_INIT(sluice_step_options, .learning_rate = 0.1);
    const sluice_batch batch = small_batch();
    switch (p->now) {
    case IDLE:
        p->now = to == EVALUATING ? EVALUATING : IN_STEP;
        return to == EVALUATING ? sluice_evaluate_begin(p->rt) : sluice_step_begin(p->rt, &options);
    case IN_STEP: p->now = IN_FORWARD; return sluice_model_forward(p->model, &batch);
    case IN_FORWARD: p->now = SLOTS_DONE; return sluice_model_backward(p->model, NULL);
    case SLOTS_DONE: p->now = IDLE; return sluice_step_end(p->rt, NULL);
    case EVALUATING: p->now = IDLE; return sluice_evaluate_end(p->rt);
    default: return SLUICE_ERR_ARGUMENT;
    }
}

static inline sluice_status advance(program *p, moment to)
{
    return p->kind == HOOKS ? advance_hooks(p, to) : advance_model(p, to);
}

/* Returns true if there is this moment in the life of such a program. One that only evaluates makes no step. */
static inline bool there_is(kind of, moment at)
{
    static const bool of_model[MOMENTS] = {
        [REGISTERING] = true, [IDLE] = true,   [IN_STEP] = true,      [IN_FORWARD] = true, [SLOTS_DONE] = true,
        [EVALUATING] = true,  [FAILED] = true, [FAILED_EARLY] = true, [PEER_FAILED] = true};
    const bool steps = at == IN_STEP || at == IN_FORWARD || at == SLOTS_DONE;
    return of == HOOKS || (of_model[at] && !(of == CACHE && steps));
}

/* One step, with which the program is where it was. */
static inline sluice_status whole_step(program *p)
{
    sluice_status status = SLUICE_OK;
    if (p->kind == CACHE) return sluice_runtime_sync(p->rt);
    do status = advance(p, SLOTS_DONE);
    while (!status && p->now != IDLE);
    return status;
}

static inline sluice_status commit(program *p)
{
    sluice_status status = sluice_runtime_commit(p->rt);
    p->now = IDLE;
    return status;
}

static inline sluice_status fail_now(program *p, moment at)
{
    p->now = at;
    return sluice_runtime_fail(p->rt, SLUICE_ERR_SYSTEM, planted) == SLUICE_ERR_SYSTEM ? SLUICE_OK : SLUICE_ERR_FORMAT;
}

static inline sluice_status reach(program *p, moment at)
{
    sluice_status status = begin(p);
    if (status || at == REGISTERING) return status;
    if (at == FAILED_EARLY) return fail_now(p, at);
    status = commit(p);
    if (!status) status = whole_step(p);
    if (!status && (at == FAILED || (at == PEER_FAILED && sluice_world_rank(p->world)))) return fail_now(p, at);
    while (!status && at == PEER_FAILED && !sluice_world_check(p->world)) wait_ms(1);
    /* Rank 1 may have failed before rank 0 was at the end of its step. */
    if (at == PEER_FAILED && sluice_world_check(p->world)) status = SLUICE_OK;
    if (at == PEER_FAILED) p->now = at;
    while (!status && p->now != at) status = advance(p, at);
    return status;
}

/* The program goes on as if the calls had not been made. */
static inline int goes_on(program *p)
{
    if (p->now >= FAILED) return 0;
    if (p->now == REGISTERING) RANK_CHECK(!commit(p));
    if (p->added) return 0; /* it has a layer that no step here runs */
    while (p->now != IDLE) RANK_CHECK(!advance(p, p->now));
    RANK_CHECK(!whole_step(p));
    return 0;
}
