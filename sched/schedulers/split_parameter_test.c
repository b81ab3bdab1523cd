/* A tied parameter split by its uses, through the planner: which strategies it gets, and what the split gains. With a
 * network that could move a step's bytes during its compute, a step of GPT-2 must wait for the whole table if it is
 * joint, and only for the rows of its look-up if it is split. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/status.h"
#include "tests/support/sched/every_order.h"
#include "sched/study/made_profile.h"
#include "sched/planner/parts.h"
#include "tests/support/plan/random_job.h"
#include "sched/simulate/simulate.h"
#include "sched/simulate/trace_json.h"
#include "sched/layout/make_plan.h"

#include <stdio.h>
#include <stdlib.h>

enum { UNITS = 32, TABLE = 1, ROWS = 2 };

/* GPT-2 124M with 4,096 tokens a rank; its slots take `ratio` times as long as the link needs for all gradients and
 * values. */
static slc_profile *gpt2(sluice_tied tied, uint32_t world, double gbit_per_s, double ratio)
{
    const double parameters = 124.4e6, bytes_per_s = gbit_per_s * 125e6;
    double wire_s = 2 * 4 * parameters * (world - 1) / world / bytes_per_s;
    const slc_made_options options = {.model = "gpt2-small",
                                      .world = world,
                                      .batch = 4,
                                      .context = 1024,
                                      .device_flops = 4096 * 6 * parameters / (ratio * wire_s),
                                      .efficiency = 1,
                                      .bytes_per_s = bytes_per_s,
                                      .latency_s = 50e-6,
                                      .kappa = 0.1,
                                      .sigma = 1.05,
                                      .update_s_per_element = 2e-10,
                                      .tied = tied};
    slc_profile *profile;
    if (slc_made_profile(&options, &profile)) fail_msg("%s", sluice_last_error());
    return profile;
}

/* ---- Strategies ---- */

static void asked_becomes_what_may_be(void **state)
{
    (void)state;
    slc_profile *profile = gpt2(SLUICE_TIED_SPLIT, 2, 10, 1);
    slc_job *job = &profile->job;
    static const struct {
        const char *asked;
        slc_strategy table;
    } cases[] = {{"dp", SLC_OSS},     {"oss", SLC_OSS},         {"sdp", SLC_SDP},         {"fsdp", SLC_FSDP},
                 {"onebit", SLC_OSS}, {"auto", SLC_STRATEGIES}, {"mixed", SLC_STRATEGIES}};
    assert_int_equal(slc_profile_set_compressed(profile, true), SLUICE_OK);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        slc_strategy strategies[UNITS];
        assert_int_equal(slc_strategies_parse(job, cases[c].asked, strategies), SLUICE_OK);
        assert_int_equal(strategies[TABLE], cases[c].table);
        assert_int_equal(strategies[ROWS], SLC_FSDP);
    }
    uint32_t seen[SLC_STRATEGIES] = {0};
    for (int seed = 0; seed < 40; seed++) {
        slc_strategy strategies[UNITS], forced[UNITS];
        char asked[32];
        snprintf(asked, sizeof asked, "random:%d", seed);
        assert_int_equal(slc_strategies_parse(job, asked, strategies), SLUICE_OK);
        for (uint32_t u = 0; u < job->unit_count; u++) {
            assert_true(slc_unit_may_be(job, &job->units[u], strategies[u]));
            forced[u] = (slc_strategy)(seed % (SLC_STRATEGIES + 1));
        }
        seen[strategies[TABLE]]++;
        slc_strategies_force(job, forced, strategies);
        for (uint32_t u = 0; u < job->unit_count; u++) assert_true(slc_unit_may_be(job, &job->units[u], strategies[u]));
    }
    assert_true(seen[SLC_OSS] && seen[SLC_SDP] && seen[SLC_FSDP]);
    slc_profile_destroy(profile);
}

static void files_name_the_table_alone(void **state)
{
    (void)state;
    slc_profile *profile = gpt2(SLUICE_TIED_SPLIT, 2, 10, 1);
    slc_strategy strategies[UNITS];
    static const char *const fine[] = {
        "{\"layers\": {\"*\": \"dp\"}}", "{\"layers\": {\"embed.wte.weight\": \"dp\", \"*\": \"sdp\"}}",
        "{\"layers\": {\"embed.wte.weight\": \"oss\", \"rows of embed.wte.weight\": \"fsdp\", \"*\": \"sdp\"}}"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(slc_strategies_from_json(&profile->job, "f", fine[i], strategies), SLUICE_OK);
        assert_int_equal(strategies[ROWS], SLC_FSDP);
        slc_strategies_force(&profile->job, NULL, strategies);
    }
    static const char wrong[] = "{\"layers\": {\"*\": \"dp\",\n\"rows of embed.wte.weight\": \"sdp\"}}";
    assert_int_equal(slc_strategies_from_json(&profile->job, "f", wrong, strategies), SLUICE_ERR_FORMAT);
    assert_non_null(strstr(sluice_last_error(), "line 2"));
    assert_non_null(strstr(sluice_last_error(), "fsdp alone; name \"embed.wte.weight\" instead"));
    slc_profile_destroy(profile);
}

static void labels_say_whose_rows(void **state)
{
    (void)state;
    slc_profile *profile = gpt2(SLUICE_TIED_SPLIT, 2, 10, 1);
    char label[SLC_ITEM_LABEL];
    slc_item_label(&profile->job, &(slc_item){.kind = SLC_ITEM_GATHER_WINDOW, .unit = ROWS, .block_count = 1}, label);
    assert_string_equal(label, "gather_window rows of embed.wte.weight for F");
    slc_item_label(&profile->job, &(slc_item){.kind = SLC_ITEM_REDUCE_SCATTER, .unit = ROWS, .block_count = 1}, label);
    assert_string_equal(label, "reduce_scatter rows of embed.wte.weight");
    slc_profile_destroy(profile);
}

static void too_much_for_every_order(void **state)
{
    (void)state;
    slc_every_order_answer answer;
    slc_strategy strategies[2] = {SLC_SDP, SLC_FSDP};
    slc_use uses[2] = {{1, true}, {0, false}};
    const char *layers[2] = {"embed", "head"};
    slc_unit units[2] = {{.name = "table",
                          .elements = 64,
                          .block_elements = 32,
                          .trainable = true,
                          .uses = &uses[0],
                          .use_count = 1,
                          .role = SLC_UNIT_SPLIT,
                          .partner = 1},
                         {.name = "rows of table",
                          .elements = 32,
                          .block_elements = 32,
                          .trainable = true,
                          .uses = &uses[1],
                          .use_count = 1,
                          .role = SLC_UNIT_ROWS,
                          .row_elements = 4,
                          .row_count = 16,
                          .most_rows = 2}};
    const slc_job job = {
        .world = 2, .micro_batches = 1, .layer_count = 2, .layers = layers, .units = units, .unit_count = 2};
    slc_times times;
    assert_int_equal(slc_times_estimate(&job, &times), SLUICE_OK);
    times.link.kappa = 0;
    times.link.sigma = 1;
    const slc_every_order_request request = {
        .job = &job, .times = &times, .strategies = strategies, .limit = 1 << 20, .faster_than_s = 1};
    assert_int_equal(slc_every_order(&request, &answer), SLUICE_ERR_ARGUMENT);
    assert_non_null(strstr(sluice_last_error(), "split by its uses"));
    units[0].role = units[1].role = SLC_UNIT_WHOLE;
    assert_int_equal(slc_every_order(&request, &answer), SLUICE_OK);
    slc_plan_destroy(answer.plan);
    slc_times_fini(&times);
}

/* ---- Exposed time ---- */

static slc_forecast forecast_of(const slc_profile *profile, const slc_scheduler *scheduler, slc_strategy strategy)
{
    slc_strategy strategies[UNITS];
    slc_plan *plan;
    slc_forecast forecast;
    test_strategies_all(&profile->job, strategy, strategies);
    const slc_scheduling in = {
        .job = &profile->job, .strategies = strategies, .times = &profile->times, .limit = UINT64_MAX};
    if (slc_plan_make(&in, scheduler, &plan)) fail_msg("%s", sluice_last_error());
    assert_int_equal(slc_simulate(&profile->job, &profile->times, plan, NULL, &forecast), SLUICE_OK);
    slc_plan_destroy(plan);
    return forecast;
}

/* Updates count as exposed; the rest of it is for rows and for the lowest layers, and cannot be hidden. */
static void less_is_exposed_than_of_a_joint_table(void **state)
{
    (void)state;
    static const uint32_t worlds[] = {2, 8};
    static const double gbits[] = {4, 10};
    static const slc_strategy strategies[] = {SLC_OSS, SLC_SDP, SLC_FSDP};
    const slc_scheduler *schedulers[] = {&slc_scheduler_one_ahead, &slc_scheduler_bucketed, &slc_scheduler_priority,
                                         &slc_scheduler_greedy};
    for (int w = 0; w < 2; w++)
        for (int g = 0; g < 2; g++) {
            slc_profile *joint = gpt2(SLUICE_TIED_JOINT, worlds[w], gbits[g], 2);
            slc_profile *split = gpt2(SLUICE_TIED_SPLIT, worlds[w], gbits[g], 2);
            for (int k = 0; k < 3; k++)
                for (int s = 0; s < 4; s++) {
                    slc_forecast of_joint = forecast_of(joint, schedulers[s], strategies[k]);
                    slc_forecast of_split = forecast_of(split, schedulers[s], strategies[k]);
                    double ratio = of_split.exposed_s / of_joint.exposed_s;
                    print_message("%u ranks, %2.0f Gbit/s, %-4s %-9s exposed %.3f s of %.3f -> %.3f of %.3f (%.2f)\n",
                                  worlds[w], gbits[g], slc_strategy_name(strategies[k]), schedulers[s]->name,
                                  of_joint.exposed_s, of_joint.step_s, of_split.exposed_s, of_split.step_s, ratio);
                    assert_true(ratio < 0.75);
                    assert_true(of_split.step_s < of_joint.step_s);
                }
            slc_profile_destroy(split);
            slc_profile_destroy(joint);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asked_becomes_what_may_be),
        cmocka_unit_test(files_name_the_table_alone),
        cmocka_unit_test(labels_say_whose_rows),
        cmocka_unit_test(too_much_for_every_order),
        cmocka_unit_test(less_is_exposed_than_of_a_joint_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
