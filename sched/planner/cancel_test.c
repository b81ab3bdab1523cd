/* Planning that is not wanted any more ends, at whatever moment it is cancelled, with INTERRUPTED and no plan, and
 * leaks no memory. The time until then is printed: it is the longest time of work from one look to the next. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "ilp/slot_model.h"
#include "sched/study/made_profile.h"
#include "lib/plan/request.h"
#include "sched/planner.h"
#include "sched/planner/parts.h"
#include "tests/support/scale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOMENTS = 6 };

typedef struct {
    uint64_t looks, most; /* it is wanted until that many looks; 0: for ever */
    uint64_t at_ns, longest_ns;
} patience;

static uint64_t worked_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); /* the machine may be busy; GLPK looks from a thread of its own */
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool is_over(void *context)
{
    patience *p = context;
    uint64_t now = worked_ns(), since = p->at_ns ? now - p->at_ns : 0;
    if (since > p->longest_ns) p->longest_ns = since;
    p->at_ns = now;
    p->looks++;
    return p->most && p->looks >= p->most;
}

static slc_profile *make_profile(const char *model)
{
    slc_made_options options = {.model = model, .world = 32, .batch = 1, .can_recompute = true};
    slc_profile *profile;
    assert_int_equal(slc_made_cluster(slc_made_cluster_name(0), &options), SLUICE_OK);
    assert_int_equal(slc_made_profile(&options, &profile), SLUICE_OK);
    return profile;
}

static slc_plan_request make_request(const slc_profile *profile, const char *schedule, double budget,
                                     const uint8_t *recompute, const slc_cancel *cancel)
{
    return (slc_plan_request){.strategy = "auto",
                              .schedule = schedule,
                              .recompute = recompute,
                              .times = &profile->times,
                              .budget_of_dp = budget,
                              .effort_s = 1,
                              .cancel = cancel};
}

static void check_schedule(const slc_profile *profile, const char *schedule, double budget)
{
    patience whole = {0};
    slc_cancel cancel = {is_over, &whole};
    slc_plan_answer answer;
    uint8_t *recompute = malloc(profile->job.layer_count);
    for (uint32_t l = 0; l < profile->job.layer_count; l++)
        recompute[l] = profile->job.can_recompute && profile->job.can_recompute[l] ? 2 : 0;
    slc_plan_request request = make_request(profile, schedule, budget, recompute, &cancel);
    sluice_status status = slc_plan_for_budget(&profile->job, &request, &answer);
    assert_true(status == SLUICE_OK || status == SLUICE_ERR_BUDGET);
    slc_plan_destroy(answer.plan);
    assert_true(whole.looks > 0);
    printf("%s, %u layers, budget %g: %llu looks, at most %.1f ms apart\n", schedule, profile->job.layer_count, budget,
           (unsigned long long)whole.looks, 1e-6 * (double)whole.longest_ns);
    uint32_t moments = test_rounds(MOMENTS);
    for (uint32_t m = 0; m < moments; m++) {
        patience some = {.most = 1 + whole.looks / 4 * m / moments};
        cancel.context = &some;
        status = slc_plan_for_budget(&profile->job, &request, &answer);
        if (some.looks < some.most) { /* the clock ended it before */
            slc_plan_destroy(answer.plan);
            break;
        }
        assert_int_equal(status, SLUICE_ERR_INTERRUPTED);
        assert_null(answer.plan);
        assert_true(some.looks <= some.most + 8); /* it does not go on meanwhile */
    }
    free(recompute);
}

static void plans_end(void **state)
{
    (void)state;
    slc_profile *profile = make_profile("gpt2-small");
    check_schedule(profile, slc_schedule_default, 0.7);
    check_schedule(profile, slc_schedule_default, 1e-6);
    check_schedule(profile, "greedy", 0.7);
    check_schedule(profile, "serial", 0.7);
    slc_profile_destroy(profile);
}

static void deep_plans_end(void **state)
{
    (void)state;
    if (test_brief()) {
        print_message("SKIP: deep plans: what they show briefly, shallow ones show\n");
        skip();
    }
    slc_profile *profile = make_profile("gpt3-175b");
    check_schedule(profile, slc_schedule_default, 0.5);
    slc_profile_destroy(profile);
}

static void fusing_ends(void **state)
{
    (void)state;
    slc_profile *profile = make_profile("gpt2-small");
    uint32_t *group = calloc(profile->job.unit_count, sizeof *group);
    patience none = {.most = 1};
    slc_cancel cancel = {is_over, &none};
    slc_plan_request request = make_request(profile, slc_schedule_default, 0.7, NULL, &cancel);
    slc_fuse_request fuse = {.plan = &request, .bytes = SLC_FUSE_AUTO};
    assert_int_equal(slc_fuse_units(&profile->job, &fuse, group), SLUICE_ERR_INTERRUPTED);
    free(group);
    slc_profile_destroy(profile);
}

/* The model by itself, in its relaxation, its rounding and its branching. */
static void the_solver_ends(void **state)
{
    (void)state;
    if (!slc_slot_model_solver()) {
        print_message("SKIP: built without GLPK\n");
        skip();
    }
    slc_profile *profile = make_profile(test_brief() ? "gpt2-small" : "gpt2-medium");
    const slc_job *job = &profile->job;
    uint8_t *allowed = malloc(job->unit_count);
    memset(allowed, 1 << SLC_SDP | 1 << SLC_FSDP, job->unit_count);
    slc_cancel cancel = {is_over, NULL};
    slc_slot_request ask = {.job = job, .times = &profile->times, .allowed = allowed, .cancel = &cancel};
    ask.limit = UINT64_MAX;
    slc_slot_solution solution;
    uint64_t least;
    patience whole = {0};
    cancel.context = &whole;
    assert_int_equal(slc_slot_model_least_memory(&ask, &least, &solution), SLUICE_OK);
    slc_slot_solution_fini(&solution);
    ask.limit = least + least / 4;
    ask.effort_s = 2;
    assert_int_equal(slc_slot_model_solve(&ask, &solution), SLUICE_OK);
    slc_slot_solution_fini(&solution);
    for (uint64_t most = 1; most < whole.looks / 2; most = 2 * most + 1) {
        patience some = {.most = most};
        cancel.context = &some;
        assert_int_equal(slc_slot_model_solve(&ask, &solution), SLUICE_ERR_INTERRUPTED);
        assert_null(solution.flows);
    }
    free(allowed);
    slc_profile_destroy(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_end),
        cmocka_unit_test(deep_plans_end),
        cmocka_unit_test(fusing_ends),
        cmocka_unit_test(the_solver_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
