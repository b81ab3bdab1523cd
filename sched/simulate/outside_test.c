/* A step takes longer than its slots and communication, because the program does other things between two steps, and
 * because ranks come to operations at different times. */
#include "tests/support/sched/hand_plan.h"
#include "sched/simulate/exposed.h"

#include <stdlib.h>

/* F0 F1 B1 B0, each a second, and a reduction, an update and a gather of one block after B0, which F0 waits for. */
static void put_chain(hand *h)
{
    hand_init(h, 1, 1, 1, 1);
    for (uint32_t s = 0; s < 4; s++) put_slot(h, s);
    uint32_t reduction = put_run(h, SLC_ITEM_REDUCE_SCATTER, 0, 1);
    put_wait(h, reduction, 3, false);
    uint32_t update = put_run(h, SLC_ITEM_UPDATE, 0, 1);
    put_wait(h, update, reduction, false);
    uint32_t gather = put_run(h, SLC_ITEM_GATHER_VALUE, 0, 1);
    put_wait(h, gather, update, false);
    put_wait(h, 0, gather, true);
}

static void operations_go_on_outside_of_slots(void **state)
{
    (void)state;
    hand h;
    slc_item_times t[ITEMS];
    put_chain(&h);
    check(7, forecast(&h, NULL).step_s);
    h.times.outside_s = 2; /* in which reduction and update run */
    slc_forecast f = forecast(&h, t);
    check(7, f.step_s);
    check(4, f.compute_s);
    check(2, f.outside_s);
    check(1, f.exposed_s);
    check_times(&t[3], 3, 4);
    check_times(&t[6], 6, 7);
    h.times.outside_s = 5;
    f = forecast(&h, NULL);
    check(9, f.step_s);
    check(0, f.exposed_s);
}

static void the_agreement_comes_before(void **state)
{
    (void)state;
    hand h;
    hand_init(&h, 1, 1, 1, 1);
    for (uint32_t s = 0; s < 4; s++) put_slot(&h, s);
    h.times.link.reduce_scatter.latency_s = h.times.link.all_gather.latency_s = 1;
    put_wait(&h, put(&h, (slc_item){.kind = SLC_ITEM_AGREE, .unit = SLC_NONE}), 3, false);
    h.times.outside_s = 3;
    slc_forecast f = forecast(&h, NULL);
    check(9, f.step_s); /* 4 of slots, the agreement's 2, then 3 */
    check(2, f.exposed_s);
    check(3, f.outside_s);
}

static void nothing_of_the_next_step_begins_meanwhile(void **state)
{
    (void)state;
    hand h;
    slc_item_times t[ITEMS];
    hand_init(&h, 1, 1, 1, 1);
    uint32_t gather = put_run(&h, SLC_ITEM_GATHER_WINDOW, 0, 1);
    for (uint32_t s = 0; s < 4; s++) put_slot(&h, s);
    put_wait(&h, 1, gather, false); /* F0 */
    h.times.outside_s = 3;
    slc_forecast f = forecast(&h, t);
    check(8, f.step_s);
    check(1, f.exposed_s);
    check_times(&t[gather], -1, 0);
}

static void it_slows_down_and_is_slowed_down_as_a_slot(void **state)
{
    (void)state;
    hand h;
    put_chain(&h);
    h.times.link.sigma = 2;
    h.times.link.kappa = 1;
    h.times.update_s_per_element = 0;
    h.times.outside_s = 1;
    slc_forecast f = forecast(&h, NULL);
    check(2, f.outside_s); /* at half its speed, while the reduction runs */
    check(1, f.exposed_s);
    check(7, f.step_s);
}

static void an_operation_waits_for_ranks_that_come_late(void **state)
{
    (void)state;
    hand h;
    slc_item_times t[ITEMS];
    put_chain(&h);
    h.times.late_s = 0.5; /* the update waits for nobody */
    slc_forecast f = forecast(&h, t);
    check(8, f.step_s);
    check(4, f.exposed_s);
    check(2, f.communication_s);
    check_times(&t[4], 4.5, 5.5);
    check_times(&t[6], 7, 8);
    h.times.link.thread_moves = true;
    check(8, forecast(&h, NULL).step_s);
}

static void they_come_while_the_link_is_busy(void **state)
{
    (void)state;
    hand h;
    slc_item_times t[ITEMS];
    hand_init(&h, 1, 1, 1, 10);
    for (uint32_t s = 0; s < 4; s++) put_slot(&h, s);
    for (uint32_t u = 0; u < 3; u++) put_wait(&h, put_run(&h, SLC_ITEM_REDUCE_SCATTER, u, 1), 2, false);
    h.times.late_s = 1.5;
    forecast(&h, t);
    check_times(&t[4], 4.5, 5.5);
    check_times(&t[5], 5.5, 6.5);
    check_times(&t[6], 6.5, 7.5);
}

static void late_ranks_slow_no_slot_down(void **state)
{
    (void)state;
    hand h;
    hand_init(&h, 1, 1, 1, 10);
    for (uint32_t s = 0; s < 4; s++) put_slot(&h, s);
    put_wait(&h, put_run(&h, SLC_ITEM_REDUCE_SCATTER, 0, 1), 2, false);
    h.times.link.sigma = 2;
    h.times.link.kappa = 1;
    h.times.late_s = 3;
    slc_forecast f = forecast(&h, NULL);
    check(14, f.compute_s); /* a second longer for the second of transfer, none for the three before it */
    check(2, f.communication_s);
}

static void waits_begin_after_it(void **state)
{
    (void)state;
    hand h;
    slc_item_times t[ITEMS];
    slc_exposure exposures[ITEMS];
    put_chain(&h);
    h.times.outside_s = 2;
    slc_forecast f = forecast(&h, t);
    assert_int_equal(slc_exposures(&h.plan, t, &f, exposures), 1);
    assert_int_equal(exposures[0].slot, 0);
    check(-1, exposures[0].from_s);
    check(0, exposures[0].to_s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_go_on_outside_of_slots),
        cmocka_unit_test(the_agreement_comes_before),
        cmocka_unit_test(nothing_of_the_next_step_begins_meanwhile),
        cmocka_unit_test(it_slows_down_and_is_slowed_down_as_a_slot),
        cmocka_unit_test(an_operation_waits_for_ranks_that_come_late),
        cmocka_unit_test(they_come_while_the_link_is_busy),
        cmocka_unit_test(late_ranks_slow_no_slot_down),
        cmocka_unit_test(waits_begin_after_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
