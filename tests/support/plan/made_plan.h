/* Plans made item by item, for tests that need a split tied parameter or updates on the compute lane and must know
 * every item: a table is looked up in layer 0 and used by the head in layer 1, which has a unit of its own too. The
 * order is serial, each item waits for the one before it, and no two buffers share an address. */
#pragma once

#include "lib/plan/plan.h"

enum { TABLE, ROWS, LAYER, UNITS, MADE_LAYERS = 2, MADE_ITEMS = 128, BLOCKS = 3 };

typedef struct {
    slc_job job;
    slc_unit units[UNITS];
    slc_strategy strategies[UNITS];
    slc_item items[MADE_ITEMS];
    uint32_t count;
    slc_plan *plan;
} made;

void made_init(made *m, slc_strategy table, uint32_t micro_batches, bool each, bool backward);

/* Appends the items of a step, in an order that holds every rule. A test may change them before made_plan. */
void made_step(made *m);

/* The item that has the block of the unit; with SLC_ITEM_SLOT `unit` is the slot. Fails if there is none. */
uint32_t made_find(const made *m, slc_item_kind kind, uint32_t micro_batch, uint32_t unit, uint64_t block);

/* Makes m->plan of the items, which the caller destroys. */
void made_plan(made *m);
