/* An evaluation pass may need more than any step, for it keeps what training recomputes. The joint plan must know. */
#include "ilp/slot_model.h"
#include "lib/base/status.h"
#include "sched/layout/make_plan.h"
#include "sched/planner.h"
#include "sched/joint/joint.h"
#include "sched/search/fullest.h"
#include "sched/simulate/simulate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { LAYERS = 5, LARGE = 3 };

/* Convolutions of few parameters and large activations, which may be recomputed, before a layer of most parameters. */
static const char *layers[LAYERS] = {"conv0", "conv1", "conv2", "fc0", "fc1"};
static const uint64_t elements[LAYERS] = {2048, 36992, 73984, 1027648, 167808};
static const uint64_t activations[LAYERS] = {6110416, 6110416, 3055216, 5248, 5248};
static const double seconds[LAYERS] = {0.7e-3, 15.7e-3, 7.9e-3, 0.9e-3, 0.2e-3};

typedef struct {
    slc_job job;
    slc_times times;
    slc_use uses[LAYERS];
    slc_unit units[LAYERS];
    slc_activation_life lives[LAYERS];
    bool can_recompute[LAYERS];
    uint8_t recompute[LAYERS];
    double slot_s[2 * LAYERS], recompute_s[LAYERS];
    slc_strategy strategies[LAYERS];
} convolutions;

static void begin(convolutions *c)
{
    *c = (convolutions){0};
    c->job = (slc_job){.world = 2,
                       .micro_batches = 1,
                       .states = 2,
                       .layer_count = LAYERS,
                       .layers = layers,
                       .can_recompute = c->can_recompute,
                       .units = c->units,
                       .unit_count = LAYERS,
                       .activations = c->lives,
                       .activation_count = LAYERS};
    for (uint32_t l = 0; l < LAYERS; l++) {
        uint32_t backward = slc_backward_slot(&c->job, l);
        c->uses[l] = (slc_use){l, true};
        c->units[l] = (slc_unit){.name = layers[l],
                                 .elements = elements[l],
                                 .block_elements = 2048,
                                 .trainable = true,
                                 .uses = &c->uses[l],
                                 .use_count = 1};
        c->lives[l] = (slc_activation_life){
            layers[l], activations[l], l, backward, l + 1 < LAYERS ? l + 1 : l, .recomputable = true};
        c->can_recompute[l] = true;
        c->recompute[l] = 2;
        c->slot_s[l] = c->recompute_s[l] = seconds[l];
        c->slot_s[backward] = 2 * seconds[l];
        c->strategies[l] = SLC_STRATEGIES;
    }
    c->times = (slc_times){.slot_s = c->slot_s,
                           .recompute_s = c->recompute_s,
                           .update_s_per_element = 2e-11,
                           .link = {.reduce_scatter = {2e-5, 125e4},
                                    .all_gather = {2e-5, 125e4},
                                    .kappa = 0.05,
                                    .sigma = 1.05,
                                    .block_bytes = 4096}};
}

/* Plans by hand: every layer that may recomputes, the largest unit is fsdp and the others are sdp. Returns the step;
 * *arena_bytes becomes the arena. */
static double by_hand(const convolutions *c, uint64_t *arena_bytes, bool *evaluation_needs_most)
{
    slc_strategy strategies[LAYERS];
    bool recompute[LAYERS];
    for (uint32_t l = 0; l < LAYERS; l++) {
        strategies[l] = l == LARGE ? SLC_FSDP : SLC_SDP;
        recompute[l] = true;
    }
    slc_scheduling in = {
        .job = &c->job, .strategies = strategies, .recompute = recompute, .times = &c->times, .limit = UINT64_MAX};
    slc_plan *plan;
    slc_forecast forecast;
    uint32_t item;
    uint64_t train, evaluate;
    assert_int_equal(slc_plan_make(&in, &slc_scheduler_serial, &plan), SLUICE_OK);
    assert_int_equal(slc_simulate(&c->job, &c->times, plan, NULL, &forecast), SLUICE_OK);
    assert_int_equal(slc_fullest_item(&plan->train, &item, &train), SLUICE_OK);
    assert_int_equal(slc_fullest_item(&plan->evaluate, &item, &evaluate), SLUICE_OK);
    *arena_bytes = plan->arena_bytes;
    *evaluation_needs_most = evaluate > train;
    slc_plan_destroy(plan);
    return forecast.step_s;
}

static void plans_know_the_evaluation(void **state)
{
    (void)state;
    static convolutions c;
    begin(&c);
    slc_joint_request request = {
        .job = &c.job, .times = &c.times, .strategies = c.strategies, .recompute = c.recompute, .effort_s = 0.3};
    bool evaluation_needs_most;
    double hand_s = by_hand(&c, &request.limit, &evaluation_needs_most);
    assert_true(evaluation_needs_most);
    slc_joint_answer answer;
    assert_int_equal(slc_joint_plan(&request, &answer, NULL), SLUICE_OK);
    if (answer.forecast.step_s > hand_s * 1.001) fail_msg("%g s, by hand %g s", answer.forecast.step_s, hand_s);
    if (slc_slot_model_solver() && answer.bound_s < 0.98 * answer.forecast.step_s)
        fail_msg("%g s, but a bound of %g s", answer.forecast.step_s, answer.bound_s);
    slc_plan_destroy(answer.plan);
}

static void a_refusal_says_so(void **state)
{
    (void)state;
    static convolutions c;
    begin(&c);
    const slc_plan_request request = {.strategy = "fsdp",
                                      .schedule = "serial",
                                      .recompute = (uint8_t[LAYERS]){1, 1, 1, 1, 1},
                                      .times = &c.times,
                                      .budget_bytes = 1 << 20};
    slc_plan_answer answer;
    assert_int_equal(slc_plan_for_budget(&c.job, &request, &answer), SLUICE_ERR_BUDGET);
    if (!strstr(sluice_last_error(), "the largest consumers of an evaluation pass, which needs more than a step: "))
        fail_msg("%s", sluice_last_error());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_know_the_evaluation),
        cmocka_unit_test(a_refusal_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
