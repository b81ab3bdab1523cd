/* Steps of the drawn model on one rank, with everything compared that a program can see. */
#include "tests/support/engine_steps.h"

#include "lib/base/hash/fnv.h"
#include "lib/engine/runtime.h"
#include "lib/plan/request.h"
#include "tests/support/draw.h"
#include "tests/support/engine_model.h"
#include "tests/support/engine_oracle.h"
#include "tests/support/ranks.h"

#include <math.h>

/* Elements of an array, which may be in bf16, against wanted ones. */
static int check_equal(const known_param *k, const void *array, uint64_t at, const float *want, uint64_t count)
{
    if (!k->bf16) RANK_CHECK(!memcmp((const float *)array + at, want, count * sizeof *want));
    for (uint64_t i = 0; k->bf16 && i < count; i++)
        RANK_CHECK(((const uint16_t *)array)[at + i] == sluice_bf16_from_float(want[i]));
    return 0;
}

static int check_values(engine_model *w, uint32_t layer, bool backward)
{
    for (uint32_t p = 0; p < w->param_count; p++) {
        known_param *k = &w->params[p];
        uint64_t row = k->row_elements;
        if (!engine_model_uses(k, layer) || (backward && k->layer == layer && k->no_backward_value)) continue;
        const void *value = sluice_param_value(k->param);
        RANK_CHECK(value);
        if (!engine_model_looks_up(k, layer)) {
            if (check_equal(k, value, 0, k->value, k->count)) return 1;
            continue;
        }
        for (uint32_t i = 0; i < k->looked_up; i++)
            if (check_equal(k, value, row * (uint32_t)k->places[i], k->value + row * (uint32_t)k->rows[i], row))
                return 1;
    }
    return 0;
}

/* Sets the rows to look up, before a micro-batch or a pass of an evaluation. */
static int look_up(engine_model *w, uint64_t step, uint32_t m)
{
    for (uint32_t p = 0; p < w->param_count; p++) {
        known_param *k = &w->params[p];
        if (!k->row_elements) continue;
        engine_model_dawdle(&w->chance);
        k->looked_up = engine_oracle_rows(k, w->rank, step, m, p, k->rows);
        RANK_CHECK(!sluice_rows_set(k->param, k->rows, k->looked_up, k->places));
    }
    return 0;
}

static unsigned char pattern(const engine_model *w, uint32_t layer)
{
    return (unsigned char)mix(w->t->seed + layer);
}

static void write_pattern(engine_model *w, uint32_t layer)
{
    memset(sluice_activation_data(w->remade[layer]), pattern(w, layer), w->remade_bytes[layer]);
}

static int check_pattern(engine_model *w, uint32_t layer)
{
    const unsigned char *bytes = sluice_activation_data(w->remade[layer]);
    for (uint64_t i = 0; i < w->remade_bytes[layer]; i++) RANK_CHECK(bytes[i] == pattern(w, layer));
    return 0;
}

static int recompute(engine_model *w, uint32_t layer)
{
    if (!sluice_layer_recomputes(w->layer[layer])) return 0;
    RANK_CHECK(!sluice_recompute_begin(w->layer[layer]));
    engine_model_dawdle(&w->chance);
    if (check_values(w, layer, false)) return 1;
    write_pattern(w, layer);
    RANK_CHECK(!sluice_recompute_end(w->layer[layer]));
    return 0;
}

static int forward(engine_model *w, uint32_t layer)
{
    engine_model_dawdle(&w->chance);
    RANK_CHECK(!sluice_forward_begin(w->layer[layer]));
    engine_model_dawdle(&w->chance);
    if (check_values(w, layer, false)) return 1;
    *(uint64_t *)sluice_activation_data(w->activation[layer]) = 77 + layer;
    write_pattern(w, layer);
    RANK_CHECK(!sluice_forward_end(w->layer[layer]));
    return 0;
}

static void add_element(const known_param *k, void *gradient, uint64_t at, bool fresh, float add)
{
    float *wide = gradient;
    uint16_t *narrow = gradient;
    if (k->bf16_gradient)
        narrow[at] = sluice_bf16_from_float(fresh ? add : sluice_bf16_to_float(narrow[at]) + add);
    else
        wide[at] = fresh ? add : wide[at] + add;
}

static void add_rows(const engine_model *w, uint32_t p, uint64_t step, uint32_t m, void *gradient)
{
    const known_param *k = &w->params[p];
    for (uint32_t i = 0; i < k->looked_up; i++)
        for (uint64_t e = 0; e < k->row_elements; e++)
            add_element(k, gradient, (uint32_t)k->places[i] * k->row_elements + e, false,
                        engine_oracle_row_contribution(k, w->rank, step, m, p, i, k->rows[i], e));
}

static int backward(engine_model *w, uint32_t layer, uint64_t step, uint32_t m)
{
    engine_model_dawdle(&w->chance);
    if (recompute(w, layer)) return 1;
    RANK_CHECK(!sluice_backward_begin(w->layer[layer]));
    if (check_pattern(w, layer) || check_values(w, layer, true)) return 1;
    engine_model_dawdle(&w->chance);
    RANK_CHECK(*(uint64_t *)sluice_activation_data(w->activation[layer]) == 77 + layer);
    for (uint32_t p = 0; p < w->param_count; p++) {
        known_param *k = &w->params[p];
        if (!engine_model_uses(k, layer) || k->frozen) continue;
        uint32_t use = k->layer == layer ? 0 : k->tied_layer == (int)layer ? 1 : 2;
        bool fresh = false, ask = (p + step) % 2;
        void *gradient = ask ? sluice_param_gradient_fresh(k->param, &fresh) : sluice_param_gradient(k->param);
        RANK_CHECK(gradient);
        if (engine_model_looks_up(k, layer)) {
            RANK_CHECK(!fresh || w->t->leaves_out); /* else the other use came before */
            if (fresh) memset(gradient, 0, k->count * (k->bf16_gradient ? 2 : 4));
            add_rows(w, p, step, m, gradient);
            continue;
        }
        for (uint64_t i = 0; i < k->count; i++)
            add_element(k, gradient, i, fresh,
                        engine_oracle_contribution(w->rank, step, m, p, use, i, engine_model_seen(k, i)));
    }
    RANK_CHECK(!sluice_backward_end(w->layer[layer]));
    return 0;
}

static int check_state(const known_param *k, const char *name, const float *want)
{
    float *got = calloc(k->count, sizeof *got);
    RANK_CHECK(!sluice_param_state_read(k->param, name, 0, k->count, got));
    RANK_CHECK(!memcmp(got, want, k->count * sizeof *got));
    free(got);
    return 0;
}

static int check_read(engine_model *w)
{
    for (uint32_t p = 0; p < w->param_count; p++) {
        known_param *k = &w->params[p];
        RANK_CHECK(sluice_param_updates(k->param) == engine_oracle_updates(w, k, sluice_runtime_step(w->rt)));
        float *got = calloc(k->count, sizeof *got);
        RANK_CHECK(!sluice_param_read(k->param, 0, k->count, got));
        RANK_CHECK(!memcmp(got, k->value, k->count * sizeof *got));
        free(got);
        if (!k->frozen && check_state(k, w->t->lamb ? "exp_avg" : "momentum", k->m)) return 1;
        if (!k->frozen && w->t->lamb && check_state(k, "exp_avg_sq", k->v)) return 1;
    }
    return 0;
}

static int evaluate(engine_model *w, uint32_t passes)
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

/* The runtime must say what the oracle does. */
static bool runs(const engine_model *w, uint64_t step, uint32_t layer)
{
    const bool runs_here = sluice_layer_runs(w->layer[layer]);
    if (runs_here == engine_oracle_leaves_out(w, step, layer)) abort();
    return runs_here;
}

static int train_step(engine_model *w, uint64_t step)
{
    const trial *t = w->t;
    sluice_step_options options = engine_oracle_options(t, step);
    double factor = 1, rates[GROUPS];
    const sluice_layer *left_out[LAYERS_MAX];
    for (uint32_t l = 0; l < t->layers; l++)
        if (engine_oracle_leaves_out(w, step, l)) left_out[options.layer_left_out_count++] = w->layer[l];
    options.layers_left_out = left_out;
    for (uint32_t g = 0; g < options.group_count; g++) rates[g] = options.group_rates[g];
    if (options.group_rates) options.group_rates = rates;
    RANK_CHECK(!sluice_step_begin(w->rt, &options));
    for (uint32_t g = 0; g < options.group_count; g++) rates[g] = 1e30; /* they have been copied */
    memset(left_out, 0, sizeof left_out);
    for (uint32_t m = 0; m < engine_oracle_micro_batches(t, step); m++) {
        if (look_up(w, step, m)) return 1;
        for (uint32_t l = 0; l < t->layers; l++)
            if (runs(w, step, l) && forward(w, l)) return 1;
        for (uint32_t l = t->layers; l-- > 0;)
            if (runs(w, step, l) && backward(w, l, step, m)) return 1;
    }
    sluice_step_report report = SLUICE_INIT(sluice_step_report);
    RANK_CHECK(!sluice_step_end(w->rt, &report));
    RANK_CHECK(report.step == step && !report.skipped);
    engine_oracle_reduce(w, step);
    if (t->clip > 0) {
        double norm = engine_oracle_norm(w);
        RANK_CHECK(fabs(report.gradient_norm - norm) <= 1e-6 * norm);
        factor = t->clip / (report.gradient_norm + 1e-6);
        if (factor > 1) factor = 1;
    }
    return engine_oracle_update(w, step, factor);
}

/* Often does nothing between steps, else makes one of the calls that want everything applied. */
static int interrupt(engine_model *w, uint64_t step)
{
    known_param *k = &w->params[step % w->param_count];
    uint64_t random = mix(w->t->seed * 100 + step);
    switch (draw(&random, 7)) {
    case 0: return check_read(w);
    case 1: return evaluate(w, 2);
    case 2: RANK_CHECK(!sluice_runtime_sync(w->rt) && !sluice_runtime_sync(w->rt)); return 0;
    case 3: return engine_model_write_noise(k, random);
    default: return 0;
    }
}

/* A number that the units' names decide. */
static uint64_t name_units(const engine_model *w)
{
    uint64_t hash = SLC_FNV_START;
    for (uint32_t u = 0; u < w->rt->job.unit_count; u++)
        hash = slc_fnv(hash, w->rt->job.units[u].name, strlen(w->rt->job.units[u].name) + 1);
    return hash;
}

/* Changes to another plan, of any schedule and any strategies. */
static int change_plan(engine_model *w, uint64_t step)
{
    static const char *const schedules[] = {
        "serial", "one_ahead", "bucketed", "priority", "greedy", slc_schedule_default, slc_schedule_default,
        "drawn",  "drawn",     "drawn"};
    static const char *const strategies[] = {"auto", "auto", "dp", "oss", "sdp", "fsdp", "mixed", "random:1"};
    char name[48], strategy[16];
    uint64_t random = mix(w->t->seed * 1000 + step);
    const char *schedule = schedules[draw(&random, sizeof schedules / sizeof *schedules)];
    snprintf(strategy, sizeof strategy, "%s", strategies[draw(&random, sizeof strategies / sizeof *strategies)]);
    if (!strcmp(strategy, "random:1")) snprintf(strategy, sizeof strategy, "random:%u", (unsigned)draw(&random, 1000));
    snprintf(name, sizeof name, "%s/%llu", schedule, (unsigned long long)mix(random));
    const uint64_t units = name_units(w);
    sluice_status status = sluice_runtime_replan(w->rt, strategy, name, 0);
    if (w->t->regroups && w->rank == 0) *w->t->regroups += name_units(w) != units;
    if (status && w->rank == 0)
        fprintf(stderr, "step %u: %s, %s: %s\n", (unsigned)step, strategy, name, sluice_status_name(status));
    RANK_CHECK(!status);
    return 0;
}

/* The arena refuses whatever is above the running plan; the peak is that of all plans so far. */
static int check_peak(const engine_model *w)
{
    sluice_memory_report memory = SLUICE_INIT(sluice_memory_report);
    RANK_CHECK(!sluice_runtime_memory(w->rt, &memory));
    RANK_CHECK(memory.peak_bytes == memory.planned_bytes);
    RANK_CHECK(!w->t->random || w->t->changing_steps || memory.peak_bytes <= memory.budget_bytes);
    return 0;
}

/* ---- A save behind steps ---- */

/* Returns a copy of each parameter's arrays, one after the other, which the checkpoint must hold. */
static float *copy_arrays(const engine_model *w)
{
    uint64_t all = 0, at = 0;
    for (uint32_t p = 0; p < w->param_count; p++) all += 3 * w->params[p].count;
    float *copy = malloc((all + 1) * sizeof *copy);
    for (uint32_t p = 0; copy && p < w->param_count; p++) {
        const known_param *k = &w->params[p];
        const float *const arrays[] = {k->value, k->m, k->v};
        for (int a = 0; a < 3; a++, at += k->count)
            if (arrays[a]) memcpy(copy + at, arrays[a], k->count * sizeof *copy);
    }
    return copy;
}

static void put_arrays_back(engine_model *w, const float *copy)
{
    for (uint32_t p = 0; p < w->param_count; p++) {
        known_param *k = &w->params[p];
        float *const arrays[] = {k->value, k->m, k->v};
        for (int a = 0; a < 3; a++, copy += k->count)
            if (arrays[a]) memcpy(arrays[a], copy, k->count * sizeof *copy);
    }
}

static int begin_save(engine_model *w, float **saved)
{
    *saved = copy_arrays(w);
    RANK_CHECK(*saved);
    RANK_CHECK(!sluice_checkpoint_begin(w->rt, w->t->saves, "x", 1));
    RANK_CHECK(sluice_checkpoint_save(w->rt, w->t->saves, "x", 1) == SLUICE_ERR_ORDER);
    return 0;
}

/* The checkpoint holds what the run had when the save began, whatever the steps since then have done. */
static int check_save(engine_model *w, uint64_t step, float *saved)
{
    sluice_save_report report = SLUICE_INIT(sluice_save_report);
    RANK_CHECK(!sluice_checkpoint_end(w->rt, true, &report) && !report.under_way);
    RANK_CHECK(!sluice_checkpoint_load(w->rt, w->t->saves, NULL, NULL));
    RANK_CHECK(sluice_runtime_step(w->rt) == step);
    put_arrays_back(w, saved);
    free(saved);
    return check_read(w);
}

int engine_steps_run(int rank, int size, void *context)
{
    engine_model w = {.t = context, .rank = rank};
    sluice_world *world;
    float *saved = NULL;
    uint64_t steps = w.t->changing_steps ? w.t->changing_steps : w.t->random ? STEPS_RANDOM : STEPS;
    if (!w.t->direct) setenv("SLUICE_COMM_DIRECT", "off", 1);
    RANK_CHECK(!sluice_world_create(NULL, &world));
    RANK_CHECK(sluice_world_size(world) == size);
    if (engine_model_build(&w, world)) return 1;
    if (check_read(&w)) return 1;
    for (uint64_t step = 1; step <= steps; step++) {
        if (w.t->changing_steps && step % STEPS_A_PLAN == 0 && change_plan(&w, step)) return 1;
        if (train_step(&w, step)) return 1;
        if (saved) RANK_CHECK(!sluice_checkpoint_end(w.rt, false, NULL));
        if (w.t->saves && step == steps / 2 && begin_save(&w, &saved)) return 1;
        if (interrupt(&w, step)) return 1;
    }
    if (check_read(&w)) return 1;
    if (saved && check_save(&w, steps / 2, saved)) return 1;
    if (evaluate(&w, 1)) return 1;
    if (check_peak(&w)) return 1;
    engine_model_destroy(&w);
    sluice_world_destroy(world);
    return 0;
}
