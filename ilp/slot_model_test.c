/* The slot model's answers must equal an enumeration of all strategies and placements of whole blocks, and must hold
 * general rules for any job. */
#include "tests/support/ilp/enumerate.h"
#include "tests/support/ilp/random_slot_job.h"
#include "tests/support/scale.h"
#include "lib/base/status.h"
#include "lib/base/numbers/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

/* Number of small cases that are enumerated; bench builds may ask for more with -DSMALL_CASES=500. */
#ifndef SMALL_CASES
#define SMALL_CASES 200
#endif
enum { FEWEST_PLACINGS = 200, MOST_PLACINGS = 20000 };

/* ---- Enumeration ---- */

static slc_slot_request small_case(slot_dice *dice, slot_job *t)
{
    uint32_t micro_batches = slot_below(dice, 3) ? 1 : 2 + slot_below(dice, 2);
    slot_job_draw(t, dice, 2 + slot_below(dice, 3), 1 + slot_below(dice, 3), micro_batches);
    return (slc_slot_request){.job = &t->job,
                              .times = &t->times,
                              .allowed = t->allowed,
                              .recompute = slot_below(dice, 2) ? t->recompute : NULL,
                              .tie = 1,
                              .every_position = true,
                              .whole_blocks = 1 + slot_below(dice, 3),
                              .in_series = slc_random_below(dice->seed, 14, dice->drawn, 2)};
}

static bool mixes_onebit(const slc_job *job, const slc_slot_solution *answer)
{
    uint32_t onebit = 0, others = 0;
    for (uint32_t u = 0; answer->found && u < job->unit_count; u++) {
        onebit += answer->strategies[u] == SLC_ONEBIT;
        others += answer->strategies[u] != SLC_ONEBIT && job->units[u].role == SLC_UNIT_WHOLE;
    }
    return onebit && others;
}

/* False: too few answers to be worth it, or more than there is time for. `mixed` counts answers that mix onebit with
 * other strategies. */
static bool check_small_case(slot_dice *dice, slc_slot_request *request, int *mixed)
{
    slc_slot_solution light, answer;
    uint64_t least, tried;
    double best_s;
    assert_int_equal(slc_slot_model_least_memory(request, &least, &light), SLUICE_OK);
    slc_slot_solution_fini(&light);
    double more = slot_below(dice, 60) * (request->job->compressed ? 0.04 : 0.01);
    request->limit = least + (uint64_t)((double)least * more);
    if (slot_below(dice, 6) == 0) request->limit = least;
    if (slot_below(dice, 12) == 0) request->limit = least - 1;

    assert_int_equal(slc_slot_model_enumerate(request, MOST_PLACINGS, &best_s, &tried), SLUICE_OK);
    if (tried < FEWEST_PLACINGS) return false;
    sluice_status status = slc_slot_model_solve(request, &answer);
    if (isinf(best_s)) {
        assert_int_equal(status, SLUICE_ERR_BUDGET);
        assert_true(request->limit < least);
    } else {
        assert_int_equal(status, SLUICE_OK);
        assert_true(request->limit >= least);
        if (fabs(answer.step_s - best_s) > 1e-6 * best_s)
            fail_msg("case %llu: solver %.9f, enumeration %.9f of %llu answers", (unsigned long long)dice->drawn,
                     answer.step_s, best_s, (unsigned long long)tried);
    }
    *mixed += mixes_onebit(request->job, &answer);
    slc_slot_solution_fini(&answer);
    return true;
}

static void small_cases_equal_enumeration(void **state)
{
    (void)state;
    slot_dice dice = {.seed = 4};
    slot_job t;
    int mixed = 0, split = 0;
    const int wanted = (int)test_rounds(SMALL_CASES);
    for (int cases = 0; cases < wanted;) {
        slc_slot_request request = small_case(&dice, &t);
        bool checked = check_small_case(&dice, &request, &mixed);
        cases += checked;
        split += checked && t.units[t.job.unit_count - 1].role == SLC_UNIT_ROWS;
    }
    assert_true(mixed >= wanted / 50);
    assert_true(split >= wanted / 8);
}

/* dp with `each`: its gathers may be in any gap after the reduction, and its updates with them. */
static void gradients_gathered_whole_equal_enumeration(void **state)
{
    (void)state;
    slot_dice dice = {.seed = 5};
    slot_job t;
    int mixed = 0;
    const int wanted = (int)test_rounds(SMALL_CASES / 2);
    for (int cases = 0; cases < wanted;) {
        slc_slot_request request = small_case(&dice, &t);
        t.job.each = true;
        t.job.barrier = t.job.compressed = false;
        request.whole_blocks = 1;
        for (uint32_t u = 0; u < t.job.unit_count; u++)
            t.allowed[u] = (uint8_t)(1 << SLC_DP | (slot_below(&dice, 2) ? 1 << SLC_SDP : 0));
        cases += check_small_case(&dice, &request, &mixed);
    }
}

/* ---- Rules for any answer ---- */

static const double gap = 0.003;

static slc_slot_request request_of(const slot_job *t, bool recompute)
{
    return (slc_slot_request){.job = &t->job,
                              .times = &t->times,
                              .allowed = t->allowed,
                              .recompute = recompute ? t->recompute : NULL,
                              .gap = gap};
}

static uint64_t least_of(const slc_slot_request *request)
{
    slc_slot_solution light;
    uint64_t least;
    assert_int_equal(slc_slot_model_least_memory(request, &least, &light), SLUICE_OK);
    slc_slot_solution_fini(&light);
    return least;
}

/* Solves, checks the answer by its account, and returns the step. */
static double solved(const slc_slot_request *request, double *bound_s)
{
    slc_slot_solution answer;
    double step_s;
    uint64_t most;
    if (slc_slot_model_solve(request, &answer)) fail_msg("%s", sluice_last_error());
    assert_true(answer.found);
    if (slc_slot_model_evaluate(request, &answer, &step_s, &most)) fail_msg("%s", sluice_last_error());
    assert_true(fabs(step_s - answer.step_s) <= 1e-9 * step_s);
    assert_true((double)most <= (double)request->limit * (1 + 1e-6) + 1);
    assert_true(answer.bound_s <= answer.step_s);
    if (bound_s) *bound_s = answer.bound_s;
    slc_slot_solution_fini(&answer);
    return step_s;
}

static const double slack = 1 + 0.003 + 1e-3; /* the gap and the tie-breaking term */

static void more_memory_is_never_slower(void **state)
{
    (void)state;
    slot_dice dice = {.seed = 5};
    slot_job t;
    for (uint32_t i = 0; i < test_rounds(30); i++) {
        slot_job_draw(&t, &dice, 2 + slot_below(&dice, 9), MOST_UNITS, 1 + slot_below(&dice, 5));
        slc_slot_request request = request_of(&t, i % 2);
        request.limit = least_of(&request);
        double before = INFINITY;
        for (int k = 0; k < 4; k++) {
            double step_s = solved(&request, NULL);
            assert_true(step_s <= before * slack);
            before = step_s;
            request.limit += request.limit / 8;
        }
    }
}

static void uniform_choices_are_never_better(void **state)
{
    (void)state;
    slot_dice dice = {.seed = 6};
    slot_job t;
    uint8_t one[MOST_UNITS];
    for (uint32_t i = 0; i < test_rounds(25); i++) {
        slot_job_draw(&t, &dice, 2 + slot_below(&dice, 9), MOST_UNITS, 1 + slot_below(&dice, 5));
        slc_slot_request joint = request_of(&t, false), uniform = joint;
        uniform.allowed = one;
        for (int k = 0; k < slc_job_strategies(&t.job); k++) {
            memset(one, 1 << k, sizeof one);
            joint.limit = uniform.limit = least_of(&uniform) * (10 + slot_below(&dice, 4)) / 10;
            double bound_s, uniform_s = solved(&uniform, NULL), joint_s = solved(&joint, &bound_s);
            assert_true(joint_s <= uniform_s * slack);
            assert_true(bound_s <= uniform_s * (1 + 1e-9));
        }
    }
}

static void free_recomputation_is_never_worse(void **state)
{
    (void)state;
    slot_dice dice = {.seed = 7};
    slot_job t;
    for (uint32_t i = 0; i < test_rounds(25); i++) {
        slot_job_draw(&t, &dice, 2 + slot_below(&dice, 9), MOST_UNITS, 1 + slot_below(&dice, 5));
        slc_slot_request without = request_of(&t, false), with = request_of(&t, true);
        memset(t.recompute, 2, sizeof t.recompute);
        without.limit = least_of(&without) * (10 + slot_below(&dice, 3)) / 10;
        with.limit = without.limit;
        assert_true(least_of(&with) <= least_of(&without));
        assert_true(solved(&with, NULL) <= solved(&without, NULL) * slack);
    }
}

static void bounds_are_below_every_answer(void **state)
{
    (void)state;
    slot_dice dice = {.seed = 8};
    slot_job t;
    for (uint32_t i = 0; i < test_rounds(25); i++) {
        slot_job_draw(&t, &dice, 2 + slot_below(&dice, 7), MOST_UNITS, 1 + slot_below(&dice, 5));
        slc_slot_request request = request_of(&t, i % 2);
        request.limit = least_of(&request) * (10 + slot_below(&dice, 5)) / 10;
        double relaxed_s, bound_s, tight_s, step_s = solved(&request, &tight_s);
        request.effort_s = 0.5;
        assert_int_equal(slc_slot_model_bound(&request, &relaxed_s, &bound_s), SLUICE_OK);
        assert_true(relaxed_s <= bound_s && bound_s <= step_s * (1 + 1e-9));
        request.effort_s = 0;
        request.relaxed = true;
        slc_slot_solution relaxed;
        assert_int_equal(slc_slot_model_solve(&request, &relaxed), SLUICE_OK);
        assert_false(relaxed.found);
        assert_true(relaxed.bound_s <= step_s * (1 + 1e-9));
        assert_true(tight_s >=
                    relaxed.bound_s * (1 - 1e-9)); /* an answer's bound is as tight, for all its tie-breaking */
        slc_slot_solution_fini(&relaxed);
    }
}

/* If the wanted gap is just below that of the answer without overlap, rounding answers, and within the wanted gap.
 * Branching answers only if it finds something better than rounding does. */
static void rounding_is_used_and_branching_where_it_is_better(void **state)
{
    (void)state;
    const int cases = test_brief() ? 6 : 20;
    slot_dice dice = {.seed = 12};
    slot_job t;
    int rounded = 0, branched = 0;
    for (int i = 0; i < cases; i++) {
        slot_job_draw(&t, &dice, 4 + slot_below(&dice, 5), MOST_UNITS, 1 + slot_below(&dice, 3));
        slc_slot_request request = request_of(&t, i % 2);
        slc_slot_solution answer, wide;
        request.limit = least_of(&request) * (11 + slot_below(&dice, 4)) / 10;
        assert_int_equal(slc_slot_model_solve(&request, &answer), SLUICE_OK);
        request.gap = 1;
        double serial_s = solved(&request, NULL);
        request.gap = 0.99 * (serial_s - answer.bound_s) / serial_s;
        assert_int_equal(slc_slot_model_solve(&request, &wide), SLUICE_OK);
        assert_true(wide.step_s - wide.bound_s <= (request.gap + 1e-3) * wide.step_s);
        rounded += !strcmp(wide.how, "rounding");
        if (!strcmp(answer.how, "branch and bound")) {
            assert_true(answer.step_s < wide.step_s * (1 - 1e-9));
            branched++;
        }
        slc_slot_solution_fini(&wide);
        slc_slot_solution_fini(&answer);
    }
    assert_true(rounded > cases / 2 && (branched > 1 || test_brief()));
}

static void a_effort_still_gives_an_answer(void **state)
{
    (void)state;
    slot_dice dice = {.seed = 9};
    slot_job t;
    for (uint32_t i = 0; i < test_rounds(10); i++) {
        slot_job_draw(&t, &dice, 10, MOST_UNITS, 3);
        slc_slot_request request = request_of(&t, true);
        request.limit = least_of(&request) * (10 + slot_below(&dice, 5)) / 10;
        request.effort_s = 1e-6;
        solved(&request, NULL);
    }
}

static void equal_inputs_give_equal_answers(void **state)
{
    (void)state;
    slot_dice dice = {.seed = 10};
    slot_job t;
    for (uint32_t i = 0; i < test_rounds(10); i++) {
        slot_job_draw(&t, &dice, 8, MOST_UNITS, 1 + slot_below(&dice, 3));
        slc_slot_request request = request_of(&t, true);
        request.limit = least_of(&request) * 12 / 10;
        slc_slot_solution a, b;
        assert_int_equal(slc_slot_model_solve(&request, &a), SLUICE_OK);
        assert_int_equal(slc_slot_model_solve(&request, &b), SLUICE_OK);
        assert_int_equal(a.flow_count, b.flow_count);
        assert_memory_equal(a.strategies, b.strategies, t.job.unit_count * sizeof *a.strategies);
        assert_memory_equal(a.recompute, b.recompute, t.job.layer_count * sizeof *a.recompute);
        for (uint32_t f = 0; f < a.flow_count; f++) {
            assert_int_equal(a.flows[f].position, b.flows[f].position);
            assert_true(a.flows[f].fraction == b.flows[f].fraction);
        }
        slc_slot_solution_fini(&b);
        slc_slot_solution_fini(&a);
    }
}

/* Four layers on `world` ranks: a long one without parameters, then three short ones of which the second has a unit. */
static slc_slot_request short_layers(slot_job *t, slc_strategy strategy)
{
    static const double seconds[] = {100e-3, 0.1e-3, 0.1e-3, 0.1e-3};
    memset(t, 0, sizeof *t);
    t->job = (slc_job){.world = 2,
                       .micro_batches = 1,
                       .states = 2,
                       .layer_count = 4,
                       .layers = t->names,
                       .units = t->units,
                       .unit_count = 1};
    for (uint32_t l = 0; l < 4; l++) {
        t->names[l] = "layer";
        t->slot_s[l] = seconds[l];
        t->slot_s[slc_backward_slot(&t->job, l)] = 2 * seconds[l];
    }
    t->uses[0][0] = (slc_use){1, true};
    t->units[0] = (slc_unit){
        .name = "u", .elements = 32000, .block_elements = 320, .trainable = true, .uses = t->uses[0], .use_count = 1};
    t->allowed[0] = (uint8_t)(1 << strategy);
    t->times = (slc_times){.slot_s = t->slot_s,
                           .link = {.reduce_scatter = {1e-6, 32e5}, .all_gather = {1e-6, 32e5}, .sigma = 1}};
    slc_slot_request request = request_of(t, false);
    request.limit = 1 << 20;
    return request;
}

/* Operations of 20 ms each fit beside the long layer, and so does the gather for the backward, if it comes before the
 * window of the forward; beside the short layers it would be exposed. */
static void windows_may_be_gathered_before_others_begin(void **state)
{
    (void)state;
    slot_job t;
    slc_slot_request request = short_layers(&t, SLC_FSDP);
    double bound_s, step_s = solved(&request, &bound_s);
    assert_true(step_s < 0.302);
    assert_true(bound_s < 0.302);
}

/* Every step has an agreement of the ranks, beside slots while there is room. */
static void the_agreement_is_charged(void **state)
{
    (void)state;
    slot_job t;
    slc_slot_request request = short_layers(&t, SLC_SDP);
    double bound_s, compute_s = 0.3009;
    assert_true(solved(&request, NULL) < compute_s + 1e-3);
    t.times.link.reduce_scatter.latency_s = t.times.link.all_gather.latency_s = 80e-3; /* 160 ms, and 100 ms each */
    assert_true(solved(&request, &bound_s) > 0.359 && bound_s > 0.358);
    t.times.link.kappa = 1; /* no room anywhere */
    assert_true(solved(&request, &bound_s) > compute_s + 0.359 && bound_s > compute_s + 0.358);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    slot_dice dice = {.seed = 11};
    slot_job t;
    slot_job_draw(&t, &dice, 4, MOST_UNITS, 1);
    slc_slot_request request = request_of(&t, true);
    slc_slot_solution answer;
    request.limit = 1;
    assert_int_equal(slc_slot_model_solve(&request, &answer), SLUICE_ERR_BUDGET);
    assert_non_null(strstr(sluice_last_error(), "too small"));
    t.allowed[0] = 0;
    assert_int_equal(slc_slot_model_solve(&request, &answer), SLUICE_ERR_FORMAT);
    t.allowed[0] = 15;
    t.slot_s[2] = NAN;
    assert_int_equal(slc_slot_model_solve(&request, &answer), SLUICE_ERR_FORMAT);
    t.slot_s[2] = 1e-3;
    t.times.link.kappa = 9;
    assert_int_equal(slc_slot_model_solve(&request, &answer), SLUICE_ERR_FORMAT);
    t.times.link.kappa = 0;
    t.recompute[1] = 3;
    assert_int_equal(slc_slot_model_solve(&request, &answer), SLUICE_ERR_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_cases_equal_enumeration),
        cmocka_unit_test(gradients_gathered_whole_equal_enumeration),
        cmocka_unit_test(more_memory_is_never_slower),
        cmocka_unit_test(uniform_choices_are_never_better),
        cmocka_unit_test(free_recomputation_is_never_worse),
        cmocka_unit_test(bounds_are_below_every_answer),
        cmocka_unit_test(rounding_is_used_and_branching_where_it_is_better),
        cmocka_unit_test(a_effort_still_gives_an_answer),
        cmocka_unit_test(equal_inputs_give_equal_answers),
        cmocka_unit_test(windows_may_be_gathered_before_others_begin),
        cmocka_unit_test(the_agreement_is_charged),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
