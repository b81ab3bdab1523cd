/* Steps of compressed optimizers that leave layers out. Replicas stay equal, and plans, units and strategies of other
 * layers change no bit; a layer that is left out keeps values, moments, errors and local arrays to the bit and sends
 * nothing; and the steps that leave it out are to it as if they had never been: bias corrections, the freeze and
 * refreshes count its own updates. Compression waits for a layer that has had none; a plan does not wait for one whose
 * replicas never meet. What cannot be left out is refused by name. */
#include "lib/plan/request.h"
#include "tests/support/draw.h"
#include "tests/support/onebit_model.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

static void passes(int ranks, rank_function function, const void *context)
{
    assert_int_equal(run_ranks(ranks, function, (void *)(uintptr_t)context, 120), 0);
}

/* 0/1 Adam refreshes each step up to 3, then every second up to 8, then every fourth; it exchanges each step from 13
 * on, every second from 18, every fourth from 23. */
static trial zero_one(trial t)
{
    t.optimizer = "zero_one_adam";
    t.var_freeze_step = 12, t.var_update_scaler = 3, t.local_step_scaler = 5, t.local_step_clipper = 4;
    return t;
}

/* ---- Plans change nothing ---- */

enum { STEPS = 11, STEPS_OF_INTERVALS = 26, FREEZE = 4 };

static uint64_t steps_of(const trial *t)
{
    return t->var_freeze_step ? STEPS_OF_INTERVALS : STEPS;
}

/* The hash of the weights, which all ranks hold alike whenever they can be read. */
static int weights_of(const trial *t, model *m, uint64_t *hash)
{
    m->t = t;
    if (model_build(m)) return 1;
    const uint64_t steps = steps_of(t);
    uint64_t fewest = steps, most = 0;
    for (uint64_t step = 1; step <= steps; step++) {
        bool readable;
        m->exchange = step == steps;
        if (model_step(m, NULL)) return 1;
        (void)sluice_runtime_replicas_equal(m->rt, &readable);
        if (readable && step % 2 == steps % 2 && model_replicas_equal(m, hash)) return 1;
        RANK_CHECK(readable || !m->exchange);
    }
    for (uint32_t p = 0; p < m->param_count; p++) {
        const uint64_t updates = sluice_param_updates(m->params[p].param);
        fewest = updates < fewest ? updates : fewest;
        most = updates > most ? updates : most;
    }
    RANK_CHECK(fewest < most && most == steps);
    if (model_peak_is_planned(m)) return 1;
    model_end(m);
    return 0;
}

static int any_plan(int rank, int size, void *context)
{
    static const char *const schedules[] = {"one_ahead", "bucketed"};
    const trial *t = context;
    model m;
    uint64_t expected, hash;
    if (model_world(t, rank, size, &m) || weights_of(t, &m, &expected)) return 1;
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        trial other = *t;
        other.schedule = schedules[i];
        other.fuse = i % 2 ? "off" : "64KiB";
        other.block = 65536;
        if (weights_of(&other, &m, &hash)) return 1;
        RANK_CHECK(hash == expected);
    }
    sluice_world_destroy(m.world);
    return 0;
}

static void plans_and_units_change_no_bit(void **state)
{
    (void)state;
    const trial adam = {.seed = 101, .leaves_out = true, .freeze_step = FREEZE, .clip = 0.5, .micro_batches = 2};
    const trial lamb = {.seed = 102, .leaves_out = true, .freeze_step = FREEZE, .optimizer = "onebit_lamb"};
    const trial moves = zero_one((trial){.seed = 103, .leaves_out = true, .bf16_layers = 2});
    passes(2, any_plan, &adam);
    passes(2, any_plan, &lamb);
    passes(3, any_plan, &moves);
}

static int beside_others(int rank, int size, void *context)
{
    return model_beside_any_strategy(rank, size, context, weights_of);
}

static void other_layers_may_be_sharded(void **state)
{
    (void)state;
    const trial adam = {.seed = 104, .leaves_out = true, .freeze_step = FREEZE, .onebit_layers = 5, .skip_nan = true};
    const trial lamb = {
        .seed = 105, .leaves_out = true, .freeze_step = FREEZE, .onebit_layers = 3, .optimizer = "onebit_lamb"};
    trial moves = zero_one((trial){.seed = 106, .leaves_out = true, .onebit_layers = 6});
    passes(2, beside_others, &adam);
    passes(2, beside_others, &lamb);
    passes(2, beside_others, &moves);
}

/* ---- What is left out stays, and sends nothing ---- */

enum { ARRAYS = 8 };

/* Hashes of a layer's arrays: values and states as far as ranks hold the same, errors and local arrays. 0: not to be
 * read. */
static int hash_layer(model *m, uint32_t layer, uint64_t hashes[ARRAYS])
{
    static const char *const names[ARRAYS] = {NULL,           "exp_avg",      "exp_avg_sq",  "exp_avg_sq_fresh",
                                              "error_worker", "error_server", "accumulator", "kept"};
    enum { SHARED = 4 };
    static float x[PADDED_MAX];
    bool readable;
    RANK_CHECK(!sluice_runtime_sync(m->rt));
    (void)sluice_runtime_replicas_equal(m->rt, &readable);
    memset(hashes, 0, ARRAYS * sizeof *hashes);
    for (uint32_t p = 0; p < m->param_count; p++)
        for (int a = 0; a < ARRAYS; a++) {
            const known *k = &m->params[p];
            const uint64_t count = a ? sluice_param_state_count(k->param, names[a]) : k->count;
            if (k->layer != layer || !count || (a < SHARED && !readable)) continue;
            RANK_CHECK(count <= PADDED_MAX);
            RANK_CHECK(!(a ? sluice_param_state_read(k->param, names[a], 0, count, x)
                           : sluice_param_read(k->param, 0, count, x)));
            for (uint64_t i = 0; i < count; i++) {
                uint32_t bits;
                memcpy(&bits, &x[i], sizeof bits);
                hashes[a] = mix(hashes[a] ^ bits ^ 1);
            }
        }
    return 0;
}

static uint64_t reset_at(const trial *t, uint64_t step)
{
    if (t->optimizer && !strcmp(t->optimizer, "zero_one_adam")) return step == 3 || step == t->var_freeze_step;
    return step == t->freeze_step;
}

static int rest_stays(int rank, int size, void *context)
{
    const trial *t = context;
    model m;
    uint64_t stayed[ARRAYS] = {0};
    if (model_world(t, rank, size, &m) || model_build(&m)) return 1;
    for (uint64_t step = 1; step <= steps_of(t); step++) {
        uint64_t before[ARRAYS], after[ARRAYS];
        const uint32_t layer = 1 + step % 2;
        if (hash_layer(&m, layer, before)) return 1;
        m.left_out = 1u << layer;
        if (model_step(&m, NULL) || hash_layer(&m, layer, after)) return 1;
        for (int a = 0; a < ARRAYS && !reset_at(t, step); a++) {
            RANK_CHECK(!before[a] || !after[a] || before[a] == after[a]);
            stayed[a] += before[a] && after[a];
        }
    }
    for (int a = 0; a < ARRAYS; a++)
        RANK_CHECK(stayed[a] || (a == 3 && strcmp(t->optimizer, "onebit_lamb")) ||
                   (a > 5 && strcmp(t->optimizer, "zero_one_adam")));
    return model_leave(&m);
}

static void what_is_left_out_stays(void **state)
{
    (void)state;
    for (int fused = 0; fused < 2; fused++) {
        const trial all = {.seed = 111, .freeze_step = FREEZE, .fuse = fused ? "64KiB" : "off", .block = 65536};
        trial t = all;
        t.optimizer = "onebit_adam";
        passes(2, rest_stays, &t);
        t.optimizer = "onebit_lamb";
        passes(2, rest_stays, &t);
        t = zero_one(all);
        passes(2, rest_stays, &t);
    }
}

/* Runs a step that leaves out the layers whose bits are set; *bytes is what it has sent. */
static int sent_without(model *m, uint32_t left_out, uint64_t *bytes)
{
    sluice_step_report report = SLUICE_INIT(sluice_step_report);
    m->left_out = left_out;
    if (model_step(m, &report)) return 1;
    RANK_CHECK(report.compressed);
    *bytes = report.bytes_sent;
    return 0;
}

/* The serial schedule sends everything inside its step. */
static int bytes_are_those_of_kept_layers(int rank, int size, void *context)
{
    const trial *t = context;
    model m;
    uint64_t all, one, other, both, again;
    if (model_world(t, rank, size, &m) || model_build(&m)) return 1;
    for (int step = 1; step <= FREEZE + 1; step++)
        if (model_step(&m, NULL)) return 1;
    if (sent_without(&m, 0, &all) || sent_without(&m, 2, &one) || sent_without(&m, 4, &other)) return 1;
    if (sent_without(&m, 6, &both) || sent_without(&m, 0, &again)) return 1;
    RANK_CHECK(one < all && other < all && all == again);
    RANK_CHECK(both == all - (all - one) - (all - other));
    return model_leave(&m);
}

static void bytes_sent(void **state)
{
    (void)state;
    trial t = {.seed = 112, .freeze_step = FREEZE};
    passes(2, bytes_are_those_of_kept_layers, &t);
    t.messages = true;
    t.optimizer = "onebit_lamb";
    passes(3, bytes_are_those_of_kept_layers, &t);
    t.fuse = "64KiB"; /* a unit that layers share sends the kept ones too */
    t.block = 65536;
    passes(2, bytes_are_those_of_kept_layers, &t);
}

/* ---- As if it had never been ---- */

enum { OUTER = 40, LONG_RUN = 24, FROZEN_AT = 9 };
static const uint64_t counts[] = {777, 100};
enum { INNER = sizeof counts / sizeof *counts };

typedef struct {
    const char *optimizer;
    uint64_t seed;
    bool whole; /* the run without the steps that leave the layer out */
} life;

/* A rank's part of a run: one layer is trained, between two that are frozen. */
typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layer[3];
    sluice_param *inner[INNER];
} lone;

static bool kept_in(const life *l, uint64_t step)
{
    return mix(l->seed * 100 + step) % 5 < 3;
}

static uint64_t kept_until(const life *l, uint64_t step)
{
    uint64_t kept = 0;
    for (uint64_t s = 1; s <= step; s++) kept += kept_in(l, s);
    return kept;
}

static int lone_begin(const life *l, lone *p)
{
    const uint64_t frozen_at = l->whole ? kept_until(l, FROZEN_AT) : FROZEN_AT;
    sluice_config config;
    sluice_config_init(&config);
    config.optimizer_name = l->optimizer;
    config.strategy = "onebit";
    config.schedule = "serial";
    config.onebit.freeze_step = config.onebit.var_freeze_step = frozen_at;
    config.onebit.var_update_scaler = 1000;
    config.onebit.local_step_clipper = 1;
    RANK_CHECK(frozen_at > 1);
    RANK_CHECK(!sluice_runtime_create(p->world, &config, &p->rt));
    for (int i = 0; i < 3; i++) {
        sluice_param *outer;
        char name[8];
        snprintf(name, sizeof name, "l%d", i);
        RANK_CHECK(!sluice_layer_add(p->rt, name, &p->layer[i]));
        const sluice_param_desc desc = SLUICE_INIT(sluice_param_desc, .name = "f", .count = OUTER, .frozen = true);
        RANK_CHECK(i == 1 || !sluice_param_add(p->layer[i], &desc, &outer));
    }
    for (int i = 0; i < INNER; i++) {
        const sluice_param_desc desc = SLUICE_INIT(sluice_param_desc, .name = i ? "b" : "a", .count = counts[i]);
        RANK_CHECK(!sluice_param_add(p->layer[1], &desc, &p->inner[i]));
    }
    RANK_CHECK(!sluice_runtime_commit(p->rt));
    for (int i = 0; i < INNER; i++) {
        float values[777];
        for (uint64_t e = 0; e < counts[i]; e++) values[e] = noise(7 + (uint64_t)i, e);
        RANK_CHECK(!sluice_param_write(p->inner[i], 0, counts[i], values));
    }
    return 0;
}

/* `number`: of the layer's updates, from 1; 0: the step leaves it out. */
static int lone_step(lone *p, int rank, uint64_t number)
{
    const sluice_layer *out[1] = {p->layer[1]};
    sluice_step_options options = SLUICE_INIT(sluice_step_options, .learning_rate = 0.01, .layers_left_out = out,
                                              .layer_left_out_count = !number);
    RANK_CHECK(!sluice_step_begin(p->rt, &options));
    for (int l = 0; l < 3; l++)
        if (sluice_layer_runs(p->layer[l]))
            RANK_CHECK(!sluice_forward_begin(p->layer[l]) && !sluice_forward_end(p->layer[l]));
    for (int l = 3; l-- > 0;) {
        if (!sluice_layer_runs(p->layer[l])) continue;
        RANK_CHECK(!sluice_backward_begin(p->layer[l]));
        for (int i = 0; l == 1 && i < INNER; i++) {
            float *gradient = sluice_param_gradient(p->inner[i]);
            for (uint64_t e = 0; e < counts[i]; e++)
                gradient[e] += noise((number * 8 + (uint64_t)rank) * 8 + (uint64_t)i, e);
        }
        RANK_CHECK(!sluice_backward_end(p->layer[l]));
    }
    RANK_CHECK(!sluice_step_end(p->rt, NULL));
    return 0;
}

static int lone_hash(lone *p, uint64_t *hash)
{
    static const char *const names[] = {NULL, "exp_avg", "exp_avg_sq", "exp_avg_sq_fresh", "error_worker"};
    static float x[PADDED_MAX];
    *hash = 1;
    for (int i = 0; i < INNER; i++)
        for (size_t a = 0; a < sizeof names / sizeof *names; a++) {
            const uint64_t count = a ? sluice_param_state_count(p->inner[i], names[a]) : counts[i];
            if (!count) continue;
            RANK_CHECK(!(a ? sluice_param_state_read(p->inner[i], names[a], 0, count, x)
                           : sluice_param_read(p->inner[i], 0, count, x)));
            for (uint64_t e = 0; e < count; e++) {
                uint32_t bits;
                memcpy(&bits, &x[e], sizeof bits);
                *hash = mix(*hash ^ bits);
            }
        }
    return 0;
}

static int lives(int rank, int size, void *context)
{
    life l = *(const life *)context;
    uint64_t hashes[2];
    lone p;
    (void)size;
    RANK_CHECK(!sluice_world_create(NULL, &p.world));
    for (int whole = 0; whole < 2; whole++) {
        uint64_t number = 0;
        l.whole = whole;
        if (lone_begin(&l, &p)) return 1;
        for (uint64_t step = 1; step <= LONG_RUN; step++) {
            const bool kept = kept_in(&l, step);
            number += kept;
            if (!kept && whole) continue;
            if (lone_step(&p, rank, kept ? number : 0)) return 1;
        }
        RANK_CHECK(number < LONG_RUN && sluice_param_updates(p.inner[0]) == number);
        if (lone_hash(&p, &hashes[whole])) return 1;
        sluice_runtime_destroy(p.rt);
    }
    RANK_CHECK(hashes[0] == hashes[1]);
    sluice_world_destroy(p.world);
    return 0;
}

static void left_out_steps_have_never_been(void **state)
{
    (void)state;
    static const char *const optimizers[] = {"onebit_adam", "onebit_lamb", "zero_one_adam"};
    for (int o = 0; o < 3; o++)
        for (uint64_t seed = 1; seed <= 3; seed++) {
            const life l = {.optimizer = optimizers[o], .seed = seed};
            passes(2, lives, &l);
        }
}

/* ---- A layer without a variance ---- */

enum { KEPT_FIRST = FREEZE + 3 };

/* A layer that all steps have left out so far has a variance of 0, by which compressed steps would divide. */
static int waits_for_a_layer(int rank, int size, void *context)
{
    const trial *t = context;
    model m;
    if (model_world(t, rank, size, &m) || model_build(&m)) return 1;
    for (uint64_t step = 1; step <= KEPT_FIRST + 3; step++) {
        sluice_step_report report = SLUICE_INIT(sluice_step_report);
        m.left_out = step < KEPT_FIRST ? 2 : 0;
        if (model_step(&m, &report)) return 1;
        RANK_CHECK(report.compressed == (step > KEPT_FIRST));
    }
    return model_leave(&m);
}

static void compression_waits_for_every_layer(void **state)
{
    (void)state;
    trial t = {.seed = 115, .freeze_step = FREEZE, .frozen = true};
    passes(2, waits_for_a_layer, &t);
    t.optimizer = "onebit_lamb";
    passes(2, waits_for_a_layer, &t);
    t.optimizer = "zero_one_adam"; /* it compresses between refreshes, or from the freeze of the variance on */
    t.var_freeze_step = 100, t.var_update_scaler = FREEZE - 1;
    passes(2, waits_for_a_layer, &t);
    t.var_freeze_step = FREEZE, t.var_update_scaler = 100;
    passes(2, waits_for_a_layer, &t);
}

/* ---- A plan in the middle of intervals ---- */

enum { MOVES_FROM = 8, LAST_STEP = 40 };

/* From step 8 on every second step exchanges, and a layer is in the others alone, so that ranks hold different values
 * of it between any two steps. A plan from measured times is due when local steps begin. */
static int plans_in_between(int rank, int size, void *context)
{
    const trial *t = context;
    model m;
    uint64_t hashes[2];
    if (model_world(t, rank, size, &m)) return 1;
    for (int plans = 0; plans < 2; plans++) {
        sluice_config config = model_config(t);
        uint32_t first = 0, last = 0;
        if (plans) config.schedule = slc_schedule_default;
        if (model_build_with(&m, &config)) return 1;
        for (uint64_t step = 1; step <= LAST_STEP; step++) {
            sluice_step_report report = SLUICE_INIT(sluice_step_report);
            bool readable;
            m.exchange = step == LAST_STEP;
            m.left_out = step >= MOVES_FROM && step % 2 == 0 && !m.exchange ? 2 : 0;
            if (model_step(&m, &report)) return 1;
            (void)sluice_runtime_replicas_equal(m.rt, &readable);
            RANK_CHECK(readable == (step <= MOVES_FROM || m.exchange));
            if (step == MOVES_FROM + 2) first = report.plan;
            last = report.plan;
        }
        RANK_CHECK(plans ? last > first : last == first);
        if (model_replicas_equal(&m, &hashes[plans]) || model_peak_is_planned(&m)) return 1;
        model_end(&m);
    }
    RANK_CHECK(hashes[0] == hashes[1]);
    sluice_world_destroy(m.world);
    return 0;
}

static void a_plan_does_not_wait_for_equal_replicas(void **state)
{
    (void)state;
    const trial t = {.seed = 116,
                     .optimizer = "zero_one_adam",
                     .var_freeze_step = 4,
                     .var_update_scaler = 100,
                     .local_step_scaler = 3,
                     .local_step_clipper = 2};
    passes(2, plans_in_between, &t);
}

/* ---- Refusals ---- */

static int refusals(int rank, int size, void *context)
{
    const trial *t = context;
    model m;
    const sluice_layer *one[1];
    sluice_step_options options = SLUICE_INIT(sluice_step_options, .learning_rate = 0.01, .layers_left_out = one,
                                              .layer_left_out_count = 1, .exchange = true);
    if (model_world(t, rank, size, &m) || model_build(&m)) return 1;
    one[0] = m.layers[1];
    if (t->compat) {
        RANK_CHECK(sluice_step_begin(m.rt, &options) == SLUICE_ERR_UNSUPPORTED);
        RANK_CHECK(strstr(sluice_last_error(), "onebit_lamb with onebit.compat exchanges all parameters as one"));
        return model_leave(&m);
    }
    for (int step = 1; step < 20; step++) /* the last is a local one */
        if (model_step(&m, NULL)) return 1;
    RANK_CHECK(sluice_step_begin(m.rt, &options) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(strstr(sluice_last_error(), "layer \"l1\" is left out, but ranks hold different weights of it"));
    m.exchange = true;
    return model_step(&m, NULL) || model_leave(&m);
}

static void what_cannot_be_left_out(void **state)
{
    (void)state;
    const trial lamb = {.seed = 121, .optimizer = "onebit_lamb", .compat = true, .freeze_step = FREEZE};
    const trial moves = zero_one((trial){.seed = 122});
    passes(2, refusals, &lamb);
    passes(2, refusals, &moves);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(plans_and_units_change_no_bit),
                                       cmocka_unit_test(other_layers_may_be_sharded),
                                       cmocka_unit_test(what_is_left_out_stays),
                                       cmocka_unit_test(bytes_sent),
                                       cmocka_unit_test(left_out_steps_have_never_been),
                                       cmocka_unit_test(compression_waits_for_every_layer),
                                       cmocka_unit_test(a_plan_does_not_wait_for_equal_replicas),
                                       cmocka_unit_test(what_cannot_be_left_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
