/* Windows and gradient slots must be those that a walk over all slots finds. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/plan/roles.h"

#include <string.h>

enum { LAYERS = 5, SLOTS = 2 * LAYERS };

typedef struct {
    slc_job job;
    slc_unit unit;
    slc_use uses[LAYERS];
    bool reads[SLOTS], adds[SLOTS];
} unit_case;

/* The bits of `draw` say which layers use the unit, and which of them read its value in backward. False: no layer
 * does. */
static bool unit_case_init(unit_case *c, uint32_t draw)
{
    memset(c, 0, sizeof *c);
    c->job.layer_count = LAYERS;
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        if (!(draw >> layer & 1)) continue;
        bool backward = draw >> (LAYERS + layer) & 1;
        c->uses[c->unit.use_count++] = (slc_use){layer, backward};
        c->reads[layer] = true;
        c->reads[SLOTS - 1 - layer] = backward;
        c->adds[SLOTS - 1 - layer] = true;
    }
    c->unit.uses = c->uses;
    return c->unit.use_count;
}

static void windows_are_the_runs_of_slots_that_read(void **state)
{
    (void)state;
    for (uint32_t draw = 0; draw < 1u << (2 * LAYERS); draw++) {
        unit_case c;
        if (!unit_case_init(&c, draw)) continue;
        for (int with_backward = 0; with_backward < 2; with_backward++) {
            uint32_t slots = with_backward ? SLOTS : LAYERS, window = 0;
            slc_window got;
            for (uint32_t s = 0; s < slots; s++) {
                if (!c.reads[s] || (s && c.reads[s - 1])) continue;
                uint32_t last = s;
                while (last + 1 < slots && c.reads[last + 1]) last++;
                assert_true(slc_unit_window(&c.job, &c.unit, with_backward, window++, &got));
                assert_int_equal(got.first_slot, s);
                assert_int_equal(got.last_slot, last);
            }
            assert_false(slc_unit_window(&c.job, &c.unit, with_backward, window, &got));
        }
    }
}

static void gradient_slots_are_the_first_and_last_that_add(void **state)
{
    (void)state;
    for (uint32_t draw = 0; draw < 1u << (2 * LAYERS); draw++) {
        unit_case c;
        if (!unit_case_init(&c, draw)) continue;
        uint32_t first, last, want_first = SLOTS, want_last = 0;
        for (uint32_t s = 0; s < SLOTS; s++) {
            if (!c.adds[s]) continue;
            if (want_first == SLOTS) want_first = s;
            want_last = s;
        }
        slc_unit_gradient_slots(&c.job, &c.unit, &first, &last);
        assert_int_equal(first, want_first);
        assert_int_equal(last, want_last);
    }
}

static void names_go_both_ways(void **state)
{
    (void)state;
    for (int k = 0; k < SLC_EXACT_STRATEGIES; k++) {
        slc_strategy parsed;
        assert_true(slc_strategy_parse(slc_strategy_name((slc_strategy)k), &parsed));
        assert_int_equal(parsed, k);
    }
    slc_strategy untouched = SLC_FSDP;
    assert_false(slc_strategy_parse("fsdp2", &untouched));
    assert_false(slc_strategy_parse("", &untouched));
    assert_int_equal(untouched, SLC_FSDP);
}

/* A unit gets the strategy that was asked for if it may have it, else the nearest one. */
static void strategies_are_those_that_a_unit_may_be(void **state)
{
    (void)state;
    static const slc_strategy split[] = {SLC_OSS, SLC_OSS, SLC_SDP, SLC_FSDP, SLC_OSS};
    for (int compressed = 0; compressed < 2; compressed++)
        for (int trainable = 0; trainable < 2; trainable++)
            for (int k = 0; k < SLC_STRATEGIES; k++) {
                slc_job job = {.world = 2, .compressed = compressed};
                slc_strategy asked = (slc_strategy)k;
                bool exchanges = asked == SLC_ONEBIT && !(compressed && trainable);
                slc_strategy want[] = {exchanges ? SLC_DP : asked, split[k], SLC_FSDP};
                for (int role = SLC_UNIT_WHOLE; role <= SLC_UNIT_ROWS; role++) {
                    slc_unit unit = {.trainable = trainable, .role = (slc_unit_role)role};
                    assert_int_equal(slc_unit_strategy(&job, &unit, asked), want[role]);
                    assert_int_equal(slc_unit_may_be(&job, &unit, asked), want[role] == asked);
                }
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_the_runs_of_slots_that_read),
        cmocka_unit_test(gradient_slots_are_the_first_and_last_that_add),
        cmocka_unit_test(names_go_both_ways),
        cmocka_unit_test(strategies_are_those_that_a_unit_may_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
