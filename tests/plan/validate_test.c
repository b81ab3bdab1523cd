/* The validator on damaged plans, some of runs of blocks with late items and recomputation, some of whole units.
 * Whenever two lanes at random speeds can show harm, the validator must have refused the plan; and each kind of damage
 * must be refused often. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/support/sched/damaged_plan.h"
#include "tests/support/sched/two_lanes.h"
#include "tests/support/scale.h"

enum { PLANS = 180, RUNS = 6 };

/* Damages a plan; false: there is nothing to damage in it. */
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
    claim->to = test_below(dice, plan->train.item_count);
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

/* Repeats one block of an operation. */
static bool duplicate_block(slc_plan *plan, test_dice *dice)
{
    uint32_t twin = draw_operation(plan, dice);
    if (twin == SLC_NONE || plan->train.items[twin].kind == SLC_ITEM_AGREE) return false;
    insert_twin(plan, twin);
    plan->train.items[twin + 1].block_count = 1;
    return true;
}

/* Makes a claim hold other bytes, or only a part of its bytes. */
static bool shift_claim(slc_plan *plan, test_dice *dice)
{
    for (int attempt = 0; plan->train.claim_count && attempt < 20; attempt++) {
        slc_claim *claim = &plan->train.claims[test_below(dice, plan->train.claim_count)];
        uint64_t bytes = plan->buffers[claim->buffer].bytes, grain = 64 * (1 + (uint64_t)test_below(dice, 4));
        bool up = test_below(dice, 2), whole = test_below(dice, 2);
        if (up ? claim->end_byte + grain > bytes : claim->first_byte < grain) continue;
        if (whole || !up) claim->first_byte = up ? claim->first_byte + grain : claim->first_byte - grain;
        if (whole || up) claim->end_byte = up ? claim->end_byte + grain : claim->end_byte - grain;
        return true;
    }
    return false;
}

static bool change_lateness(slc_plan *plan, test_dice *dice)
{
    uint32_t i = draw_operation(plan, dice);
    if (i == SLC_NONE) return false;
    plan->train.items[i].late = !plan->train.items[i].late;
    return true;
}

/* Moves an update to the other lane. */
static bool change_lane(slc_plan *plan, test_dice *dice)
{
    for (int attempt = 0; attempt < 20; attempt++) {
        slc_item *item = draw_item(plan, dice);
        if (item->kind != SLC_ITEM_UPDATE || plan->strategies[item->unit] == SLC_ONEBIT) continue;
        item->on_compute = !item->on_compute;
        return true;
    }
    return false;
}

/* Makes an item wait for the previous pass instead of this one, or the other way round. */
static bool wait_elsewhen(slc_plan *plan, test_dice *dice)
{
    slc_item *item = draw_item(plan, dice);
    if (!item->after_count) return false;
    slc_after *after = &item->after[test_below(dice, item->after_count)];
    after->previous = !after->previous;
    return true;
}

static slc_item *next_run(slc_program *program, const slc_item *a)
{
    for (uint32_t k = 0; k < program->item_count; k++) {
        slc_item *b = &program->items[k];
        if (b->kind == a->kind && b->unit == a->unit && b->micro_batch == a->micro_batch && b->index == a->index &&
            b->first_block == a->first_block + a->block_count)
            return b;
    }
    return NULL;
}

/* Moves the border between two runs of one operation. */
static bool move_border(slc_plan *plan, test_dice *dice)
{
    for (int attempt = 0; attempt < 20; attempt++) {
        uint32_t i = draw_operation(plan, dice);
        if (i == SLC_NONE || plan->train.items[i].kind == SLC_ITEM_AGREE) continue;
        slc_item *a = &plan->train.items[i], *b = next_run(&plan->train, a);
        if (!b || b->block_count < 2) continue;
        a->block_count++;
        b->first_block++;
        b->block_count--;
        return true;
    }
    return false;
}

static bool change_recompute(slc_plan *plan, test_dice *dice)
{
    bool *recompute = &plan->recompute[test_below(dice, plan->layer_count)];
    *recompute = !*recompute;
    return true;
}

typedef struct {
    uint32_t damaged, refused, harmful;
} tally;

static void try_damage(damage harm, uint64_t seed, two_lanes *lanes, tally *count)
{
    static test_job t;
    test_dice dice = {.seed = seed};
    slc_plan *plan = plan_to_damage(&t, &dice);
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
    const uint32_t plans = test_brief() ? PLANS / 3 : PLANS;
    tally count = {0};
    for (uint64_t seed = 0; seed < plans; seed++) try_damage(harm, seed, lanes, &count);
    free(lanes);
    print_message("%u damaged, %u refused, %u seen to do harm\n", count.damaged, count.refused, count.harmful);
    assert_true(count.damaged > plans / 10);
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
DAMAGE_TEST(shift_claim)
DAMAGE_TEST(change_lateness)
DAMAGE_TEST(change_lane)
DAMAGE_TEST(wait_elsewhen)
DAMAGE_TEST(move_border)
DAMAGE_TEST(change_recompute)

/* ---- Damage that is always refused ---- */

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
        slc_plan *plan = plan_to_damage_of(&t, seed);
        plan->arena_bytes -= 64;
        refuses(&t.job, plan);

        plan = plan_to_damage_of(&t,
                                 seed); /* reading happens between steps: nothing runs, but resident memory is in use */
        uint32_t staging = slc_plan_buffer(plan, SLC_BUFFER_STAGING, SLC_NONE, 0);
        plan->buffers[staging].offset = plan->buffers[plan->statics[0].buffer].offset;
        if (plan->buffers[staging].bytes && plan->buffers[plan->statics[0].buffer].bytes)
            refuses(&t.job, plan);
        else
            slc_plan_destroy(plan);

        plan = plan_to_damage_of(&t, seed);
        plan->train.items[test_below(&(test_dice){.seed = seed}, plan->train.item_count)].kind = SLC_ITEM_KINDS;
        refuses(&t.job, plan);

        plan = plan_to_damage_of(&t, seed);
        plan->buffers[seed % plan->buffer_count].bytes /= 2;
        refuses(&t.job, plan);

        plan = plan_to_damage_of(&t, seed);
        plan->static_count--;
        refuses(&t.job, plan);
    }
}

static void recomputation_needs_leave(void **state)
{
    (void)state;
    static test_job t;
    uint32_t refused = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        slc_plan *plan = plan_to_damage_of(&t, seed);
        for (uint32_t l = 0; l < t.job.layer_count; l++)
            if (!t.job.can_recompute[l]) {
                plan->recompute[l] = true;
                assert_int_equal(slc_plan_validate(&t.job, plan), SLUICE_ERR_FORMAT);
                assert_non_null(strstr(sluice_last_error(), t.layers[l]));
                refused++;
                break;
            }
        slc_plan_destroy(plan);
    }
    assert_true(refused > 0);
}

/* ---- Changes that do no harm, and wild ones ---- */

static void split_claim(slc_program *program, uint32_t c, uint64_t byte)
{
    slc_claim *grown = realloc(program->claims, (program->claim_count + 1) * sizeof *grown);
    assert_non_null(grown);
    program->claims = grown;
    memmove(&grown[c + 1], &grown[c], (program->claim_count - c) * sizeof *grown);
    program->claim_count++;
    grown[c].end_byte = grown[c + 1].first_byte = byte;
}

static void wait_more(slc_program *program, uint32_t item, slc_after more)
{
    slc_item *i = &program->items[item];
    slc_after *grown = realloc(i->after, (i->after_count + 1) * sizeof *grown);
    assert_non_null(grown);
    i->after = grown;
    i->after[i->after_count++] = more;
}

/* The validator must accept a plan in which more claims hold the same bytes, or items wait for any earlier ones. */
static void harmless_changes_are_accepted(void **state)
{
    (void)state;
    static test_job t;
    two_lanes *lanes = malloc(sizeof *lanes);
    assert_non_null(lanes);
    for (uint64_t seed = 0; seed < 150; seed++) {
        test_dice dice = {.seed = seed};
        slc_plan *plan = plan_to_damage_of(&t, seed);
        for (int n = 0; plan->train.claim_count && n < 8; n++) {
            uint32_t c = test_below(&dice, plan->train.claim_count);
            slc_claim claim = plan->train.claims[c];
            split_claim(&plan->train, c,
                        claim.first_byte + test_below(&dice, (uint32_t)(claim.end_byte - claim.first_byte)));
        }
        for (int n = 0; n < 4; n++) {
            uint32_t i = 1 + test_below(&dice, plan->train.item_count - 1);
            wait_more(&plan->train, i, (slc_after){test_below(&dice, i), false});
            wait_more(&plan->train, i, (slc_after){test_below(&dice, plan->train.item_count), true});
        }
        if (slc_plan_validate(&t.job, plan)) fail_msg("job %llu: %s", (unsigned long long)seed, sluice_last_error());
        two_lanes_run(lanes, &t.job, plan, seed);
        if (lanes->error[0]) fail_msg("job %llu: %s", (unsigned long long)seed, lanes->error);
        slc_plan_destroy(plan);
    }
    free(lanes);
}

static uint64_t wild(test_dice *dice, uint64_t value)
{
    switch (test_below(dice, 6)) {
    case 0: return 0;
    case 1: return UINT64_MAX;
    case 2: return value + 1;
    case 3: return value - 1;
    case 4: return UINT64_MAX / 2 + test_below(dice, 9);
    default: return test_below(dice, 40);
    }
}

static void make_wild(slc_plan *plan, test_dice *dice)
{
    slc_program *program = test_below(dice, 4) ? &plan->train : &plan->evaluate;
    slc_item *item = &program->items[test_below(dice, program->item_count)];
    slc_buffer *buffer = &plan->buffers[test_below(dice, plan->buffer_count)];
    slc_claim *claim = program->claim_count ? &program->claims[test_below(dice, program->claim_count)] : NULL;
    slc_claim *fixed = &plan->statics[test_below(dice, plan->static_count)];
    switch (test_below(dice, 16)) {
    case 0: item->kind = (slc_item_kind)wild(dice, item->kind); break;
    case 1: item->micro_batch = (uint32_t)wild(dice, item->micro_batch); break;
    case 2: item->slot = (uint32_t)wild(dice, item->slot); break;
    case 3: item->unit = (uint32_t)wild(dice, item->unit); break;
    case 4: item->index = (uint32_t)wild(dice, item->index); break;
    case 5: item->first_block = wild(dice, item->first_block); break;
    case 6: item->block_count = wild(dice, item->block_count); break;
    case 7:
        wait_more(program, (uint32_t)(item - program->items), (slc_after){(uint32_t)wild(dice, 0), wild(dice, 0) & 1});
        break;
    case 8: buffer->kind = (slc_buffer_kind)wild(dice, buffer->kind); break;
    case 9: buffer->unit = (uint32_t)wild(dice, buffer->unit); break;
    case 10: buffer->offset = wild(dice, buffer->offset); break;
    case 11: buffer->bytes = wild(dice, buffer->bytes); break;
    case 12: fixed->buffer = (uint32_t)wild(dice, fixed->buffer); break;
    case 13:
        if (plan->unit_count) plan->strategies[test_below(dice, plan->unit_count)] = (slc_strategy)wild(dice, 0);
        break;
    case 14:
        if (claim) claim->buffer = (uint32_t)wild(dice, claim->buffer);
        if (claim) claim->to = (uint32_t)wild(dice, claim->to);
        break;
    default:
        if (claim) claim->end_byte = wild(dice, claim->end_byte);
        if (claim) claim->first_byte = wild(dice, claim->first_byte);
        break;
    }
}

/* Plans also come from files, so the validator must cope with any numbers in them. */
static void wild_numbers_are_judged(void **state)
{
    (void)state;
    static test_job t;
    uint32_t refused = 0;
    for (uint64_t seed = 0; seed < 1500; seed++) {
        test_dice dice = {.seed = ~seed};
        slc_plan *plan = plan_to_damage_of(&t, seed % 100);
        for (uint32_t n = 1 + test_below(&dice, 3); n > 0; n--) make_wild(plan, &dice);
        sluice_status status = slc_plan_validate(&t.job, plan);
        assert_true(status == SLUICE_OK || status == SLUICE_ERR_FORMAT);
        refused += status != SLUICE_OK;
        slc_plan_destroy(plan);
    }
    assert_true(refused > 750);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drop_wait),
        cmocka_unit_test(test_swap_items),
        cmocka_unit_test(test_shorten_claim),
        cmocka_unit_test(test_end_claim_elsewhere),
        cmocka_unit_test(test_move_offset),
        cmocka_unit_test(test_drop_claim),
        cmocka_unit_test(test_drop_operation),
        cmocka_unit_test(test_move_blocks),
        cmocka_unit_test(test_duplicate_block),
        cmocka_unit_test(test_shift_claim),
        cmocka_unit_test(test_change_lateness),
        cmocka_unit_test(test_change_lane),
        cmocka_unit_test(test_wait_elsewhen),
        cmocka_unit_test(test_move_border),
        cmocka_unit_test(test_change_recompute),
        cmocka_unit_test(always_refused),
        cmocka_unit_test(recomputation_needs_leave),
        cmocka_unit_test(harmless_changes_are_accepted),
        cmocka_unit_test(wild_numbers_are_judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
