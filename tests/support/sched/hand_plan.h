/* Plans of a few items, put together by hand, whose steps can be worked out by hand too. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/status.h"
#include "sched/simulate/simulate.h"

#include <math.h>

#define HAND_PLAN static inline __attribute__((unused))

enum { LAYERS = 2, UNITS = 4, ITEMS = 24, WAITS = 4, BLOCK = 32 };

/* Two ranks and a link on which a block takes a second in either direction; an update of a block takes a second too. */
typedef struct {
    slc_job job;
    slc_unit units[UNITS];
    slc_use use;
    slc_strategy strategies[UNITS];
    double slots[2 * LAYERS], recompute_s[LAYERS];
    bool recompute[LAYERS];
    slc_times times;
    slc_item items[ITEMS];
    slc_after after[ITEMS][WAITS];
    slc_plan plan;
} hand;

HAND_PLAN void hand_init(hand *h, double f0, double f1, double b1, double b0)
{
    *h = (hand){.job = {.world = 2, .micro_batches = 1, .layer_count = LAYERS, .unit_count = UNITS},
                .use = {0, true},
                .slots = {f0, f1, b1, b0},
                .recompute_s = {100, 10}};
    for (int u = 0; u < UNITS; u++) {
        h->units[u] = (slc_unit){"unit", 8 * BLOCK, BLOCK, SLUICE_FP32, true, &h->use, .use_count = 1};
        h->strategies[u] = SLC_OSS;
    }
    h->job.units = h->units;
    h->times = (slc_times){.slot_s = h->slots,
                           .recompute_s = h->recompute_s,
                           .update_s_per_element = 2.0 / BLOCK,
                           .link = {.reduce_scatter = {0, 2.0 * BLOCK}, .all_gather = {0, 2.0 * BLOCK}, .sigma = 1}};
    h->plan = (slc_plan){.strategies = h->strategies,
                         .unit_count = UNITS,
                         .recompute = h->recompute,
                         .layer_count = LAYERS,
                         .train = {.items = h->items}};
}

HAND_PLAN uint32_t put(hand *h, slc_item item)
{
    uint32_t number = h->plan.train.item_count++;
    h->items[number] = item;
    h->items[number].after = h->after[number];
    return number;
}

HAND_PLAN uint32_t put_slot(hand *h, uint32_t slot)
{
    return put(h, (slc_item){.kind = SLC_ITEM_SLOT, .slot = slot, .unit = SLC_NONE});
}

HAND_PLAN uint32_t put_run(hand *h, slc_item_kind kind, uint32_t unit, uint32_t blocks)
{
    return put(h, (slc_item){.kind = kind, .unit = unit, .block_count = blocks});
}

HAND_PLAN void put_wait(hand *h, uint32_t item, uint32_t before, bool previous)
{
    h->after[item][h->items[item].after_count++] = (slc_after){before, previous};
}

HAND_PLAN slc_forecast forecast(const hand *h, slc_item_times *items)
{
    slc_forecast f = {0};
    if (slc_simulate_items(&h->job, &h->times, &h->plan, NULL, &f, items)) fail_msg("%s", sluice_last_error());
    assert_true(f.steady);
    return f;
}

HAND_PLAN void check(double wanted, double got)
{
    if (!(fabs(wanted - got) <= 1e-9 * fmax(1, fabs(wanted)))) fail_msg("%.12g, expected %.12g", got, wanted);
}

HAND_PLAN void check_times(const slc_item_times *times, double start_s, double end_s)
{
    check(start_s, times->start_s);
    check(end_s, times->end_s);
}
