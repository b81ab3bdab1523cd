/* Steps that leave layers out match the oracle of engine_trial.h to the bit, on 1, 2 and 4 ranks: under every exact
 * strategy and schedule, with each accumulation, either lane of updates, clipping, LAMB, bf16, recomputation, looked-up
 * and split tables, plans that change, and a save in between. What they leave out sends nothing, and what cannot be
 * left out is refused by name. */
#include "lib/plan/request.h"
#include "tests/support/engine_trial.h"
#include "tests/support/ranks.h"
#include "tests/support/scale.h"

#include <sluice/sluice.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

static void every_strategy_matches_the_oracle(void **state)
{
    (void)state;
    static const char *const strategies[] = {"dp", "oss", "sdp", "fsdp", "auto", "mixed"};
    static const char *const schedules[] = {"serial", "one_ahead", "priority",          "bucketed",
                                            "greedy", "random",    slc_schedule_default};
    static const char *const updates[] = {NULL, "auto", "communication", "compute"};
    static const sluice_recompute recomputes[] = {SLUICE_RECOMPUTE_AUTO, SLUICE_RECOMPUTE_NONE, SLUICE_RECOMPUTE_ALL};
    uint32_t number = 0;
    for (int strategy = 0; strategy < 6; strategy++)
        for (int ranks = 1; ranks <= 4; ranks *= 2)
            for (uint32_t m = 1; m <= 3; m++, number++) {
                if (!test_takes(number, 0.4)) continue;
                check_trial((trial){.seed = 31000 + number,
                                    .leaves_out = true,
                                    .ranks = ranks,
                                    .layers = 4 + number % 2,
                                    .micro_batches = m,
                                    .each = number % 5 == 1,
                                    .fewer = number % 4 == 2,
                                    .schedule = schedules[number % 7],
                                    .strategy = strategies[strategy],
                                    .recompute = recomputes[number % 3],
                                    .direct = number % 3 != 2,
                                    .clip = number % 4 == 1 ? 0.5 : 0,
                                    .lamb = number % 4 == 3,
                                    .block = number % 2 ? 1024 : 4096,
                                    .bf16_layers = number % 3 == 1 ? UINT64_MAX : 0,
                                    .bf16_wire = true,
                                    .mixed_update = number % 2,
                                    .look_ups = number % 5 > 2,
                                    .split = number % 5 == 4,
                                    .updates = updates[number % 4]});
            }
}

static trial leaving_out(uint64_t seed)
{
    trial t = random_trial(seed);
    t.leaves_out = true;
    t.layers = 3 + t.layers % (LAYERS_MAX - 2);
    return t;
}

static void random_plans_match_the_oracle(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= test_rounds(12); seed++) {
        trial t = leaving_out(32000 + seed);
        t.random = true;
        t.delays = seed % 3 == 0;
        check_trial(t);
    }
}

static void changing_plans_match_the_oracle(void **state)
{
    (void)state;
    trial t = leaving_out(33001);
    t.random = true;
    t.recompute = SLUICE_RECOMPUTE_AUTO;
    t.ranks = 2;
    t.layers = LAYERS_MAX;
    t.changing_steps = STEPS_A_WORLD;
    check_trial(t);
}

/* ---- Bytes, and what is refused ---- */

enum { LAYERS = 4, ELEMENTS = 4096 };

typedef struct {
    sluice_world *world;
    sluice_runtime *rt;
    sluice_layer *layer[LAYERS];
    sluice_param *param[LAYERS];
} program;

static int begin(program *p, const char *strategy)
{
    sluice_config config;
    sluice_config_init(&config);
    config.strategy = strategy;
    config.schedule = "serial";
    config.block_bytes = 1024;
    RANK_CHECK(!sluice_world_create(NULL, &p->world));
    RANK_CHECK(!sluice_runtime_create(p->world, &config, &p->rt));
    for (int l = 0; l < LAYERS; l++) {
        char name[8];
        snprintf(name, sizeof name, "l%d", l);
        RANK_CHECK(!sluice_layer_add(p->rt, name, &p->layer[l]));
        const sluice_param_desc desc =
            SLUICE_INIT(sluice_param_desc, .name = "w", .count = (uint64_t)ELEMENTS << l, .tied = l == 0);
        RANK_CHECK(!sluice_param_add(p->layer[l], &desc, &p->param[l]));
    }
    RANK_CHECK(!sluice_param_use(p->layer[2], p->param[0]));
    RANK_CHECK(!sluice_runtime_commit(p->rt));
    return 0;
}

static int end(program *p)
{
    sluice_runtime_destroy(p->rt);
    sluice_world_destroy(p->world);
    return 0;
}

/* Runs a step that leaves out the layers whose bits are set, and syncs; *bytes is what it has sent. */
static int run_step(program *p, unsigned out, uint64_t *bytes)
{
    const sluice_layer *left_out[LAYERS];
    sluice_step_options options = SLUICE_INIT(sluice_step_options, .learning_rate = 0.01, .layers_left_out = left_out);
    for (int l = 0; l < LAYERS; l++)
        if (out >> l & 1) left_out[options.layer_left_out_count++] = p->layer[l];
    sluice_step_report report = SLUICE_INIT(sluice_step_report);
    RANK_CHECK(!sluice_step_begin(p->rt, &options));
    for (int l = 0; l < LAYERS; l++)
        if (sluice_layer_runs(p->layer[l]))
            RANK_CHECK(!sluice_forward_begin(p->layer[l]) && !sluice_forward_end(p->layer[l]));
    for (int l = LAYERS; l-- > 0;) {
        if (!sluice_layer_runs(p->layer[l])) continue;
        RANK_CHECK(!sluice_backward_begin(p->layer[l]));
        float *gradient = sluice_param_gradient(p->param[l]);
        for (uint64_t i = 0; i < sluice_param_count(p->param[l]); i++) gradient[i] += 1;
        RANK_CHECK(!sluice_backward_end(p->layer[l]));
    }
    RANK_CHECK(!sluice_step_end(p->rt, &report));
    RANK_CHECK(!sluice_runtime_sync(p->rt));
    *bytes = report.bytes_sent;
    return 0;
}

/* The serial schedule sends everything inside its step. A subset sends what the layers in it send. */
static int bytes_are_those_of_kept_layers(int rank, int size, void *context)
{
    (void)rank, (void)size;
    program p;
    uint64_t all, alone[LAYERS] = {0}, bytes, updates[LAYERS] = {0};
    if (begin(&p, context)) return 1;
    if (run_step(&p, 0, &all) || run_step(&p, 0, &all)) return 1;
    RANK_CHECK(all > 0);
    for (int l = 1; l + 1 < LAYERS; l++) {
        if (run_step(&p, 1u << l, &bytes)) return 1;
        RANK_CHECK(bytes < all);
        alone[l] = all - bytes;
    }
    RANK_CHECK(alone[2] == 2 * alone[1]); /* it has twice the elements, and the tied parameter moves all the same */
    if (run_step(&p, 1u << 1 | 1u << 2, &bytes)) return 1;
    RANK_CHECK(bytes == all - alone[1] - alone[2]);
    for (int l = 0; l < LAYERS; l++) updates[l] = sluice_param_updates(p.param[l]);
    RANK_CHECK(updates[0] == 5 && updates[1] == 3 && updates[2] == 3 && updates[3] == 5);
    return end(&p);
}

static void bytes_sent(void **state)
{
    (void)state;
    static const char *const strategies[] = {"dp", "oss", "sdp", "fsdp"};
    for (int i = 0; i < 4; i++)
        assert_int_equal(run_ranks(2, bytes_are_those_of_kept_layers, (void *)(uintptr_t)strategies[i], 60), 0);
}

/* Values and states of what is left out stay, whatever would have been added. */
static int rest_stays(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    program p;
    uint64_t bytes;
    static float before[4 * ELEMENTS], after[4 * ELEMENTS], m[4 * ELEMENTS], moved[4 * ELEMENTS];
    if (begin(&p, "dp")) return 1;
    if (run_step(&p, 0, &bytes)) return 1;
    RANK_CHECK(!sluice_param_read(p.param[2], 0, 4 * ELEMENTS, before));
    RANK_CHECK(!sluice_param_state_read(p.param[2], "exp_avg", 0, 4 * ELEMENTS, m));
    for (int i = 0; i < 3; i++)
        if (run_step(&p, 1u << 2, &bytes)) return 1;
    RANK_CHECK(!sluice_param_read(p.param[2], 0, 4 * ELEMENTS, after));
    RANK_CHECK(!sluice_param_state_read(p.param[2], "exp_avg", 0, 4 * ELEMENTS, moved));
    RANK_CHECK(!memcmp(before, after, sizeof before) && !memcmp(m, moved, sizeof m));
    RANK_CHECK(sluice_runtime_step(p.rt) == 4 && sluice_param_updates(p.param[2]) == 1);
    return end(&p);
}

static int refusals(int rank, int size, void *context)
{
    (void)rank, (void)size, (void)context;
    program p;
    uint64_t bytes;
    if (begin(&p, "dp")) return 1;
    const sluice_layer *one[1] = {p.layer[0]};
    sluice_step_options options =
        SLUICE_INIT(sluice_step_options, .learning_rate = 0.01, .layers_left_out = one, .layer_left_out_count = 1);
    RANK_CHECK(sluice_step_begin(p.rt, &options) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(strstr(sluice_last_error(), "layer \"l0\" is the first one, which every step runs"));
    one[0] = p.layer[LAYERS - 1];
    RANK_CHECK(sluice_step_begin(p.rt, &options) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(strstr(sluice_last_error(), "layer \"l3\" is the last one, which every step runs"));
    one[0] = NULL;
    RANK_CHECK(sluice_step_begin(p.rt, &options) == SLUICE_ERR_ARGUMENT);
    RANK_CHECK(strstr(sluice_last_error(), "layers_left_out[0] is no layer of this runtime"));
    if (run_step(&p, 0, &bytes)) return 1;
    one[0] = p.layer[1];
    RANK_CHECK(!sluice_step_begin(p.rt, &options));
    RANK_CHECK(!sluice_forward_begin(p.layer[0]) && !sluice_forward_end(p.layer[0]));
    RANK_CHECK(sluice_forward_begin(p.layer[1]) == SLUICE_ERR_ORDER);
    RANK_CHECK(strstr(sluice_last_error(), "this step leaves the layer out, as sluice_layer_runs says"));
    return end(&p);
}

/* Under the check of the program too, ranks may name the same layers in other orders. */
static int name_in_other_orders(int rank, int size, void *context)
{
    program p;
    (void)size, (void)context;
    setenv("SLUICE_ENGINE_CHECK", "on", 1);
    if (begin(&p, "sdp")) return 1;
    const sluice_layer *const orders[2][3] = {{p.layer[1], p.layer[2], p.layer[2]}, {p.layer[2], p.layer[1], NULL}};
    const double probabilities[2][3] = {{0.5, 0.25, 0.25}, {0.25, 0.5, 1}};
    const sluice_step_options options = SLUICE_INIT(
        sluice_step_options, .learning_rate = 0.01, .layers_left_out = orders[rank], .layer_left_out_count = 3 - rank,
        .layers_drawn = orders[rank], .layer_probabilities = probabilities[rank], .layer_drawn_count = 3 - rank);
    RANK_CHECK(!sluice_step_begin(p.rt, &options));
    for (int l = 0; l < LAYERS; l += 3)
        RANK_CHECK(!sluice_forward_begin(p.layer[l]) && !sluice_forward_end(p.layer[l]));
    for (int l = 3; l >= 0; l -= 3) {
        RANK_CHECK(!sluice_backward_begin(p.layer[l]));
        float *gradient = sluice_param_gradient(p.param[l]);
        for (uint64_t i = 0; i < sluice_param_count(p.param[l]); i++) gradient[i] += 1;
        RANK_CHECK(!sluice_backward_end(p.layer[l]));
    }
    RANK_CHECK(!sluice_step_end(p.rt, NULL));
    return end(&p);
}

static void orders_of_layers_are_equal(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(2, name_in_other_orders, NULL, 60), 0);
}

static void what_is_left_out_stays(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(1, rest_stays, NULL, 60), 0);
}

static void wrong_layers(void **state)
{
    (void)state;
    assert_int_equal(run_ranks(1, refusals, NULL, 60), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_strategy_matches_the_oracle),
        cmocka_unit_test(random_plans_match_the_oracle),
        cmocka_unit_test(changing_plans_match_the_oracle),
        cmocka_unit_test(bytes_sent),
        cmocka_unit_test(orders_of_layers_are_equal),
        cmocka_unit_test(what_is_left_out_stays),
        cmocka_unit_test(wrong_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
