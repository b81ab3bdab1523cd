/* The short list must hold one plan for each set of choices, the fastest first, and none that is too slow. */
#include "sched/search/shortlist.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const slc_job job = {.layer_count = 2, .unit_count = 2};

static void take_kind(slc_shortlist *list, slc_strategy first, slc_strategy second, double step_s, bool of_model)
{
    slc_strategy strategies[2] = {first, second};
    bool recompute[2] = {false, false};
    slc_candidate candidate = {.strategies = strategies,
                               .recompute = recompute,
                               .plan = calloc(1, sizeof(slc_plan)),
                               .forecast = {.step_s = step_s},
                               .of_model = of_model};
    assert_non_null(candidate.plan);
    assert_int_equal(slc_shortlist_take(list, &candidate), SLUICE_OK);
}

static void take(slc_shortlist *list, slc_strategy first, slc_strategy second, double step_s)
{
    take_kind(list, first, second, step_s, false);
}

static double below(const slc_shortlist *list, slc_strategy first, slc_strategy second)
{
    return slc_shortlist_below_s(list, (slc_strategy[2]){first, second}, (bool[2]){false, false}, false);
}

static double below_of_model(const slc_shortlist *list)
{
    return slc_shortlist_below_s(list, (slc_strategy[2]){SLC_OSS, SLC_OSS}, (bool[2]){false, false}, true);
}

static void one_of_each_choice_and_the_fastest_first(void **state)
{
    (void)state;
    slc_shortlist list = {.job = &job, .slack = 1.5};
    assert_true(below(&list, SLC_SDP, SLC_SDP) == 0);
    take(&list, SLC_SDP, SLC_SDP, 10);
    take(&list, SLC_SDP, SLC_FSDP, 12);
    take(&list, SLC_FSDP, SLC_SDP, 9);
    assert_int_equal(list.count, 3);
    assert_true(list.list[0].forecast.step_s == 9 && list.list[2].forecast.step_s == 12);
    assert_true(below(&list, SLC_SDP, SLC_FSDP) == 12);
    assert_true(below(&list, SLC_FSDP, SLC_FSDP) == 1.5 * 9);
    take(&list, SLC_SDP, SLC_FSDP, 7);
    assert_int_equal(list.count, 3);
    assert_true(list.list[0].forecast.step_s == 7 && list.list[0].strategies[1] == SLC_FSDP);
    assert_true(below(&list, SLC_SDP, SLC_SDP) == 10);
    take(&list, SLC_FSDP, SLC_FSDP, 6);
    assert_int_equal(list.count, 3); /* 10 is above 1.5 * 6 */
    assert_true(list.list[2].forecast.step_s == 9);
    slc_shortlist_fini(&list);
}

static void without_slack_the_fastest_alone(void **state)
{
    (void)state;
    slc_shortlist list = {.job = &job, .slack = 1};
    take(&list, SLC_SDP, SLC_SDP, 10);
    assert_true(below(&list, SLC_FSDP, SLC_SDP) == 10);
    take(&list, SLC_FSDP, SLC_SDP, 9);
    assert_int_equal(list.count, 1);
    slc_shortlist_fini(&list);
}

/* The fastest of each kind stays while the slower one is near. */
static void a_second_kind_keeps_its_fastest(void **state)
{
    (void)state;
    slc_shortlist list = {.job = &job, .slack = 1, .second_slack = 1.1};
    take_kind(&list, SLC_SDP, SLC_SDP, 10, false);
    assert_true(below_of_model(&list) > 10.9 && below_of_model(&list) < 11.1);
    take_kind(&list, SLC_SDP, SLC_FSDP, 10.5, true);
    assert_int_equal(list.count, 2);
    assert_true(below_of_model(&list) == 10.5);
    assert_true(below(&list, SLC_OSS, SLC_OSS) == 10);
    take_kind(&list, SLC_FSDP, SLC_FSDP, 9.8, true); /* the slower one of the model leaves */
    assert_int_equal(list.count, 2);
    assert_true(list.list[0].of_model && !list.list[1].of_model);
    assert_true(below(&list, SLC_OSS, SLC_OSS) == 10);
    take_kind(&list, SLC_FSDP, SLC_SDP, 9, true); /* 10 is above 1.1 * 9 */
    assert_int_equal(list.count, 1);
    assert_true(below_of_model(&list) == 9);
    slc_shortlist_fini(&list);
}

static void a_full_list_loses_its_slowest(void **state)
{
    (void)state;
    slc_shortlist list = {.job = &job, .slack = 100};
    uint32_t all = SLC_STRATEGIES * SLC_STRATEGIES;
    assert_true(all > SLC_SHORTLIST);
    for (uint32_t i = 0; i < all; i++) /* slower ones first */
        take(&list, (slc_strategy)(i / SLC_STRATEGIES), (slc_strategy)(i % SLC_STRATEGIES), 100 - i);
    assert_int_equal(list.count, SLC_SHORTLIST);
    for (uint32_t i = 0; i < list.count; i++) assert_true(list.list[i].forecast.step_s == 100 - (all - 1) + i);
    assert_true(below(&list, SLC_DP, SLC_DP) == list.list[list.count - 1].forecast.step_s);
    slc_shortlist_fini(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_each_choice_and_the_fastest_first),
        cmocka_unit_test(without_slack_the_fastest_alone),
        cmocka_unit_test(a_second_kind_keeps_its_fastest),
        cmocka_unit_test(a_full_list_loses_its_slowest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
