/* Planned cuts keep to the budget, no move of a single cut makes them faster, the bound holds, and what cannot be is
 * refused with what can. */
#include "sched/pipeline/pipeline_plan.h"
#include "sched/pipeline/pipeline_trace.h"

#include "lib/base/status.h"
#include "sched/study/made_profile.h"
#include "sched/study/random_profile.h"
#include "tests/support/draw.h"
#include "tests/support/scale.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

enum { MOST_PIECES = 16 };

static slc_profile *draw_profile(uint64_t seed, uint32_t world, uint32_t micro_batches)
{
    slc_random_options options = slc_random_defaults();
    slc_profile *profile;
    options.layers = (slc_random_range){6, 12};
    options.world = world;
    options.micro_batches = micro_batches;
    options.can_recompute = true;
    options.tied_share = 0.5;
    options.split_share = 1;
    options.unit_bytes = (slc_random_range){1e6, 1e7};
    assert_int_equal(slc_random_profile(&options, test_seed(seed), &profile), SLUICE_OK);
    return profile;
}

static slc_profile *gpt2(sluice_tied tied, uint32_t replicas, uint32_t micro_batches)
{
    slc_made_options options = {
        .model = "gpt2-small", .batch = 4, .context = 64, .tied = tied, .micro_batches = micro_batches};
    slc_profile *profile;
    assert_int_equal(slc_made_cluster("2xcpu-1gbit", &options), SLUICE_OK);
    assert_int_equal(slc_made_profile(&options, &profile), SLUICE_OK);
    assert_int_equal(slc_profile_set_world(profile, replicas), SLUICE_OK);
    return profile;
}

static slc_pipeline_request request_of(const slc_profile *profile, const char *schedule, uint32_t stages,
                                       uint32_t chunks)
{
    return (slc_pipeline_request){.profile = profile,
                                  .schedule = slc_pipeline_schedule_find(schedule),
                                  .shape = {stages, chunks, profile->job.micro_batches},
                                  .strategy = SLC_STRATEGIES};
}

static uint64_t most_of(const slc_pipeline_plan *plan, uint32_t stages)
{
    uint64_t most = 0;
    for (uint32_t s = 0; s < stages; s++) most = plan->bytes[s] > most ? plan->bytes[s] : most;
    return most;
}

/* ---- Budgets ---- */

/* The number in the error that follows a word. */
static uint64_t number_after(const char *word)
{
    const char *at = strstr(sluice_last_error(), word);
    if (!at) fail_msg("%s", sluice_last_error());
    return at ? strtoull(at + strlen(word), NULL, 10) : 0;
}

static void plans_keep_to_budgets_and_refusals_name_one_that_works(void **state)
{
    (void)state;
    const uint32_t rounds = test_rounds(test_brief() ? 4 : 30);
    for (uint64_t round = 0; round < rounds; round++) {
        uint64_t seed = 5200 + round;
        static const char *const names[] = {"1f1b", "gpipe", "interleaved", "zero_bubble", "pipedream", "2bw"};
        const char *name = names[round % 6];
        const uint32_t stages = 2 + (uint32_t)draw(&seed, 2);
        const bool few = draw(&seed, 2) && strcmp(name, "2bw") != 0 && strcmp(name, "interleaved") != 0;
        const uint32_t micro_batches =
            few ? 1 + (uint32_t)draw(&seed, 2 * stages) : stages * (1 + (uint32_t)draw(&seed, 3));
        slc_profile *profile = draw_profile(round, 1 + (uint32_t)draw(&seed, 2), micro_batches);
        slc_pipeline_request request = request_of(profile, name, stages, strcmp(name, "interleaved") ? 1 : 2);
        slc_pipeline_plan plan;
        request.recompute = (uint8_t)(2 * draw(&seed, 2));
        if (slc_pipeline_plan_make(&request, &plan)) fail_msg("%s: %s", name, sluice_last_error());
        const uint64_t free_bytes = most_of(&plan, stages);
        const double free_s = plan.forecast.step_s;
        assert_true(plan.bound_s <= free_s * (1 + 1e-9));
        slc_pipeline_plan_fini(&plan);

        request.budget_bytes = free_bytes - free_bytes / 50;
        sluice_status status = slc_pipeline_plan_make(&request, &plan);
        if (!status) assert_true(most_of(&plan, stages) <= request.budget_bytes);
        if (status) assert_int_equal(status, SLUICE_ERR_BUDGET);
        slc_pipeline_plan_fini(&plan);

        request.budget_bytes = 1;
        assert_int_equal(slc_pipeline_plan_make(&request, &plan), SLUICE_ERR_BUDGET);
        request.budget_bytes = number_after("that was found is ");
        slc_pipeline_plan_fini(&plan);
        assert_int_equal(slc_pipeline_plan_make(&request, &plan), SLUICE_OK);
        assert_true(most_of(&plan, stages) <= request.budget_bytes);
        slc_pipeline_plan_fini(&plan);
        slc_profile_destroy(profile);
    }
}

/* ---- Cuts ---- */

static double step_of(const slc_pipeline_request *request, const slc_pipeline_plan *plan, const uint32_t *first_layer)
{
    const slc_cut_job cut = {.profile = request->profile,
                             .schedule = request->schedule,
                             .shape = request->shape,
                             .first_layer = first_layer,
                             .strategies = plan->staged->strategies,
                             .held = plan->staged->held,
                             .recompute = plan->recompute};
    slc_pipeline_costs costs;
    slc_pipeline_forecast forecast;
    assert_int_equal(slc_pipeline_costs_init(&cut, &costs), SLUICE_OK);
    assert_int_equal(slc_pipeline_simulate(&plan->program, &costs.times, NULL, &forecast), SLUICE_OK);
    const double step_s = forecast.step_s;
    slc_pipeline_forecast_fini(&forecast);
    slc_pipeline_costs_fini(&costs);
    return step_s;
}

static void no_move_of_a_cut_makes_a_step_shorter(void **state)
{
    (void)state;
    const uint32_t rounds = test_rounds(test_brief() ? 3 : 20);
    for (uint64_t round = 0; round < rounds; round++) {
        uint64_t seed = 8800 + round;
        const uint32_t stages = 2 + (uint32_t)draw(&seed, 3);
        slc_profile *profile = draw_profile(100 + round, 1, stages * 2);
        const slc_pipeline_request request = request_of(profile, round % 2 ? "1f1b" : "interleaved", stages,
                                                        round % 2    ? 1
                                                        : stages < 4 ? 2
                                                                     : 1);
        const uint32_t pieces = slc_pipeline_pieces(&request.shape);
        uint32_t moved[MOST_PIECES];
        slc_pipeline_plan plan;
        assert_int_equal(slc_pipeline_plan_make(&request, &plan), SLUICE_OK);
        assert_true(step_of(&request, &plan, plan.first_layer) == plan.forecast.step_s);
        for (uint32_t k = 1; k < pieces; k++)
            for (int by = -1; by <= 1; by += 2) {
                memcpy(moved, plan.first_layer, pieces * sizeof *moved);
                moved[k] = (uint32_t)((int)moved[k] + by);
                const uint32_t end = k + 1 < pieces ? moved[k + 1] : profile->job.layer_count;
                if (moved[k] <= moved[k - 1] || moved[k] >= end) continue;
                assert_true(step_of(&request, &plan, moved) >= plan.forecast.step_s * (1 - 2e-9));
            }
        slc_pipeline_plan_fini(&plan);
        slc_profile_destroy(profile);
    }
}

/* Pieces have all layers' times, whatever the cuts. */
static void pieces_add_up_to_the_model(void **state)
{
    (void)state;
    slc_profile *profile = gpt2(SLUICE_TIED_SPLIT, 2, 8);
    const uint32_t first_layer[4] = {0, 3, 4, 11};
    slc_strategy strategies[64];
    const slc_cut_job cut = {.profile = profile,
                             .schedule = slc_pipeline_schedule_find("1f1b"),
                             .shape = {4, 1, 8},
                             .first_layer = first_layer,
                             .strategies = strategies};
    assert_true(profile->job.unit_count <= 64);
    for (uint32_t u = 0; u < profile->job.unit_count; u++) strategies[u] = SLC_SDP;
    slc_pipeline_costs costs;
    double pieces_s = 0, layers_s = 0;
    assert_int_equal(slc_pipeline_costs_init(&cut, &costs), SLUICE_OK);
    for (uint32_t p = 0; p < 4; p++)
        pieces_s += costs.times.forward_s[p] + costs.times.input_s[p] + costs.times.weight_s[p];
    for (uint32_t s = 0; s < slc_job_slots(&profile->job); s++) layers_s += profile->times.slot_s[s];
    assert_true(pieces_s > layers_s * (1 - 1e-9) && pieces_s < layers_s * (1 + 1e-9));
    /* One activation and its gradient: 4 sequences of 64 tokens, 768 channels. */
    assert_int_equal(slc_cut_forward_bytes(&profile->job, 2), 4 * 64 * 768 * 4);
    assert_int_equal(slc_cut_backward_bytes(&profile->job, 2), 4 * 64 * 768 * 4);
    assert_true(costs.times.rows_s > 0);
    for (uint32_t o = 0; o < costs.times.operation_count; o++)
        assert_true(costs.operations[o].after == SLC_NO_OPERATION || costs.operations[o].after < o);
    /* Replicas reduce the table's gradient, then those of its rows once they are back, and update after both. */
    const slc_unit *rows = slc_cut_rows(&profile->job);
    uint32_t reduced = 0;
    for (uint32_t o = 1; o + 1 < costs.times.operation_count; o++) {
        const slc_stage_operation *one = &costs.operations[o];
        if (one->unit == SLC_NONE || &profile->job.units[one->unit] != rows) continue;
        reduced++;
        assert_true(one->stage == 3 && one->after_rows && one->link_s > 0 && one->kind == one[-1].kind);
        assert_true(one->after == o - 1 && one[-1].unit == rows->partner);
        assert_true(one[1].kind == SLC_ITEM_UPDATE && one[1].unit == rows->partner && one[1].after == o);
    }
    assert_int_equal(reduced, 1);
    slc_pipeline_costs_fini(&costs);
    slc_profile_destroy(profile);
}

static void expect_cuts(const slc_job *job, const char *text, uint32_t pieces, const char *words)
{
    uint32_t first_layer[MOST_PIECES];
    assert_int_equal(slc_pipeline_cuts_read(job, text, pieces, first_layer), SLUICE_ERR_ARGUMENT);
    if (!strstr(sluice_last_error(), words)) fail_msg("%s", sluice_last_error());
}

static void cuts_are_names_of_layers_in_order(void **state)
{
    (void)state;
    slc_profile *profile = gpt2(SLUICE_TIED_SPLIT, 1, 4);
    const slc_job *job = &profile->job;
    uint32_t first_layer[MOST_PIECES];
    assert_int_equal(slc_pipeline_cuts_read(job, "h.3,h.6,head", 4, first_layer), SLUICE_OK);
    assert_true(first_layer[0] == 0 && first_layer[1] == 4 && first_layer[2] == 7 && first_layer[3] == 13);
    assert_int_equal(slc_pipeline_cuts_read(job, "", 1, first_layer), SLUICE_OK);
    expect_cuts(job, "h.3,h.6", 4, "2 names; 4 pieces of the model need 3");
    expect_cuts(job, "h.3", 1, "1 name; 1 pieces of the model need 0");
    expect_cuts(job, "h.3,h.x,head", 4,
                "no layer is called \"h.x\"; the first layers of further stages are h.0 to head");
    expect_cuts(job, "h.3,h.3,head", 4, "\"h.3\" does not come after \"h.3\"; from \"h.4\" on every layer does");
    expect_cuts(job, "h.3,head,h.5", 4, "which is the last layer");
    expect_cuts(job, "embed,h.3,h.5", 4, "\"embed\" does not come after \"embed\"");
    slc_profile_destroy(profile);
}

/* ---- Refusals ---- */

static void expect_refused(const slc_pipeline_request *request, const char *words)
{
    slc_pipeline_plan plan;
    assert_int_equal(slc_pipeline_plan_make(request, &plan), SLUICE_ERR_ARGUMENT);
    if (!strstr(sluice_last_error(), words)) fail_msg("%s", sluice_last_error());
    slc_pipeline_plan_fini(&plan);
}

static void what_cannot_be_is_refused_with_what_can(void **state)
{
    (void)state;
    slc_profile *profile = gpt2(SLUICE_TIED_SPLIT, 1, 8), *joint = gpt2(SLUICE_TIED_JOINT, 1, 8);
    slc_pipeline_request request = request_of(profile, "1f1b", 15, 1);
    expect_refused(&request, "15 stages of 1 chunk are 15 pieces, the model has 14 layers; up to 14 stages work");
    request = request_of(profile, "interleaved", 8, 2);
    expect_refused(&request, "up to 7 stages work");
    request = request_of(profile, "interleaved", 3, 2);
    expect_refused(&request, "6 and 9 work");
    request = request_of(profile, "2bw", 2, 1);
    request.strategy = SLC_FSDP;
    expect_refused(&request, "2bw keeps older values whole on every rank; dp, oss and sdp work");
    request = request_of(profile, "zero_bubble", 2, 1);
    request.recompute = 1;
    expect_refused(&request, "recompute in another schedule");
    request = request_of(joint, "1f1b", 2, 1);
    expect_refused(&request, "--tied split");
    const uint32_t first_layer[2] = {0, 5};
    request.first_layer = first_layer;
    expect_refused(&request, "is used from layer \"embed\" to \"head\"");
    profile->job.each = true;
    request = request_of(profile, "1f1b", 2, 1);
    expect_refused(&request, "--accumulate last");
    slc_profile_destroy(joint);
    slc_profile_destroy(profile);
}

static void given_cuts_are_taken_or_refused_by_the_budget(void **state)
{
    (void)state;
    slc_profile *profile = gpt2(SLUICE_TIED_SPLIT, 1, 8);
    const uint32_t first_layer[4] = {0, 3, 7, 10};
    slc_pipeline_request request = request_of(profile, "1f1b", 4, 1);
    slc_pipeline_plan plan;
    request.first_layer = first_layer;
    assert_int_equal(slc_pipeline_plan_make(&request, &plan), SLUICE_OK);
    assert_memory_equal(plan.first_layer, first_layer, sizeof first_layer);
    request.budget_bytes = most_of(&plan, 4);
    slc_pipeline_plan_fini(&plan);
    assert_int_equal(slc_pipeline_plan_make(&request, &plan), SLUICE_OK);
    slc_pipeline_plan_fini(&plan);
    request.budget_bytes--;
    assert_int_equal(slc_pipeline_plan_make(&request, &plan), SLUICE_ERR_BUDGET);
    assert_int_equal(number_after("the budget is "), request.budget_bytes);
    slc_pipeline_plan_fini(&plan);
    slc_profile_destroy(profile);
}

/* ---- Strategies ---- */

static uint32_t count_units(const slc_pipeline_plan *plan, slc_strategy strategy, bool held)
{
    uint32_t count = 0;
    for (uint32_t u = 0; u < plan->staged->unit_count; u++)
        count += plan->staged->strategies[u] == strategy && plan->staged->held[u] == held;
    return count;
}

static slc_pipeline_plan planned(const slc_pipeline_request *request)
{
    slc_pipeline_plan plan;
    if (slc_pipeline_plan_make(request, &plan)) fail_msg("%s", sluice_last_error());
    if (request->budget_bytes) assert_true(most_of(&plan, request->shape.stages) <= request->budget_bytes);
    return plan;
}

static uint64_t least_budget(const slc_pipeline_request *asked)
{
    slc_pipeline_request request = *asked;
    slc_pipeline_plan plan;
    request.budget_bytes = 1;
    assert_int_equal(slc_pipeline_plan_make(&request, &plan), SLUICE_ERR_BUDGET);
    slc_pipeline_plan_fini(&plan);
    return number_after("that was found is ");
}

/* With less memory than sdp needs units are gathered in each micro-batch, as many as it takes, and the step is longer;
 * what all of them need is the smallest budget. */
static void units_are_gathered_where_a_budget_asks_for_it(void **state)
{
    (void)state;
    slc_profile *profile = gpt2(SLUICE_TIED_SPLIT, 4, 8);
    slc_pipeline_request request = request_of(profile, "1f1b", 2, 1);
    slc_pipeline_plan plan = planned(&request);
    assert_int_equal(count_units(&plan, SLC_FSDP, false), 1); /* the rows of the table alone, which have no other */
    assert_int_equal(plan.costs.times.gather_count, 0);
    const uint64_t most = most_of(&plan, 2);
    const double free_s = plan.forecast.step_s;
    slc_pipeline_plan_fini(&plan);

    const uint64_t least = least_budget(&request);
    request.strategy = SLC_SDP;
    const uint64_t whole = least_budget(&request);
    request.strategy = SLC_STRATEGIES;
    assert_true(least < whole && whole <= most);
    for (int k = 1; k <= 3; k++) {
        request.budget_bytes = least + (whole - 1 - least) / 2 * (uint64_t)(3 - k);
        plan = planned(&request);
        assert_true(plan.forecast.step_s > free_s);
        assert_true(plan.bound_s <= plan.forecast.step_s);
        assert_true(count_units(&plan, SLC_FSDP, false) > 1);
        if (k < 3) assert_true(count_units(&plan, SLC_SDP, false) > 0);
        slc_pipeline_plan_fini(&plan);
    }
    slc_profile_destroy(profile);
}

/* fsdp for all units is gathered once a step where that fits. */
static void fsdp_is_held_where_it_fits(void **state)
{
    (void)state;
    slc_profile *profile = gpt2(SLUICE_TIED_SPLIT, 4, 8);
    slc_pipeline_request request = request_of(profile, "1f1b", 2, 1);
    request.strategy = SLC_FSDP;
    slc_pipeline_plan plan = planned(&request);
    assert_int_equal(plan.costs.times.gather_count, 0);
    assert_true(count_units(&plan, SLC_FSDP, true) > 10);
    const uint64_t most = most_of(&plan, 2);
    const double step_s = plan.forecast.step_s;
    slc_pipeline_plan_fini(&plan);
    const uint64_t least = least_budget(&request);
    request.budget_bytes = least + (most - least) / 4;
    plan = planned(&request);
    assert_true(count_units(&plan, SLC_FSDP, true) > 0 && plan.costs.times.gather_count > 0);
    assert_true(plan.forecast.step_s >= step_s * (1 - 1e-9));
    slc_pipeline_plan_fini(&plan);
    slc_profile_destroy(profile);
}

/* On a slow link replicas exchange compressed momentum where memory allows it; the table of looked-up rows never does.
 */
static void onebit_is_taken_where_it_fits(void **state)
{
    (void)state;
    slc_profile *profile = gpt2(SLUICE_TIED_SPLIT, 4, 8);
    slc_pipeline_request request = request_of(profile, "1f1b", 2, 1);
    slc_pipeline_plan plan = planned(&request);
    const double exact_s = plan.forecast.step_s;
    const uint64_t exact = most_of(&plan, 2);
    slc_pipeline_plan_fini(&plan);
    assert_int_equal(slc_profile_set_compressed(profile, true), SLUICE_OK);
    plan = planned(&request);
    assert_true(plan.forecast.step_s < exact_s);
    assert_true(count_units(&plan, SLC_ONEBIT, false) > 10);
    for (uint32_t u = 0; u < profile->job.unit_count; u++)
        if (profile->job.units[u].role == SLC_UNIT_SPLIT) assert_int_equal(plan.staged->strategies[u], SLC_SDP);
    const uint64_t most = most_of(&plan, 2);
    slc_pipeline_plan_fini(&plan);
    request.budget_bytes = exact + (most - exact) / 2;
    plan = planned(&request);
    assert_true(count_units(&plan, SLC_ONEBIT, false) > 0 && count_units(&plan, SLC_SDP, false) > 1);
    slc_pipeline_plan_fini(&plan);
    slc_profile_destroy(profile);
}

/* Recomputation makes room. Where all units have room for every strategy it is not tried, even if onebit, the last of
 * them, is not taken because it makes the step longer. */
static void recomputation_is_tried_for_room_alone(void **state)
{
    (void)state;
    slc_profile *profile = gpt2(SLUICE_TIED_SPLIT, 4, 8);
    slc_pipeline_request request = request_of(profile, "1f1b", 2, 1);
    assert_int_equal(slc_profile_set_compressed(profile, true), SLUICE_OK);
    profile->times.compress_s_per_element = 1;
    slc_pipeline_plan plan = planned(&request);
    const uint32_t rounds = plan.rounds;
    assert_true(rounds > 0);
    assert_int_equal(count_units(&plan, SLC_ONEBIT, false), 0);
    slc_pipeline_plan_fini(&plan);
    request.recompute = 2;
    plan = planned(&request);
    assert_int_equal(plan.rounds, rounds);
    assert_false(plan.recompute);
    slc_pipeline_plan_fini(&plan);
    slc_profile_destroy(profile);
}

/* ---- What a plan is held against ---- */

/* PipeDream's programme has more freedom than stages of equal replicas, so its step is no longer. */
static void unequal_replicas_are_a_bound_of_steady_schedules(void **state)
{
    (void)state;
    slc_profile *profile = gpt2(SLUICE_TIED_SPLIT, 2, 8);
    static const char *const names[] = {"pipedream", "2bw"};
    for (int k = 0; k < 2; k++) {
        const slc_pipeline_request request = request_of(profile, names[k], 2, 1);
        slc_pipeline_plan plan = planned(&request);
        uint32_t ranks = 0, layer = 0;
        for (uint32_t s = 0; s < plan.unequal_count; s++) {
            assert_int_equal(plan.unequal[s].first_layer, layer);
            layer = plan.unequal[s].end_layer;
            ranks += plan.unequal[s].replicas;
        }
        assert_int_equal(layer, profile->job.layer_count);
        assert_int_equal(ranks, 4);
        assert_true(plan.unequal_s > 0);
        slc_pipeline_plan_fini(&plan);
    }
    slc_profile_destroy(profile);
}

/* Weight gradients take what the profile says; where they are half of a backward that is the same as not knowing. */
static void weight_times_come_from_the_profile(void **state)
{
    (void)state;
    slc_profile *profile = gpt2(SLUICE_TIED_SPLIT, 1, 8);
    const slc_job *job = &profile->job;
    const slc_pipeline_request request = request_of(profile, "zero_bubble", 4, 1);
    double step_s[3];
    for (int k = 0; k < 3; k++) {
        static const double share[] = {0, 0.5, 0.2};
        free(profile->times.weight_s);
        profile->times.weight_s = k ? calloc(job->layer_count, sizeof *profile->times.weight_s) : NULL;
        for (uint32_t l = 0; k && l < job->layer_count; l++)
            profile->times.weight_s[l] = share[k] * profile->times.slot_s[slc_backward_slot(job, l)];
        assert_int_equal(slc_knows_weight_times(profile), k > 0);
        slc_pipeline_plan plan = planned(&request);
        step_s[k] = plan.forecast.step_s;
        slc_pipeline_plan_fini(&plan);
    }
    assert_true(step_s[0] == step_s[1]);
    assert_true(step_s[2] > step_s[0]); /* less is left to fill idle time with */
    slc_profile_destroy(profile);
}

/* A channel may be slower than the link of collectives. */
static void messages_take_what_the_channel_takes(void **state)
{
    (void)state;
    slc_profile *profile = gpt2(SLUICE_TIED_SPLIT, 1, 8);
    assert_true(slc_message_s(&profile->times, 1000000) == 1e6 / profile->times.link.all_gather.bytes_per_s);
    profile->times.link.channel = (slc_link_line){0.25, 1e6};
    assert_true(slc_message_s(&profile->times, 1000000) == 1);
    const slc_pipeline_request request = request_of(profile, "1f1b", 2, 1);
    slc_pipeline_plan plan = planned(&request);
    assert_true(plan.costs.times.latency_s == 0.25);
    slc_pipeline_plan_fini(&plan);
    slc_profile_destroy(profile);
}

/* An activation that the backward of an earlier layer reads is no gradient, and cannot go back. */
static void cuts_do_not_part_a_backward_from_what_it_reads(void **state)
{
    (void)state;
    slc_profile *profile = gpt2(SLUICE_TIED_SPLIT, 1, 8);
    slc_activation_readers *readers = calloc(profile->job.activation_count, sizeof *readers);
    static const slc_reader early[] = {{3, false, true}};
    const uint32_t first_layer[2] = {0, 4};
    for (uint32_t a = 0; a < profile->job.activation_count; a++)
        if (profile->job.activations[a].first_slot == 5) readers[a] = (slc_activation_readers){early, 1};
    profile->job.readers = readers;
    slc_pipeline_request request = request_of(profile, "1f1b", 2, 1);
    request.first_layer = first_layer;
    expect_refused(&request, "is read by the backward of \"h.2\" before it");
    request.first_layer = NULL;
    slc_pipeline_plan plan = planned(&request);
    assert_true(plan.first_layer[1] != 4 && plan.first_layer[1] != 5);
    slc_pipeline_plan_fini(&plan);
    profile->job.readers = NULL;
    free(readers);
    slc_profile_destroy(profile);
}

/* Every task of a step is in the trace once, in each of its steps, and an arrow for each message that is read. */
static void a_trace_has_every_task_once(void **state)
{
    (void)state;
    slc_profile *profile = gpt2(SLUICE_TIED_SPLIT, 1, 8);
    const slc_pipeline_request request = request_of(profile, "interleaved", 4, 2);
    slc_pipeline_plan plan;
    char *text;
    assert_int_equal(slc_pipeline_plan_make(&request, &plan), SLUICE_OK);
    assert_int_equal(slc_pipeline_trace(&profile->job, &plan, 2, &text), SLUICE_OK);
    json_t *root = json_loads(text, 0, NULL), *event;
    size_t index, tasks = 0, activations = 0, gradients = 0, rows = 0, starts = 0, ends = 0;
    json_array_foreach (json_object_get(root, "traceEvents"), index, event) {
        const char *name = json_string_value(json_object_get(event, "name")), *phase;
        phase = json_string_value(json_object_get(event, "ph"));
        tasks += (*name == 'F' || *name == 'B') && name[1] == ' ';
        activations += !strncmp(name, "activation ", 11);
        gradients += !strncmp(name, "gradient ", 9);
        rows += !strncmp(name, "rows ", 5);
        starts += *phase == 's';
        ends += *phase == 'f';
    }
    assert_int_equal(tasks, 2 * 8 * 2 * 8);
    assert_int_equal(activations, 2 * 8 * 7);
    assert_int_equal(gradients, 2 * 8 * 7);
    assert_int_equal(rows, 2 * 8);
    assert_int_equal(starts, activations + gradients + rows);
    assert_int_equal(ends, starts);
    json_decref(root);
    free(text);
    slc_pipeline_plan_fini(&plan);
    slc_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_keep_to_budgets_and_refusals_name_one_that_works),
        cmocka_unit_test(no_move_of_a_cut_makes_a_step_shorter),
        cmocka_unit_test(pieces_add_up_to_the_model),
        cmocka_unit_test(cuts_are_names_of_layers_in_order),
        cmocka_unit_test(what_cannot_be_is_refused_with_what_can),
        cmocka_unit_test(units_are_gathered_where_a_budget_asks_for_it),
        cmocka_unit_test(fsdp_is_held_where_it_fits),
        cmocka_unit_test(onebit_is_taken_where_it_fits),
        cmocka_unit_test(recomputation_is_tried_for_room_alone),
        cmocka_unit_test(unequal_replicas_are_a_bound_of_steady_schedules),
        cmocka_unit_test(weight_times_come_from_the_profile),
        cmocka_unit_test(messages_take_what_the_channel_takes),
        cmocka_unit_test(cuts_do_not_part_a_backward_from_what_it_reads),
        cmocka_unit_test(a_trace_has_every_task_once),
        cmocka_unit_test(given_cuts_are_taken_or_refused_by_the_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
