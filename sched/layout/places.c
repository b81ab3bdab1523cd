/* Finds slots and operations in an order: a table of the slots, a sorted list of the operations.
 * make_plan_test.c covers this file. */
#include "sched/layout/parts.h"

#include "lib/base/status.h"

#include <stdlib.h>

typedef struct {
    slc_item_kind kind;
    uint32_t micro_batch, unit, index;
} key;

static int compare_keys(const slc_item *a, const key *b)
{
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    if (a->micro_batch != b->micro_batch) return a->micro_batch < b->micro_batch ? -1 : 1;
    if (a->unit != b->unit) return a->unit < b->unit ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

static int compare_items(const void *a, const void *b)
{
    const slc_item *x = *(const slc_item *const *)a, *y = *(const slc_item *const *)b;
    int order = compare_keys(x, &(key){y->kind, y->micro_batch, y->unit, y->index});
    if (order) return order;
    if (x->first_block != y->first_block) return x->first_block < y->first_block ? -1 : 1;
    return (x > y) - (x < y);
}

sluice_status slc_places_init(slc_places *places, const slc_job *job, const slc_program *program)
{
    size_t slots = (size_t)job->micro_batches * slc_job_slots(job);
    *places = (slc_places){.program = program, .slots_per_micro_batch = slc_job_slots(job), .slot_count = slots};
    places->slots = malloc((slots + 1) * sizeof *places->slots);
    places->operations = malloc(((size_t)program->item_count + 1) * sizeof *places->operations);
    if (!places->slots || !places->operations) {
        slc_places_fini(places);
        return slc_error(SLUICE_ERR_MEMORY, "no memory for the places of %u items", program->item_count);
    }
    for (size_t s = 0; s < slots; s++) places->slots[s] = SLC_NONE;
    for (uint32_t i = 0; i < program->item_count; i++) {
        const slc_item *item = &program->items[i];
        size_t slot = (size_t)item->micro_batch * places->slots_per_micro_batch + item->slot;
        if (item->kind != SLC_ITEM_SLOT)
            places->operations[places->operation_count++] = item;
        else if (slot < slots)
            places->slots[slot] = i;
    }
    if (places->operation_count)
        qsort(places->operations, places->operation_count, sizeof *places->operations, compare_items);
    return SLUICE_OK;
}

void slc_places_fini(slc_places *places)
{
    free(places->operations);
    free(places->slots);
    *places = (slc_places){0};
}

uint32_t slc_find_slot(const slc_places *places, uint32_t micro_batch, uint32_t slot)
{
    size_t at = (size_t)micro_batch * places->slots_per_micro_batch + slot;
    return at < places->slot_count ? places->slots[at] : SLC_NONE;
}

slc_runs slc_find_runs(const slc_places *places, slc_item_kind kind, uint32_t micro_batch, uint32_t unit,
                       uint32_t index)
{
    key wanted = {kind, micro_batch, unit, index};
    size_t low = 0, high = places->operation_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (compare_keys(places->operations[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    slc_runs runs = {.items = places->operations + low};
    while (low + runs.count < places->operation_count && !compare_keys(runs.items[runs.count], &wanted)) runs.count++;
    return runs;
}
