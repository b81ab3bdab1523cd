/* The validator against damaged plans. Whatever harm two lanes at random speeds can show, the validator must have
 * refused; and it must not be idle: each kind of damage is refused often. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "sched/scheduler.h"
#include "sched/two_lanes_test.h"

enum { PLANS = 250, RUNS = 6 };

/* Damages a plan; false: nothing to damage here. */
typedef bool (*damage)(slc_plan *plan, test_dice *dice);

static slc_item *draw_item(slc_plan *plan, test_dice *dice)
{
    return &plan->train.items[test_below(dice, plan->train.item_count)];
}

static bool drop_wait(slc_plan *plan, test_dice *dice)
{
    slc_item *item = draw_item(plan, dice);
    if (!item->after_count) return false;
    item->after[test_below(dice, item->after_count)] = item->after[item->after_count - 1];
    item->after_count--;
    return true;
}

static bool swap_items(slc_plan *plan, test_dice *dice)
{
    slc_item *a = draw_item(plan, dice), *b = draw_item(plan, dice);
    slc_item kept = *a;
    *a = *b;
    *b = kept;
    return a != b;
}

static bool shorten_claim(slc_plan *plan, test_dice *dice)
{
    if (!plan->train.claim_count) return false;
    slc_claim *claim = &plan->train.claims[test_below(dice, plan->train.claim_count)];
    switch (test_below(dice, 3)) {
    case 0:
        if (claim->from == claim->to) return false;
        claim->to--;
        return true;
    case 1:
        if (claim->from == claim->to) return false;
        claim->from++;
        return true;
    default: claim->end_byte -= 4; return true;
    }
}

static bool end_claim_elsewhere(slc_plan *plan, test_dice *dice)
{
    if (!plan->train.claim_count) return false;
    slc_claim *claim = &plan->train.claims[test_below(dice, plan->train.claim_count)];
    uint32_t before = claim->to;
    claim->to = claim->from + test_below(dice, plan->train.item_count - claim->from);
    return claim->to != before;
}

static bool move_offset(slc_plan *plan, test_dice *dice)
{
    slc_buffer *buffer = &plan->buffers[test_below(dice, plan->buffer_count)];
    uint64_t before = buffer->offset;
    buffer->offset = 64 * (uint64_t)test_below(dice, (uint32_t)(plan->arena_bytes / 64));
    return buffer->offset != before && buffer->offset + buffer->bytes <= plan->arena_bytes;
}

static bool drop_claim(slc_plan *plan, test_dice *dice)
{
    slc_program *train = &plan->train;
    if (!train->claim_count) return false;
    uint32_t c = test_below(dice, train->claim_count--);
    memmove(&train->claims[c], &train->claims[c + 1], (train->claim_count - c) * sizeof *train->claims);
    return true;
}

static uint32_t draw_operation(slc_plan *plan, test_dice *dice)
{
    uint32_t i = test_below(dice, plan->train.item_count);
    return plan->train.items[i].kind == SLC_ITEM_SLOT ? SLC_NONE : i;
}

static bool drop_operation(slc_plan *plan, test_dice *dice)
{
    slc_program *train = &plan->train;
    uint32_t gone = draw_operation(plan, dice);
    if (gone == SLC_NONE || gone + 1 == train->item_count || !gone) return false;
    free(train->items[gone].after);
    train->item_count--;
    memmove(&train->items[gone], &train->items[gone + 1], (train->item_count - gone) * sizeof *train->items);
    for (uint32_t i = 0; i < train->item_count; i++)
        for (uint32_t a = 0; a < train->items[i].after_count; a++)
            train->items[i].after[a].item -= train->items[i].after[a].item >= gone && train->items[i].after[a].item > 0;
    for (uint32_t c = 0; c < train->claim_count; c++) {
        train->claims[c].from -= train->claims[c].from > gone;
        train->claims[c].to -=
            train->claims[c].to > gone || (train->claims[c].to == gone && gone > train->claims[c].from);
    }
    return true;
}

static bool move_blocks(slc_plan *plan, test_dice *dice)
{
    uint32_t i = draw_operation(plan, dice);
    if (i == SLC_NONE || plan->train.items[i].kind == SLC_ITEM_AGREE) return false;
    if (test_below(dice, 2))
        plan->train.items[i].block_count--;
    else
        plan->train.items[i].first_block++;
    return true;
}

/* One block of an operation once more, right behind it. */
static bool duplicate_block(slc_plan *plan, test_dice *dice)
{
    slc_program *train = &plan->train;
    uint32_t twin = draw_operation(plan, dice);
    if (twin == SLC_NONE || train->items[twin].kind == SLC_ITEM_AGREE) return false;
    slc_item *grown = realloc(train->items, (train->item_count + 1) * sizeof *grown);
    assert_non_null(grown);
    slc_after *after = malloc((grown[twin].after_count + 1) * sizeof *after);
    assert_non_null(after);
    train->items = grown;
    memmove(&grown[twin + 1], &grown[twin], (train->item_count - twin) * sizeof *grown);
    train->item_count++;
    memcpy(after, grown[twin].after, grown[twin].after_count * sizeof *after);
    grown[twin + 1].after = after;
    grown[twin + 1].block_count = 1;
    for (uint32_t i = 0; i < train->item_count; i++)
        for (uint32_t a = 0; a < grown[i].after_count; a++) grown[i].after[a].item += grown[i].after[a].item > twin;
    for (uint32_t c = 0; c < train->claim_count; c++) {
        train->claims[c].from += train->claims[c].from > twin;
        train->claims[c].to += train->claims[c].to >= twin;
    }
    return true;
}

typedef struct {
    uint32_t damaged, refused, harmful;
} tally;

static void try_damage(damage harm, uint64_t seed, two_lanes *lanes, tally *count)
{
    static test_job t;
    test_dice dice = {.seed = seed};
    slc_strategy strategies[TEST_UNITS];
    slc_plan *plan;
    test_job_draw(&t, &dice);
    test_strategies_draw(&t.job, &dice, strategies);
    assert_int_equal(slc_plan_make(&(slc_scheduling){.job = &t.job, .strategies = strategies, .limit = UINT64_MAX},
                                   slc_scheduler_at(seed % 2), &plan),
                     SLUICE_OK);
    if (harm(plan, &dice)) {
        bool refused = slc_plan_validate(&t.job, plan) != SLUICE_OK, harmful = false;
        for (uint64_t run = 0; run < RUNS && !harmful; run++) {
            two_lanes_run(lanes, &t.job, plan, seed * RUNS + run);
            harmful = lanes->error[0];
        }
        if (harmful && !refused) fail_msg("job %llu: accepted, but %s", (unsigned long long)seed, lanes->error);
        count->damaged++;
        count->refused += refused;
        count->harmful += harmful;
    }
    slc_plan_destroy(plan);
}

static void check_damage(damage harm)
{
    two_lanes *lanes = malloc(sizeof *lanes);
    assert_non_null(lanes);
    tally count = {0};
    for (uint64_t seed = 0; seed < PLANS; seed++) try_damage(harm, seed, lanes, &count);
    free(lanes);
    print_message("%u damaged, %u refused, %u seen to do harm\n", count.damaged, count.refused, count.harmful);
    assert_true(count.damaged > PLANS / 10);
    assert_true(count.harmful > count.damaged / 20);
}

#define DAMAGE_TEST(name)                                                                                              \
    static void test_##name(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        check_damage(name);                                                                                            \
    }
DAMAGE_TEST(drop_wait)
DAMAGE_TEST(swap_items)
DAMAGE_TEST(shorten_claim)
DAMAGE_TEST(end_claim_elsewhere)
DAMAGE_TEST(move_offset)
DAMAGE_TEST(drop_claim)
DAMAGE_TEST(drop_operation)
DAMAGE_TEST(move_blocks)
DAMAGE_TEST(duplicate_block)

/* ---- Damage that is always refused ---- */

static slc_plan *some_plan(test_job *t, uint64_t seed)
{
    slc_strategy strategies[TEST_UNITS];
    slc_plan *plan;
    test_dice dice = {.seed = seed};
    test_job_draw(t, &dice);
    test_strategies_draw(&t->job, &dice, strategies);
    assert_int_equal(slc_plan_make(&(slc_scheduling){.job = &t->job, .strategies = strategies, .limit = UINT64_MAX},
                                   &slc_scheduler_one_ahead, &plan),
                     SLUICE_OK);
    return plan;
}

static void refuses(const slc_job *job, slc_plan *plan)
{
    assert_int_equal(slc_plan_validate(job, plan), SLUICE_ERR_FORMAT);
    slc_plan_destroy(plan);
}

static void always_refused(void **state)
{
    (void)state;
    static test_job t;
    for (uint64_t seed = 0; seed < 60; seed++) {
        slc_plan *plan = some_plan(&t, seed);
        plan->arena_bytes -= 64;
        refuses(&t.job, plan);

        plan = some_plan(&t, seed); /* a moment between steps: nothing runs, but resident memory is there */
        uint32_t staging = slc_plan_buffer(plan, SLC_BUFFER_STAGING, SLC_NONE, 0);
        plan->buffers[staging].offset = plan->buffers[plan->statics[0].buffer].offset;
        if (plan->buffers[staging].bytes && plan->buffers[plan->statics[0].buffer].bytes)
            refuses(&t.job, plan);
        else
            slc_plan_destroy(plan);

        plan = some_plan(&t, seed);
        plan->train.items[test_below(&(test_dice){.seed = seed}, plan->train.item_count)].kind = SLC_ITEM_KINDS;
        refuses(&t.job, plan);

        plan = some_plan(&t, seed);
        plan->buffers[seed % plan->buffer_count].bytes /= 2;
        refuses(&t.job, plan);

        plan = some_plan(&t, seed);
        plan->static_count--;
        refuses(&t.job, plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drop_wait),       cmocka_unit_test(test_swap_items),
        cmocka_unit_test(test_shorten_claim),   cmocka_unit_test(test_end_claim_elsewhere),
        cmocka_unit_test(test_move_offset),     cmocka_unit_test(test_drop_claim),
        cmocka_unit_test(test_drop_operation),  cmocka_unit_test(test_move_blocks),
        cmocka_unit_test(test_duplicate_block), cmocka_unit_test(always_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
