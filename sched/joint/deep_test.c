/* Deep models, whose layers the slot model joins: its answers keep the rules of the real job's model, what it proves is
 * a bound of them, and plans are near their bounds. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "ilp/slot_model.h"
#include "lib/base/status.h"
#include "sched/layout/make_plan.h"
#include "sched/layout/parts.h"
#include "sched/joint/joint.h"
#include "sched/joint/simple_plans.h"
#include "sched/schedulers/slot_order.h"
#include "sched/study/published.h"
#include "sched/study/random_profile.h"
#include "tests/support/scale.h"

#include <stdlib.h>
#include <string.h>

static const double NEAR = 1.15;
enum { JOBS = 8, SANITIZED_JOBS = 2, ROOMY = 100 };

static slc_profile *draw_profile(uint64_t seed)
{
    slc_random_options options = slc_random_defaults();
    slc_profile *profile;
    options.layers = (slc_random_range){130, 170};
    options.can_recompute = seed % 2;
    options.tied_share = options.split_share = 0.5;
    options.thread_moves = seed % 3 == 0;
    assert_int_equal(slc_random_profile(&options, seed, &profile), SLUICE_OK);
    profile->job.each = seed % 4 == 1;
    profile->job.barrier = seed % 5 == 2;
    return profile;
}

/* Measures the arena of a uniform strategy under one_ahead. */
static uint64_t arena_of(const slc_profile *profile, slc_strategy strategy, slc_free_choices *c)
{
    const slc_job *job = &profile->job;
    uint64_t bytes;
    for (uint32_t u = 0; u < job->unit_count; u++) c->strategies[u] = slc_unit_strategy(job, &job->units[u], strategy);
    const slc_scheduling in = {.job = job, .strategies = c->strategies, .times = &profile->times, .limit = UINT64_MAX};
    assert_int_equal(slc_plan_measure(&in, &slc_scheduler_one_ahead, UINT64_MAX, &bytes), SLUICE_OK);
    for (uint32_t u = 0; u < job->unit_count; u++) c->strategies[u] = SLC_STRATEGIES;
    return bytes;
}

static uint64_t drawn_limit(const slc_profile *profile, uint64_t seed, slc_free_choices *c)
{
    const uint64_t fsdp = arena_of(profile, SLC_FSDP, c), sdp = arena_of(profile, SLC_SDP, c);
    return sdp > fsdp ? fsdp + (sdp - fsdp) / 4 * (seed % 5) : fsdp;
}

/* Members move whole, so a slot may get a little more than it has room for; all other rules hold. */
static void check_rules(const slc_slot_request *request, const slc_slot_solution *answer, uint64_t seed)
{
    slc_slot_request roomy = *request;
    slc_times times;
    double step_s;
    assert_int_equal(slc_times_copy(request->job, request->times, &times), SLUICE_OK);
    for (uint32_t s = 0; s < slc_job_slots(request->job); s++) times.slot_s[s] *= ROOMY;
    roomy.times = &times;
    if (slc_slot_model_evaluate(&roomy, answer, &step_s, NULL))
        fail_msg("profile %llu: %s", (unsigned long long)seed, sluice_last_error());
    slc_times_fini(&times);
}

static void check_answer(const slc_profile *profile, uint64_t seed)
{
    const slc_job *job = &profile->job;
    slc_free_choices c;
    uint8_t *allowed = malloc(job->unit_count);
    slc_slot_solution answer;
    assert_non_null(allowed);
    assert_int_equal(slc_free_choices_init(&c, job, true), SLUICE_OK);
    for (uint32_t u = 0; u < job->unit_count; u++) allowed[u] = (1 << SLC_EXACT_STRATEGIES) - 1;
    const slc_slot_request request = {.job = job,
                                      .times = &profile->times,
                                      .allowed = allowed,
                                      .recompute = c.recompute,
                                      .limit = drawn_limit(profile, seed, &c),
                                      .effort_s = 0.5,
                                      .gap = 0.003,
                                      .proves = true};
    assert_int_equal(slc_slot_model_solve(&request, &answer), SLUICE_OK);
    assert_true(answer.found);
    assert_true(answer.proven_s > 0);
    check_rules(&request, &answer, seed);
    slc_slot_solution_fini(&answer);
    slc_free_choices_fini(&c);
    free(allowed);
}

static void answers_keep_the_rules(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= (test_brief() ? SANITIZED_JOBS : JOBS); seed++) {
        slc_profile *profile = draw_profile(seed);
        check_answer(profile, seed);
        slc_profile_destroy(profile);
    }
}

/* No program is written down if a row shows that nothing fits, or if that would take more than a part of the effort. */
static void no_program_is_written_in_vain(void **state)
{
    (void)state;
    slc_random_options options = slc_random_defaults();
    slc_profile *profile;
    options.layers = (slc_random_range){120, 120};
    assert_int_equal(slc_random_profile(&options, 31, &profile), SLUICE_OK);
    uint8_t *allowed = malloc(profile->job.unit_count);
    assert_non_null(allowed);
    for (uint32_t u = 0; u < profile->job.unit_count; u++) allowed[u] = 1 << SLC_SDP | 1 << SLC_FSDP;
    slc_work work = {0};
    slc_slot_request request = {
        .job = &profile->job, .times = &profile->times, .allowed = allowed, .limit = 1, .effort_s = 1, .work = &work};
    slc_slot_solution answer;
    double relaxed_s, bound_s;
    assert_int_equal(slc_slot_model_solve(&request, &answer), SLUICE_ERR_BUDGET);
    assert_true(work.spent_s == 0);
    request.limit = UINT64_MAX;
    assert_int_equal(slc_slot_model_bound(&request, &relaxed_s, &bound_s), SLUICE_OK);
    assert_true(work.spent_s == 0);
    free(allowed);
    slc_profile_destroy(profile);
}

/* 512 equal layers of 1.2 GB altogether. Those in the middle are joined in long groups, those at the ends hardly. */
static slc_profile *equal_layers(void)
{
    const slc_published_options options = {
        .model = "deep-512", .cluster = "8xcpu-10gbit", .compute_ratio = 1, .can_recompute = true};
    const uint64_t elements = 585936;
    slc_profile *profile;
    assert_int_equal(slc_published_profile(&options, &profile), SLUICE_OK);
    const double share = (double)elements / (double)profile->job.units[0].elements;
    for (uint32_t u = 0; u < profile->job.unit_count; u++) profile->job.units[u].elements = elements;
    for (uint32_t s = 0; s < slc_job_slots(&profile->job); s++) profile->times.slot_s[s] *= share;
    for (uint32_t l = 0; l < profile->job.layer_count; l++) profile->times.recompute_s[l] *= share;
    return profile;
}

/* Returns the bytes that live at once at the fullest moment of an answer's order. */
static uint64_t bytes_of_order(const slc_profile *profile, const slc_slot_solution *answer)
{
    const slc_scheduling in = {.job = &profile->job,
                               .strategies = answer->strategies,
                               .recompute = answer->recompute,
                               .times = &profile->times,
                               .limit = UINT64_MAX};
    const slc_slot_order_options options = {.most_runs = 16, .fuse = true};
    slc_order order = {0};
    slc_plan *plan;
    slc_order_from_slots(&in, answer, &options, &order);
    assert_int_equal(slc_plan_from_order(&in, &order, &slc_scheduler_ilp, &plan), SLUICE_OK);
    assert_int_equal(slc_plan_find_bound(plan, NULL), SLUICE_OK);
    const uint64_t bytes = plan->lower_bound;
    slc_plan_destroy(plan);
    slc_order_fini(&order);
    return bytes;
}

/* An answer for joined layers counts on no more memory than the real ones are spared, and their prices are those of a
 * program with all positions. Else plans are more than a per cent above their bounds. */
static void equal_layers_lose_little(void **state)
{
    (void)state;
    if (test_brief()) skip(); /* one program has a quarter of a million cells */
    slc_profile *profile = equal_layers();
    const uint32_t units = profile->job.unit_count;
    slc_free_choices c;
    uint8_t *allowed = malloc(units);
    slc_slot_solution answer;
    double relaxed_s, bound_s;
    assert_non_null(allowed);
    assert_int_equal(slc_free_choices_init(&c, &profile->job, true), SLUICE_OK);
    memset(allowed, (1 << SLC_EXACT_STRATEGIES) - 1, units);
    const slc_slot_request request = {.job = &profile->job,
                                      .times = &profile->times,
                                      .allowed = allowed,
                                      .recompute = c.recompute,
                                      .limit = UINT64_C(2600) << 20,
                                      .gap = 0.003};
    assert_int_equal(slc_slot_model_solve(&request, &answer), SLUICE_OK);
    assert_true(answer.found);
    assert_true((double)bytes_of_order(profile, &answer) < 1.003 * (double)request.limit);
    assert_int_equal(slc_slot_model_bound(&request, &relaxed_s, &bound_s), SLUICE_OK);
    print_message("the bound is %.2f %% below the answer\n", 100 * (1 - bound_s / answer.step_s));
    assert_true(bound_s > 0.995 * answer.step_s);
    slc_slot_solution_fini(&answer);
    slc_free_choices_fini(&c);
    free(allowed);
    slc_profile_destroy(profile);
}

static void plans_are_near_their_bounds(void **state)
{
    (void)state;
    for (uint64_t seed = 21; seed <= 22 && !(test_brief() && seed > 21); seed++) {
        slc_profile *profile = draw_profile(seed);
        slc_free_choices c;
        slc_joint_answer answer;
        assert_int_equal(slc_free_choices_init(&c, &profile->job, true), SLUICE_OK);
        slc_joint_request request = {.job = &profile->job,
                                     .times = &profile->times,
                                     .strategies = c.strategies,
                                     .recompute = c.recompute,
                                     .limit = drawn_limit(profile, seed, &c),
                                     .effort_s = 1};
        assert_int_equal(slc_joint_plan(&request, &answer, NULL), SLUICE_OK);
        assert_true(answer.plan->arena_bytes <= request.limit);
        assert_true(answer.bound_s <= answer.forecast.step_s * (1 + 1e-3));
        assert_true(answer.forecast.step_s <= NEAR * answer.bound_s);
        slc_plan_destroy(answer.plan);
        slc_free_choices_fini(&c);
        slc_profile_destroy(profile);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_keep_the_rules),
        cmocka_unit_test(equal_layers_lose_little),
        cmocka_unit_test(no_program_is_written_in_vain),
        cmocka_unit_test(plans_are_near_their_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
