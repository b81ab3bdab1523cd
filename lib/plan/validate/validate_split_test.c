/* The validator on a tied parameter that is split by its uses, and on updates on the compute lane. Plans are made here
 * item by item: for random orders its verdict must be that of the rules, written down as pairs of items. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/numbers/random.h"
#include "tests/support/plan/made_plan.h"
#include "tests/support/seed.h"

#include <sluice/status.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ORDERS = 3000 };

static sluice_status validate(made *m)
{
    made_plan(m);
    sluice_status status = slc_plan_validate(&m->job, m->plan);
    slc_plan_destroy(m->plan);
    return status;
}

/* ---- The rules, as pairs of items ---- */

/* Returns true if `a` must have ended before `b` of the same step starts. */
static bool in_front(const made *m, const slc_item *a, const slc_item *b)
{
    const slc_unit *mine = b->unit == SLC_NONE ? NULL : &m->units[b->unit];
    bool same = mine && a->unit == b->unit && slc_share_blocks(a, b), each = m->job.each;
    uint32_t next = a->micro_batch + 1, first = 0, grown = 0;
    slc_window window = {0};
    if (mine) slc_unit_gradient_slots(&m->job, mine, &first, &grown);
    if (mine) slc_unit_window(&m->job, mine, true, b->index, &window);
    switch (b->kind) {
    case SLC_ITEM_SLOT:
        if (a->kind == SLC_ITEM_SLOT) return a < b;
        if (a->kind == SLC_ITEM_GATHER_WINDOW) {
            slc_unit_window(&m->job, &m->units[a->unit], true, a->index, &window);
            return a->micro_batch == b->micro_batch && window.first_slot <= b->slot && b->slot <= window.last_slot;
        }
        if (a->kind != SLC_ITEM_REDUCE_SCATTER) return false;
        slc_unit_gradient_slots(&m->job, &m->units[a->unit], &first, &grown);
        return each && next == b->micro_batch && first <= b->slot && b->slot <= grown;
    case SLC_ITEM_REDUCE_SCATTER:
    case SLC_ITEM_ALL_REDUCE:
        if (a->kind == SLC_ITEM_SLOT) return a->micro_batch == b->micro_batch && a->slot == grown;
        if (a->kind != SLC_ITEM_REDUCE_SCATTER) return false;
        return (same && next == b->micro_batch) || /* in order of micro-batches */
               (b->unit == ROWS && a->unit == TABLE &&
                a->micro_batch == b->micro_batch) || /* rows are added after the table's own sum */
               (b->unit == TABLE && a->unit == ROWS && next == b->micro_batch); /* and before its next one */
    case SLC_ITEM_GATHER_WINDOW:
        if (a->kind == SLC_ITEM_SLOT && next == b->micro_batch) { /* its memory, if it is the same, is in use until
                                                                     then, and the rows are not known before */
            bool same_place = slc_gathered_number(&m->job, mine, a->micro_batch, b->index) ==
                              slc_gathered_number(&m->job, mine, b->micro_batch, b->index);
            return (same_place && a->slot == window.last_slot) || (b->unit == ROWS && a->slot == 3);
        }
        return b->unit == ROWS && a->unit == ROWS && a->kind == SLC_ITEM_REDUCE_SCATTER && next == b->micro_batch;
    case SLC_ITEM_AGREE: return slc_is_reduction(a->kind) && a->micro_batch == b->micro_batch;
    case SLC_ITEM_GATHER_GRADIENT: return same && slc_is_reduction(a->kind);
    case SLC_ITEM_UPDATE:
        if (b->unit == TABLE && a->unit == ROWS)
            return a->kind == SLC_ITEM_REDUCE_SCATTER; /* the rows are added before the update */
        return (same && (slc_is_reduction(a->kind) || a->kind == SLC_ITEM_GATHER_GRADIENT)) ||
               (m->job.barrier && a->kind == SLC_ITEM_AGREE);
    case SLC_ITEM_GATHER_VALUE: return same && a->kind == SLC_ITEM_UPDATE;
    default: return false;
    }
}

static bool holds_rules(const made *m)
{
    for (uint32_t a = 0; a < m->count; a++)
        for (uint32_t b = 0; b < a; b++)
            if (in_front(m, &m->items[a], &m->items[b])) return false;
    return true;
}

static void swap(made *m, uint32_t a, uint32_t b)
{
    slc_item item = m->items[a];
    m->items[a] = m->items[b];
    m->items[b] = item;
}

/* Swaps neighbours a few times, but never two slots. */
static void stir(made *m, uint64_t seed, uint32_t swaps, bool only_good)
{
    for (uint32_t n = 0; n < swaps; n++) {
        uint32_t a = (uint32_t)slc_random_below(test_seed(seed), 1, n, m->count - 1);
        if (m->items[a].kind == SLC_ITEM_SLOT && m->items[a + 1].kind == SLC_ITEM_SLOT) continue;
        if (only_good && in_front(m, &m->items[a], &m->items[a + 1])) continue;
        swap(m, a, a + 1);
    }
}

static uint32_t draw(uint64_t seed, uint64_t what, uint32_t limit)
{
    return (uint32_t)slc_random_below(test_seed(seed), 2, what, limit);
}

static void draw_made(made *m, uint64_t seed)
{
    static const slc_strategy of_table[] = {SLC_OSS, SLC_SDP, SLC_FSDP};
    made_init(m, of_table[draw(seed, 0, 3)], 1 + draw(seed, 1, 4), draw(seed, 2, 2), draw(seed, 3, 2));
    m->strategies[LAYER] = (slc_strategy)draw(seed, 4, SLC_EXACT_STRATEGIES);
    m->job.barrier = draw(seed, 5, 2);
    for (uint32_t u = 0; u < UNITS; u++) m->units[u].dtype = draw(seed, 6, 2) ? SLUICE_BF16 : SLUICE_FP32;
    m->job.wire = draw(seed, 7, 2) ? SLUICE_BF16 : SLUICE_FP32;
    made_step(m);
    for (uint32_t i = 0; i < m->count; i++)
        m->items[i].on_compute = m->items[i].kind == SLC_ITEM_UPDATE && draw(seed, 8 + i, 2);
}

static void orders_are_judged_as_the_rules_say(void **state)
{
    (void)state;
    static made m;
    uint32_t good = 0;
    for (uint64_t seed = 0; seed < ORDERS; seed++) {
        draw_made(&m, seed);
        assert_true(holds_rules(&m));
        stir(&m, seed, 200, true);
        if (seed % 2) stir(&m, seed + ORDERS, 1 + (uint32_t)(seed / 2 % 3), false);
        bool rules = holds_rules(&m);
        good += rules;
        sluice_status status = validate(&m);
        if (rules != !status)
            fail_msg("seed %llu: the rules say %d, the validator %d: %s", (unsigned long long)seed, rules, status,
                     status ? sluice_last_error() : "");
    }
    assert_true(good > ORDERS / 2 && good < ORDERS - ORDERS / 20);
}

/* ---- One rule at a time ---- */

static void refused(made *m, const char *what)
{
    assert_int_equal(validate(m), SLUICE_ERR_FORMAT);
    if (!strstr(sluice_last_error(), what)) fail_msg("\"%s\" lacks \"%s\"", sluice_last_error(), what);
}

/* Moves an item; those in between move by one. */
static void move_item(made *m, uint32_t from, uint32_t to)
{
    for (; from > to; from--) swap(m, from, from - 1);
    for (; from < to; from++) swap(m, from, from + 1);
}

static void each_rule_is_told_by_its_items(void **state)
{
    (void)state;
    static made m;
    made_init(&m, SLC_SDP, 2, true, false);
    made_step(&m);
    static const struct {
        slc_item_kind kind;
        uint32_t m, unit;
        slc_item_kind before; /* the item is moved before this one */
        uint32_t before_m, before_unit;
        const char *error;
    } faults[] = {
        {SLC_ITEM_UPDATE, 1, TABLE, SLC_ITEM_REDUCE_SCATTER, 1, ROWS, "update, micro-batch 1, unit table, blocks 0"},
        {SLC_ITEM_GATHER_WINDOW, 1, ROWS, SLC_ITEM_SLOT, 0, 3, "gather_window, micro-batch 1, unit table.rows"},
        {SLC_ITEM_GATHER_WINDOW, 1, ROWS, SLC_ITEM_REDUCE_SCATTER, 0, ROWS,
         "gather_window, micro-batch 1, unit table.rows"},
        {SLC_ITEM_AGREE, 1, SLC_NONE, SLC_ITEM_REDUCE_SCATTER, 1, ROWS, "agree, micro-batch 1"},
    };
    for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
        made bad = m;
        uint32_t from = 0, to = made_find(&bad, faults[f].before, faults[f].before_m, faults[f].before_unit, 0);
        while (bad.items[from].kind != faults[f].kind || bad.items[from].micro_batch != faults[f].m ||
               bad.items[from].unit != faults[f].unit)
            from++;
        move_item(&bad, from, to);
        refused(&bad, faults[f].error);
        assert_non_null(strstr(sluice_last_error(), "may start before"));
    }
}

static void what_the_rows_wait_for_is_never_late(void **state)
{
    (void)state;
    static made m;
    static const struct {
        slc_item_kind kind;
        uint32_t unit;
    } never[] = {{SLC_ITEM_REDUCE_SCATTER, TABLE}, {SLC_ITEM_REDUCE_SCATTER, ROWS}, {SLC_ITEM_UPDATE, TABLE}};
    for (size_t n = 0; n < sizeof never / sizeof *never; n++) {
        made_init(&m, SLC_OSS, 1, false, false);
        made_step(&m);
        uint32_t item = made_find(&m, never[n].kind, 0, never[n].unit, 0);
        m.items[item].late = true;
        move_item(&m, item, 0);
        refused(&m, "cannot be late: the look-up's rows");
    }
    made_init(&m, SLC_OSS, 1, false, false);
    made_step(&m);
    for (uint64_t block = 0; block < BLOCKS; block += 2) {
        uint32_t item = made_find(&m, SLC_ITEM_GATHER_VALUE, 0, TABLE, block);
        m.items[item].late = true;
        move_item(&m, item, 0);
    }
    if (validate(&m)) fail_msg("%s", sluice_last_error());
}

/* ---- Memory ---- */

/* The sum of the other uses must stay until the update: it may not be released when only the rows' gradients are
 * added. */
static void the_partners_sum_stays_for_the_rows(void **state)
{
    (void)state;
    static made m;
    made_init(&m, SLC_FSDP, 1, false, false);
    made_step(&m);
    made_plan(&m);
    slc_program *train = &m.plan->train;
    uint32_t buffer = slc_plan_buffer(m.plan, SLC_BUFFER_REDUCED, TABLE, 0);
    uint32_t rows = made_find(&m, SLC_ITEM_REDUCE_SCATTER, 0, ROWS, 0);
    slc_claim *claim = train->claims;
    while (claim->buffer != buffer) claim++;
    uint32_t to = claim->to;
    claim->to = rows - 1;
    assert_int_equal(slc_plan_validate(&m.job, m.plan), SLUICE_ERR_FORMAT);
    assert_non_null(strstr(sluice_last_error(), "reduce_scatter, micro-batch 0, unit table.rows"));
    assert_non_null(strstr(sluice_last_error(), "not in memory from its writer on"));
    claim->to = to;
    assert_int_equal(slc_plan_validate(&m.job, m.plan), 0);
    slc_plan_destroy(m.plan);
}

static void lists_tables_and_gradients_have_their_size(void **state)
{
    (void)state;
    static const struct {
        slc_buffer_kind kind;
        const char *error;
    } of[] = {{SLC_BUFFER_ROW_LISTS, "row lists 0 of table.rows"},
              {SLC_BUFFER_GATHERED, "gathered value 0 of table.rows"},
              {SLC_BUFFER_GRADIENT, "gradient 0 of table.rows"}};
    static made m;
    made_init(&m, SLC_OSS, 2, false, false);
    made_step(&m);
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        made_plan(&m);
        m.plan->buffers[slc_plan_buffer(m.plan, of[k].kind, ROWS, 0)].bytes -= 4;
        assert_int_equal(slc_plan_validate(&m.job, m.plan), SLUICE_ERR_FORMAT);
        if (!strstr(sluice_last_error(), of[k].error)) fail_msg("%s", sluice_last_error());
        slc_plan_destroy(m.plan);
    }
}

/* ---- The compute lane ---- */

static void unwait(made *m, uint32_t item)
{
    m->plan->train.items[item].after_count = 0;
}

static void wait_for(made *m, uint32_t item, uint32_t other, bool previous)
{
    slc_item *waits = &m->plan->train.items[item];
    waits->after[waits->after_count++] = (slc_after){other, previous};
}

static bool valid(const made *m, const char *error)
{
    if (!slc_plan_validate(&m->job, m->plan)) return true;
    if (!strstr(sluice_last_error(), error)) fail_msg("\"%s\" lacks \"%s\"", sluice_last_error(), error);
    return false;
}

/* The compute lane runs in order, at the same time as the other lane: an item that follows an update on it finds the
 * update ended, all others must wait for it. */
static void updates_on_the_compute_lane_are_in_its_order(void **state)
{
    (void)state;
    static made m;
    for (int on_compute = 0; on_compute < 2; on_compute++) {
        made_init(&m, SLC_OSS, 1, false, false);
        m.strategies[LAYER] = SLC_DP;
        made_step(&m);
        for (uint32_t i = 0; i < m.count; i++) m.items[i].on_compute = on_compute && m.items[i].kind == SLC_ITEM_UPDATE;
        uint32_t update = made_find(&m, SLC_ITEM_UPDATE, 0, TABLE, 0),
                 gather = made_find(&m, SLC_ITEM_GATHER_VALUE, 0, TABLE, 0);
        uint32_t forward = made_find(&m, SLC_ITEM_SLOT, 0, 0, 0), head = made_find(&m, SLC_ITEM_SLOT, 0, 1, 0);
        made_plan(&m);
        unwait(&m, update);
        assert_int_equal(!valid(&m, "may start before reduce_scatter item"), on_compute);
        slc_plan_destroy(m.plan);
        made_plan(&m);
        unwait(&m, gather);
        assert_int_equal(!valid(&m, "may start before update item"), on_compute);
        slc_plan_destroy(m.plan);
        made_plan(
            &m); /* everything that the head's forward waits for comes before the update of its layer's own unit */
        uint32_t rows = made_find(&m, SLC_ITEM_GATHER_WINDOW, 0, ROWS, 0);
        unwait(&m, rows);
        unwait(&m, forward);
        unwait(&m, head);
        for (uint64_t block = 0; block < BLOCKS; block += 2) {
            wait_for(&m, rows, made_find(&m, SLC_ITEM_UPDATE, 0, TABLE, block), true);
            wait_for(&m, head, made_find(&m, SLC_ITEM_GATHER_VALUE, 0, TABLE, block), true);
        }
        wait_for(&m, forward, rows, false);
        if (!valid(&m, "")) fail_msg("%s", sluice_last_error());
        slc_plan_destroy(m.plan);
    }
}

static void rows_are_gathered_behind_the_partners_update(void **state)
{
    (void)state;
    static made m;
    made_init(&m, SLC_FSDP, 1, false, false);
    made_step(&m);
    for (uint32_t i = 0; i < m.count; i++) m.items[i].on_compute = m.items[i].kind == SLC_ITEM_UPDATE;
    for (uint64_t missing = 0; missing < BLOCKS; missing += 2) { /* leaves out one of the update's two runs */
        uint32_t rows = made_find(&m, SLC_ITEM_GATHER_WINDOW, 0, ROWS, 0);
        made_plan(&m);
        unwait(&m, rows);
        for (uint64_t block = 0; block < BLOCKS; block += 2)
            if (block != missing) wait_for(&m, rows, made_find(&m, SLC_ITEM_UPDATE, 0, TABLE, block), true);
        /* the second run comes after the first on its lane */
        assert_int_equal(!valid(&m, "unit table.rows, blocks 0 to 1): may start before update item"), missing == 2);
        slc_plan_destroy(m.plan);
    }
}

/* Late updates before the slot that needs them must be left out of a first pass and run by a drain. */
static void late_updates_may_be_on_the_compute_lane(void **state)
{
    (void)state;
    static made m;
    made_init(&m, SLC_OSS, 2, false, false);
    m.strategies[LAYER] = SLC_DP;
    m.units[LAYER].uses = m.units[ROWS].uses;
    made_step(&m);
    uint32_t update = made_find(&m, SLC_ITEM_UPDATE, 1, LAYER, 0), forward = made_find(&m, SLC_ITEM_SLOT, 0, 0, 0);
    m.items[update].late = m.items[update].on_compute = true;
    move_item(&m, update, 0);
    made_plan(&m);
    if (!valid(&m, "")) fail_msg("%s", sluice_last_error());
    unwait(&m, 0);
    assert_false(valid(&m, "may start before all_reduce item"));
    slc_plan_destroy(m.plan);
    move_item(&m, 0, forward + 1);
    refused(&m, "may start before update item");
}

static void only_updates_are_on_the_compute_lane(void **state)
{
    (void)state;
    static made m;
    made_init(&m, SLC_OSS, 1, true, false);
    made_step(&m);
    for (uint32_t i = 0; i < m.count; i++) {
        made bad = m;
        bad.items[i].on_compute = true;
        if (m.items[i].kind == SLC_ITEM_UPDATE)
            assert_int_equal(validate(&bad), 0);
        else
            refused(&bad, "is no update, but on the compute lane");
    }
}

/* ---- Jobs and strategies that cannot be ---- */

static void other_strategies_are_refused(void **state)
{
    (void)state;
    static made m;
    for (int k = 0; k < SLC_STRATEGIES; k++) {
        made_init(&m, (slc_strategy)k, 1, false, false);
        m.job.compressed = true;
        made_step(&m);
        if (k == SLC_DP || k == SLC_ONEBIT)
            refused(&m, "a parameter that is split by its uses is oss, sdp or fsdp");
        else
            assert_int_equal(validate(&m), 0);
        made_init(&m, SLC_OSS, 1, false, false);
        m.job.compressed = true;
        m.strategies[ROWS] = (slc_strategy)k;
        made_step(&m);
        if (k != SLC_FSDP) refused(&m, "unit table.rows is ");
    }
}

static void malformed_jobs_are_refused(void **state)
{
    (void)state;
    enum { CASES = 14 };
    static made m;
    made_init(&m, SLC_OSS, 1, false, false);
    made_step(&m);
    made_plan(&m);
    for (int c = 0; c < CASES; c++) {
        slc_unit units[UNITS], *table = &units[TABLE], *rows = &units[ROWS];
        slc_use twice[2] = {{0, true}, {1, true}};
        slc_job job = m.job;
        memcpy(units, m.units, sizeof units);
        job.units = units;
        const char *error = NULL;
        switch (c) {
        case 0:
            table->role = (slc_unit_role)7, error = "unit table cannot be planned for: there is no such role";
            break;
        case 1: table->partner = TABLE, error = "the next unit is not that of its rows"; break;
        case 2: rows->partner = LAYER, error = "the next unit is not that of its rows"; break;
        case 3: table->role = SLC_UNIT_WHOLE, error = "the unit before is not the one"; break;
        case 4: rows->role = SLC_UNIT_WHOLE, error = "the next unit is not that of its rows"; break;
        case 5: rows->row_elements = 0, error = "its rows are empty"; break;
        case 6: rows->row_count = 21, error = "longer than the unit"; break;
        case 7: rows->row_elements = UINT64_MAX / 2, error = "longer than the unit"; break;
        case 8: rows->most_rows = 0, error = "the most rows of a micro-batch are none"; break;
        case 9: rows->most_rows = 21, error = "or more than there are"; break;
        case 10: rows->most_rows = 6, error = "its length is not that of a table"; break;
        case 11: rows->block_elements = 64, error = "more than one block"; break;
        case 12: rows->trainable = false, error = "frozen where the unit"; break;
        default: rows->uses = twice, rows->use_count = 2, error = "it is one layer that looks rows up"; break;
        }
        assert_int_equal(slc_plan_validate(&job, m.plan), SLUICE_ERR_FORMAT);
        if (!strstr(sluice_last_error(), error)) fail_msg("case %d: %s", c, sluice_last_error());
    }
    slc_plan_destroy(m.plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(orders_are_judged_as_the_rules_say),
                                       cmocka_unit_test(each_rule_is_told_by_its_items),
                                       cmocka_unit_test(what_the_rows_wait_for_is_never_late),
                                       cmocka_unit_test(the_partners_sum_stays_for_the_rows),
                                       cmocka_unit_test(lists_tables_and_gradients_have_their_size),
                                       cmocka_unit_test(updates_on_the_compute_lane_are_in_its_order),
                                       cmocka_unit_test(rows_are_gathered_behind_the_partners_update),
                                       cmocka_unit_test(late_updates_may_be_on_the_compute_lane),
                                       cmocka_unit_test(only_updates_are_on_the_compute_lane),
                                       cmocka_unit_test(other_strategies_are_refused),
                                       cmocka_unit_test(malformed_jobs_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
