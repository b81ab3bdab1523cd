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

static bool list_users(slc_places *places, const slc_job *job)
{
    size_t uses = 0;
    for (uint32_t u = 0; u < job->unit_count; u++) uses += job->units[u].use_count;
    places->users = malloc((uses + 1) * sizeof *places->users);
    uint32_t *first = places->first_user = calloc((size_t)job->layer_count + 2, sizeof *first);
    if (!places->users || !first) return false;
    for (uint32_t u = 0; u < job->unit_count; u++)
        for (uint32_t i = 0; i < job->units[u].use_count; i++) first[job->units[u].uses[i].layer + 2]++;
    for (uint32_t l = 0; l < job->layer_count; l++) first[l + 2] += first[l + 1];
    for (uint32_t u = 0; u < job->unit_count; u++)
        for (uint32_t i = 0; i < job->units[u].use_count; i++)
            places->users[first[job->units[u].uses[i].layer + 1]++] = u;
    return true;
}

sluice_status slc_places_init(slc_places *places, const slc_job *job, const slc_program *program)
{
    size_t slots = (size_t)job->micro_batches * slc_job_slots(job);
    *places = (slc_places){.program = program, .slots_per_micro_batch = slc_job_slots(job), .slot_count = slots};
    places->slots = malloc((slots + 1) * sizeof *places->slots);
    places->operations = malloc(((size_t)program->item_count + 1) * sizeof *places->operations);
    if (!places->slots || !places->operations || !list_users(places, job)) {
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
    free(places->first_user);
    free(places->users);
    free(places->operations);
    free(places->slots);
    *places = (slc_places){0};
}

uint32_t slc_find_slot(const slc_places *places, uint32_t micro_batch, uint32_t slot)
{
    size_t at = (size_t)micro_batch * places->slots_per_micro_batch + slot;
    return at < places->slot_count ? places->slots[at] : SLC_NONE;
}

/* Counts the operations before the first one with this key that begins at the block or behind it. */
static size_t count_before(const slc_places *places, const key *wanted, uint64_t block)
{
    size_t low = 0, high = places->operation_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const slc_item *item = places->operations[middle];
        int order = compare_keys(item, wanted);
        if (order < 0 || (!order && item->first_block < block))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

slc_runs slc_find_runs(const slc_places *places, slc_item_kind kind, uint32_t micro_batch, uint32_t unit,
                       uint32_t index)
{
    const key wanted = {kind, micro_batch, unit, index};
    const size_t first = count_before(places, &wanted, 0);
    return (slc_runs){places->operations + first, count_before(places, &wanted, UINT64_MAX) - first};
}

slc_runs slc_find_sharing(const slc_places *places, slc_item_kind kind, uint32_t micro_batch, const slc_item *mine)
{
    const key wanted = {kind, micro_batch, mine->unit, 0};
    size_t first = count_before(places, &wanted, mine->first_block);
    const size_t end = count_before(places, &wanted, mine->first_block + mine->block_count);
    const slc_item *before = first ? places->operations[first - 1] : NULL;
    if (before && !compare_keys(before, &wanted) && slc_share_blocks(before, mine)) first--;
    return (slc_runs){places->operations + first, end > first ? end - first : 0};
}
