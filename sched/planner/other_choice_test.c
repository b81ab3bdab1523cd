/* The next best choice for some units: what is told of it holds when it is asked for by name. Lists of forced
 * strategies: what they mean, and what is refused with what to do. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/plan/strategy_table.h"
#include "sched/planner.h"
#include "sched/planner/other_choice.h"
#include "sched/joint/simple_plans.h"
#include "sched/study/random_profile.h"
#include "tests/support/scale.h"

#include <sluice/status.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 4, UNITS_MOST = 16, RESERVED = 50000000 };
static const uint32_t profiles = 4;

static slc_profile *draw(uint64_t seed, uint32_t world)
{
    slc_random_options options = slc_random_defaults();
    slc_profile *profile;
    options.layers = (slc_random_range){LAYERS, LAYERS};
    options.world = world;
    options.micro_batches = 1;
    options.can_recompute = true;
    options.unit_blocks = 4;
    assert_int_equal(slc_random_profile(&options, seed, &profile), SLUICE_OK);
    assert_true(profile->job.unit_count <= UNITS_MOST);
    profile->job.reserved_bytes = RESERVED;
    return profile;
}

static slc_plan_request request_for(const slc_profile *profile, const char *schedule, uint64_t budget)
{
    return (slc_plan_request){
        .strategy = "auto", .schedule = schedule, .times = &profile->times, .budget_bytes = budget, .effort_s = 0.05};
}

/* Asks for the plan's strategies by name, with `strategy` for one unit; *step_s is 0 if that does not fit. */
static void ask_by_name(const slc_profile *profile, const slc_plan_request *made_by, const slc_plan *plan, uint32_t u,
                        slc_strategy strategy, uint64_t budget, double *step_s)
{
    slc_strategy forced[UNITS_MOST];
    uint8_t recompute[LAYERS];
    slc_plan_answer answer;
    for (uint32_t l = 0; l < LAYERS; l++) recompute[l] = plan->recompute && plan->recompute[l];
    memcpy(forced, plan->strategies, profile->job.unit_count * sizeof *forced);
    forced[u] = strategy;
    slc_plan_request request = *made_by;
    request.forced = forced;
    request.recompute = recompute;
    request.budget_bytes = budget;
    const sluice_status status = slc_plan_for_budget(&profile->job, &request, &answer);
    assert_true(status == SLUICE_OK || status == SLUICE_ERR_BUDGET);
    *step_s = status ? 0 : answer.forecast.step_s;
    slc_plan_destroy(answer.plan);
}

/* The fastest of the other strategies that a free unit is offered; 0: none fits. */
static double fastest_by_name(const slc_profile *profile, const slc_plan_request *made_by, const slc_plan *plan,
                              uint32_t u)
{
    const uint8_t offered = slc_offered_strategies(&profile->job, &profile->job.units[u], true);
    double best_s = 0, step_s;
    for (int k = 0; k < SLC_STRATEGIES; k++) {
        if (!(offered >> k & 1) || plan->strategies[u] == (slc_strategy)k) continue;
        ask_by_name(profile, made_by, plan, u, (slc_strategy)k, made_by->budget_bytes, &step_s);
        if (step_s > 0 && (!best_s || step_s < best_s)) best_s = step_s;
    }
    return best_s;
}

static void check_unit(const slc_profile *profile, const slc_plan_request *made_by, const slc_plan *plan, uint32_t u,
                       uint32_t *fitting, uint32_t *too_large)
{
    bool change[UNITS_MOST] = {false};
    slc_other_choice other;
    double step_s;
    change[u] = true;
    assert_int_equal(slc_other_choice_find(&profile->job, made_by, plan, change, &other), SLUICE_OK);
    assert_true(other.strategy != plan->strategies[u] && other.strategy != SLC_STRATEGIES);
    assert_true(other.step_s == fastest_by_name(profile, made_by, plan, u));
    ask_by_name(profile, made_by, plan, u, other.strategy, other.bytes, &step_s);
    assert_true(step_s > 0); /* what it needs is enough */
    if (other.fits) {
        assert_true(other.step_s > 0 && other.bytes <= made_by->budget_bytes);
        ++*fitting;
    } else {
        assert_true(other.step_s == 0 && other.bytes > made_by->budget_bytes);
        ++*too_large;
    }
}

/* The step that is told is that of the fastest plan in which another strategy is forced, and the bytes are enough for
 * it: under the default schedule and one that searches no order, in steps of plain and of compressed optimizers. */
static void what_is_told_holds(void **state)
{
    (void)state;
    static const char *const schedules[] = {slc_schedule_default, "serial"};
    static const uint8_t recompute[LAYERS] = {1, 0, 1, 0};
    uint32_t fitting = 0, too_large = 0;
    for (uint64_t seed = 0; seed < profiles; seed += test_brief() ? profiles - 1 : 1) {
        slc_profile *profile = draw(seed, 4);
        uint64_t least = 0, all_sdp = 0;
        assert_int_equal(slc_profile_set_compressed(profile, seed % 4 > 1), SLUICE_OK);
        assert_int_equal(slc_simple_plan_range(profile, false, &least, &all_sdp), SLUICE_OK);
        /* Within the larger budget all strategies fit. */
        const uint64_t half = (all_sdp - least) / 2, more = seed % 4 > 1 ? 2 * all_sdp : half;
        slc_plan_request made_by = request_for(profile, schedules[seed % 2], RESERVED + least + more);
        made_by.recompute = recompute;
        slc_plan_answer answer;
        assert_int_equal(slc_plan_for_budget(&profile->job, &made_by, &answer), SLUICE_OK);
        for (uint32_t u = 0; u < profile->job.unit_count; u++)
            check_unit(profile, &made_by, answer.plan, u, &fitting, &too_large);
        slc_plan_destroy(answer.plan);
        slc_profile_destroy(profile);
    }
    assert_true(fitting && (too_large || test_brief()));
}

/* One rank shards nothing, so no choice is another; without units there is none either. */
static void nothing_to_choose(void **state)
{
    (void)state;
    slc_profile *profile = draw(1, 1);
    const slc_plan_request made_by = request_for(profile, "serial", 0);
    slc_plan_answer answer;
    slc_other_choice other;
    bool change[UNITS_MOST] = {true};
    assert_int_equal(slc_plan_for_budget(&profile->job, &made_by, &answer), SLUICE_OK);
    assert_int_equal(slc_other_choice_find(&profile->job, &made_by, answer.plan, change, &other), SLUICE_OK);
    assert_int_equal(other.strategy, SLC_STRATEGIES);
    profile->job.world = 4;
    change[0] = false;
    assert_int_equal(slc_other_choice_find(&profile->job, &made_by, answer.plan, change, &other), SLUICE_OK);
    assert_int_equal(other.strategy, SLC_STRATEGIES);
    slc_plan_destroy(answer.plan);
    slc_profile_destroy(profile);
}

/* ---- Lists ---- */

static slc_use uses[] = {{0, true}, {1, true}, {2, true}, {3, true}, {4, true}};
static slc_unit units[] = {
    {.name = "a", .elements = 64, .block_elements = 64, .trainable = true, .uses = uses, .use_count = 1},
    {.name = "table",
     .elements = 64,
     .block_elements = 64,
     .trainable = true,
     .uses = uses + 1,
     .use_count = 1,
     .role = SLC_UNIT_SPLIT,
     .partner = 2},
    {.name = "rows of table",
     .elements = 32,
     .block_elements = 32,
     .trainable = true,
     .uses = uses,
     .use_count = 1,
     .role = SLC_UNIT_ROWS,
     .partner = 1,
     .row_elements = 4,
     .row_count = 16,
     .most_rows = 2},
    {.name = "h.0..h.1",
     .elements = 64,
     .block_elements = 64,
     .trainable = true,
     .uses = uses + 2,
     .use_count = 2,
     .fused = true},
    {.name = "head", .elements = 64, .block_elements = 64, .uses = uses + 4, .use_count = 1}};
static const char *layers[] = {"a", "b", "h.0", "h.1", "head"};
static const slc_job list_job = {
    .world = 2, .layer_count = 5, .layers = layers, .units = units, .unit_count = 5, .states = 2};

static void lists_name_layers(void **state)
{
    (void)state;
    enum { FREE = SLC_STRATEGIES };
    static const struct {
        const char *list;
        int wanted[5];
    } good[] = {
        {"a=dp", {SLC_DP, FREE, SLC_FSDP, FREE, FREE}},
        {"h.0=sdp,h.1=sdp", {FREE, FREE, SLC_FSDP, SLC_SDP, FREE}},
        {"h.0..h.1=sdp,table=oss", {FREE, SLC_OSS, SLC_FSDP, SLC_SDP, FREE}},
        {"*=fsdp,head=dp", {SLC_FSDP, SLC_FSDP, SLC_FSDP, SLC_FSDP, SLC_DP}},
        {"h.0..head=oss", {FREE, FREE, SLC_FSDP, SLC_OSS, SLC_OSS}},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        slc_strategy out[5];
        assert_int_equal(slc_strategies_from_list(&list_job, good[i].list, out), SLUICE_OK);
        for (int u = 0; u < 5; u++) assert_int_equal(out[u], good[i].wanted[u]);
    }
}

static void lists_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *list, *said;
    } bad[] = {
        {"", "\"\" is no LAYER=STRATEGY; give a list such as a=fsdp"},
        {"a", "\"a\" is no LAYER=STRATEGY"},
        {"=dp", "\"=dp\" is no LAYER=STRATEGY"},
        {"a=dp,", "\"\" is no LAYER=STRATEGY"},
        {"a=dp,a=sdp", "\"a\": it is named twice"},
        {"a=zero", "\"a\": \"zero\" is not a strategy of a layer; choose dp, oss, sdp, fsdp or onebit"},
        {"h.7=dp", "\"h.7\": there is no such layer or tied parameter; there are a, table"},
        {"a=onebit", "\"a\": onebit is a choice only in a step of a compressed optimizer; choose dp, oss"},
        {"h.0=onebit,h.1=onebit", "\"h.0..h.1\": onebit is a choice only in a step"},
        {"head=onebit", "\"head\": nothing is exchanged of a frozen layer"},
        {"table=dp", "\"table\": a table that is split by its uses cannot be dp; choose oss, sdp or fsdp"},
        {"rows of table=sdp", "name \"table\" instead"},
        {"h.0=dp", "layers of \"h.0..h.1\" are one unit and must have one strategy, \"h.1\" has another than \"h.0\""},
        {"a=\xff", "is not UTF-8"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        slc_strategy out[5];
        assert_int_equal(slc_strategies_from_list(&list_job, bad[i].list, out), SLUICE_ERR_ARGUMENT);
        if (!strstr(sluice_last_error(), bad[i].said)) fail_msg("%s: %s", bad[i].list, sluice_last_error());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_told_holds),
        cmocka_unit_test(nothing_to_choose),
        cmocka_unit_test(lists_name_layers),
        cmocka_unit_test(lists_are_refused),
    };
    return cmocka_run_group_tests_name("other_choice", tests, NULL, NULL);
}
