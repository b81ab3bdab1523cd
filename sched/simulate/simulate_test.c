/* The simulator must give the times of steps that were worked out by hand. drawn_steps_test.c holds it to the rules of
 * any step. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/status.h"
#include "tests/support/sched/hand_plan.h"

static void slots_alone_add_up(void **state)
{
    (void)state;
    hand h;
    slc_item_times t[ITEMS];
    hand_init(&h, 1, 2, 3, 4);
    for (uint32_t s = 0; s < 4; s++) put_slot(&h, s);
    slc_forecast f = forecast(&h, t);
    check(10, f.step_s);
    check(10, f.compute_s);
    check(0, f.exposed_s);
    check_times(&t[3], 6, 10);
    h.recompute[1] = true; /* its backward runs the forward again */
    check(20, forecast(&h, NULL).step_s);
}

/* F0 F1 B1 B0 RS U AG run one after another, and F0 after the AG of the pass before. */
static void a_chain_is_the_sum(void **state)
{
    (void)state;
    hand h;
    slc_item_times t[ITEMS];
    hand_init(&h, 1, 2, 3, 4);
    h.times.link.kappa = 0.5;
    h.times.link.sigma = 2;
    for (uint32_t s = 0; s < 4; s++) put_slot(&h, s);
    put_wait(&h, put_run(&h, SLC_ITEM_REDUCE_SCATTER, 0, 5), 3, false);
    put_wait(&h, put_run(&h, SLC_ITEM_UPDATE, 0, 6), 4, false);
    put_wait(&h, put_run(&h, SLC_ITEM_GATHER_VALUE, 0, 7), 5, false);
    put_wait(&h, 0, 6, true);
    slc_forecast f = forecast(&h, t);
    check(1 + 2 + 3 + 4 + 5 + 6 + 7, f.step_s);
    check(5 + 6 + 7, f.exposed_s);
    check(5 + 7, f.communication_s);
    check(6, f.update_s);
    check_times(&t[6], 21, 28);
}

static void overlap_hides_communication(void **state)
{
    (void)state;
    hand h;
    slc_item_times t[ITEMS];
    hand_init(&h, 2, 2, 4, 4);
    put_slot(&h, 0);
    put_slot(&h, 1);
    put_slot(&h, 2);
    put_wait(&h, put_run(&h, SLC_ITEM_REDUCE_SCATTER, 0, 3), 2, false);
    put_slot(&h, 3);
    slc_forecast f = forecast(&h, t);
    check(12, f.step_s);
    check(0, f.exposed_s);
    check_times(&t[3], 8, 11);
}

/* A slot of 10 s and 4 s of communication at kappa 1/2 and sigma 2: communication takes 8 s of wall time, in which the
 * slot advances by 6 s, then come its other 4 s. A slot of 3 s takes 4 s, in which 2 s of the communication are done;
 * the rest runs alone. */
static void kappa_and_sigma(void **state)
{
    (void)state;
    hand h;
    slc_item_times t[ITEMS];
    hand_init(&h, 1, 10, 1, 3);
    h.times.link.kappa = 0.5;
    h.times.link.sigma = 2;
    put_slot(&h, 0);
    put_wait(&h, put_run(&h, SLC_ITEM_GATHER_WINDOW, 0, 4), 0, false);
    put_slot(&h, 1);
    put_slot(&h, 2);
    put_wait(&h, put_run(&h, SLC_ITEM_GATHER_WINDOW, 1, 4), 3, false);
    put_slot(&h, 3);
    put_wait(&h, 0, 4, true);
    slc_forecast f = forecast(&h, t);
    check_times(&t[1], 1, 9);
    check_times(&t[2], 1, 13);
    check_times(&t[4], 14, 20);
    check_times(&t[5], 14, 18);
    check(20, f.step_s);
    check(2, f.exposed_s);
    check(18, f.compute_s);
    check(14, f.communication_s);
}

/* At kappa = sigma compute must stop while there is communication. */
static void communication_may_stop_compute(void **state)
{
    (void)state;
    hand h;
    hand_init(&h, 1, 10, 1, 3);
    h.times.link.kappa = h.times.link.sigma = 1.5;
    put_slot(&h, 0);
    put_wait(&h, put_run(&h, SLC_ITEM_GATHER_WINDOW, 0, 4), 0, false);
    for (uint32_t s = 1; s < 4; s++) put_slot(&h, s);
    check(15 + 1.5 * 4, forecast(&h, NULL).step_s);
}

/* An update of 3 s whose input is ready, in the queue after a reduction that still takes 4 s. */
static void updates_beside_the_link(void **state)
{
    (void)state;
    for (int one = 0; one < 2; one++) {
        hand h;
        slc_item_times t[ITEMS];
        hand_init(&h, 1, 1, 1, 20);
        h.times.link.thread_moves = one;
        put_slot(&h, 0);
        put_slot(&h, 1);
        put_slot(&h, 2);
        put_wait(&h, put_run(&h, SLC_ITEM_REDUCE_SCATTER, 0, 4), 2, false);
        put_wait(&h, put_run(&h, SLC_ITEM_UPDATE, 1, 3), 2, false);
        put_wait(&h, put_run(&h, SLC_ITEM_GATHER_VALUE, 1, 2), 4, false);
        put_slot(&h, 3);
        forecast(&h, t);
        check_times(&t[3], 3, 7);
        check_times(&t[4], one ? 7 : 3, one ? 10 : 6);
        check(one ? 10 : 7, t[4].over_s); /* operations end in order */
        check_times(&t[5], one ? 10 : 7, one ? 12 : 9);
        check(one ? 10 : 7, t[5].open_s);
    }
}

/* An update of 3 s on the thread beside a slot of 20 s, of which it takes update_kappa a second, but no more than sigma
 * and no less than kappa. If the thread moves the bytes, only kappa counts. */
static void updates_beside_compute(void **state)
{
    (void)state;
    const struct {
        double kappa, sigma, update_kappa, step_s;
        bool thread_moves;
    } cases[] = {{0, 1, 0, 23, false},     {0, 1, 0.5, 24.5, false}, {0, 1, 7, 26, false},
                 {0.5, 1, 0, 24.5, false}, {0.5, 2, 1, 26, false},   {0.5, 1, 1, 24.5, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hand h;
        hand_init(&h, 1, 1, 1, 20);
        h.times.link.kappa = cases[i].kappa;
        h.times.link.sigma = cases[i].sigma;
        h.times.link.update_kappa = cases[i].update_kappa;
        h.times.link.thread_moves = cases[i].thread_moves;
        for (uint32_t s = 0; s < 3; s++) put_slot(&h, s);
        put_wait(&h, put_run(&h, SLC_ITEM_UPDATE, 1, 3), 2, false);
        put_slot(&h, 3);
        check(cases[i].step_s, forecast(&h, NULL).step_s);
    }
}

/* At most eight operations may be open: the ninth must wait for the first, although the thread is free. */
/* Compressing takes 2 s, an exchange 2 s on the link and 1 s of averaging, applying 1 s; an all-reduce that few steps
 * run takes none. One unit is exchanged while the other is compressed. */
/* On the compute lane U takes half as long and runs between B0 and F0. The link meanwhile moves what does not wait for
 * U; everything else must wait. */
static void updates_on_the_compute_lane(void **state)
{
    (void)state;
    hand h;
    slc_item_times t[ITEMS];
    hand_init(&h, 1, 2, 3, 4);
    h.times.update_compute_s_per_element = 1.0 / BLOCK;
    for (uint32_t s = 0; s < 4; s++) put_slot(&h, s);
    uint32_t first = put_run(&h, SLC_ITEM_REDUCE_SCATTER, 0, 2), second = put_run(&h, SLC_ITEM_REDUCE_SCATTER, 1, 3);
    uint32_t update = put(&h, (slc_item){.kind = SLC_ITEM_UPDATE, .on_compute = true, .unit = 0, .block_count = 2});
    uint32_t gather = put_run(&h, SLC_ITEM_GATHER_VALUE, 0, 2);
    put_wait(&h, first, 3, false);
    put_wait(&h, update, first, false);
    put_wait(&h, gather, update, false);
    put_wait(&h, 0, gather, true);
    slc_forecast f = forecast(&h, t);
    check_times(&t[first], 10, 12);
    check_times(&t[update], 12, 13);
    check_times(&t[second], 12, 15);
    check_times(&t[gather], 15, 17);
    check(17, f.step_s);
    check(11, f.compute_s);
    check(6, f.exposed_s);
    check(7, f.communication_s);
    check(0, f.update_s);
    h.times.update_compute_s_per_element = 0; /* not known: the thread's time counts */
    check(12, forecast(&h, NULL).compute_s);
}

/* A late update must be left out of the first pass; F1 waits for it. */
static void late_updates_on_the_compute_lane(void **state)
{
    (void)state;
    hand h;
    slc_item_times t[ITEMS];
    hand_init(&h, 1, 2, 3, 4);
    h.times.link.kappa = 0.5;
    h.times.link.sigma = 2;
    h.times.update_compute_s_per_element = 2.0 / BLOCK;
    put_slot(&h, 0);
    uint32_t update =
        put(&h, (slc_item){.kind = SLC_ITEM_UPDATE, .late = true, .on_compute = true, .unit = 1, .block_count = 3});
    for (uint32_t s = 1; s < 4; s++) put_slot(&h, s);
    uint32_t reduction = put_run(&h, SLC_ITEM_REDUCE_SCATTER, 1, 3);
    put_wait(&h, reduction, 4, false);
    put_wait(&h, update, reduction, true);
    slc_forecast f = forecast(&h, t);
    /* F0 takes 4/3 s while the reduction runs, of which 2/3 s are done then; the update waits for the rest. */
    check(4.0 / 3 + 7.0 / 3 + 3 + 9, f.step_s);
    check(7.0 / 3, f.exposed_s);
    check_times(&t[update], 4.0 / 3 + 7.0 / 3, 4.0 / 3 + 7.0 / 3 + 3);
    check(0, f.update_s);
}

static void onebit_uses_thread_and_link(void **state)
{
    (void)state;
    hand h;
    slc_item_times t[ITEMS];
    hand_init(&h, 1, 1, 1, 1);
    for (int u = 0; u < 2; u++) {
        h.strategies[u] = SLC_ONEBIT;
        h.units[u].exchange.wire = 4 * BLOCK;
    }
    h.times.compress_s_per_element = 2.0 / (8 * BLOCK);
    h.times.apply_s_per_element = 1.0 / (8 * BLOCK);
    h.times.average_s_per_element = 2.0 / (8 * BLOCK);
    for (uint32_t s = 0; s < 4; s++) put_slot(&h, s);
    put_wait(&h, put_run(&h, SLC_ITEM_ALL_REDUCE, 0, 8), 3, false);
    for (uint32_t u = 0; u < 2; u++) put_wait(&h, put_run(&h, SLC_ITEM_COMPRESS, u, 8), 3, false);
    for (uint32_t u = 0; u < 2; u++) put_wait(&h, put_run(&h, SLC_ITEM_EXCHANGE, u, 8), 5 + u, false);
    for (uint32_t u = 0; u < 2; u++) put_wait(&h, put_run(&h, SLC_ITEM_UPDATE, u, 8), 7 + u, false);
    put_wait(&h, 0, 10, true);
    slc_forecast f = forecast(&h, t);
    check(13, f.step_s);
    check(6, f.update_s);
    check(6, f.communication_s);
    check_times(&t[4], 4, 4);
    check_times(&t[5], 4, 6);
    check_times(&t[6], 6, 8);
    check_times(&t[7], 6, 9);
    check_times(&t[8], 9, 12);
    check_times(&t[9], 9, 10);
    check_times(&t[10], 12, 13);
    h.times.link.thread_moves = true; /* one after another */
    check(16, forecast(&h, NULL).step_s);
}

static void few_operations_are_open(void **state)
{
    (void)state;
    hand h;
    slc_item_times t[ITEMS];
    hand_init(&h, 1, 1, 1, 40);
    for (uint32_t s = 0; s < 3; s++) put_slot(&h, s);
    for (uint32_t k = 0; k < 9; k++)
        put_wait(&h, put_run(&h, k ? SLC_ITEM_UPDATE : SLC_ITEM_REDUCE_SCATTER, k ? 1 : 0, k ? 1 : 8), 2, false);
    put_slot(&h, 3);
    forecast(&h, t);
    check_times(&t[3], 3, 11);
    check_times(&t[10], 9, 10);
    check_times(&t[11], 11, 12);
    check(11, t[11].open_s);
}

/* The reduction of B0 is late, before F0 in the next pass: the first pass must leave it out. F1 waits for it. */
static void late_items(void **state)
{
    (void)state;
    hand h;
    slc_item_times t[ITEMS];
    hand_init(&h, 2, 2, 3, 3);
    put_wait(&h, put(&h, (slc_item){.kind = SLC_ITEM_REDUCE_SCATTER, .late = true, .unit = 0, .block_count = 5}), 4,
             true);
    put_slot(&h, 0);
    put_wait(&h, put_slot(&h, 1), 0, false);
    put_slot(&h, 2);
    put_slot(&h, 3);
    slc_forecast f = forecast(&h, t);
    check(13, f.step_s);
    check(3, f.exposed_s);
    check_times(&t[0], 0, 5);
    check_times(&t[2], 5, 7);
}

/* A pass must last until the ranks agree: at its end, or, about the previous step, at its start. */
static void agreement_ends_the_pass(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        hand h;
        hand_init(&h, 1, 1, 1, 1);
        if (late) put_wait(&h, put(&h, (slc_item){.kind = SLC_ITEM_AGREE, .late = true, .unit = SLC_NONE}), 4, true);
        for (uint32_t s = 0; s < 4; s++) put_slot(&h, s);
        if (!late) put_wait(&h, put(&h, (slc_item){.kind = SLC_ITEM_AGREE, .unit = SLC_NONE}), 3, false);
        h.times.link.reduce_scatter.latency_s = h.times.link.all_gather.latency_s = 0.25;
        check(late ? 4 : 4.5, forecast(&h, NULL).step_s);
    }
}

/* Late operations belong to the previous step: anything that delays them must delay the end of the pass. */
static void late_items_end_the_pass(void **state)
{
    (void)state;
    hand h;
    hand_init(&h, 2, 2, 3, 3);
    for (uint32_t s = 0; s < 4; s++) put_slot(&h, s);
    put_wait(&h, put(&h, (slc_item){.kind = SLC_ITEM_REDUCE_SCATTER, .late = true, .unit = 0, .block_count = 5}), 2,
             false);
    check(12, forecast(&h, NULL).step_s);
}

/* A link that needs 21 s while compute needs 20 s. It may fall back by most of a step before compute notices, so the
 * first passes do not show it. */
static void a_queue_that_grows(void **state)
{
    (void)state;
    hand h;
    slc_forecast f;
    hand_init(&h, 5, 5, 5, 5);
    put_slot(&h, 0);
    for (uint32_t k = 0; k < 3; k++) put_wait(&h, put_run(&h, SLC_ITEM_GATHER_WINDOW, k, 7), 0, false);
    put_slot(&h, 1);
    put_slot(&h, 2);
    put_wait(&h, put_slot(&h, 3), 3, true);
    f = forecast(&h, NULL);
    check(21, f.step_s);
    assert_true(f.passes > 10);
    const slc_simulation few = {.passes = 4};
    assert_int_equal(slc_simulate(&h.job, &h.times, &h.plan, &few, &f), SLUICE_OK);
    assert_false(f.steady);
    check(20, f.step_s);
}

static void a_plan_that_cannot_run(void **state)
{
    (void)state;
    hand h;
    slc_forecast f;
    hand_init(&h, 1, 1, 1, 1);
    put_wait(&h, put_slot(&h, 0), 1, false);
    put_wait(&h, put_run(&h, SLC_ITEM_REDUCE_SCATTER, 0, 1), 0, false);
    assert_int_equal(slc_simulate(&h.job, &h.times, &h.plan, NULL, &f), SLUICE_ERR_FORMAT);
    h.plan.train.item_count = 0;
    assert_int_equal(slc_simulate(&h.job, &h.times, &h.plan, NULL, &f), SLUICE_ERR_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_alone_add_up),
        cmocka_unit_test(a_chain_is_the_sum),
        cmocka_unit_test(overlap_hides_communication),
        cmocka_unit_test(kappa_and_sigma),
        cmocka_unit_test(communication_may_stop_compute),
        cmocka_unit_test(updates_beside_the_link),
        cmocka_unit_test(updates_beside_compute),
        cmocka_unit_test(updates_on_the_compute_lane),
        cmocka_unit_test(late_updates_on_the_compute_lane),
        cmocka_unit_test(onebit_uses_thread_and_link),
        cmocka_unit_test(few_operations_are_open),
        cmocka_unit_test(late_items),
        cmocka_unit_test(agreement_ends_the_pass),
        cmocka_unit_test(late_items_end_the_pass),
        cmocka_unit_test(a_queue_that_grows),
        cmocka_unit_test(a_plan_that_cannot_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
