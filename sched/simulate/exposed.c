/* Looks at the gaps between the items of the compute lane, and at which of an item's waits was the last to be over.
 * tests/command/plan/plan_tools_test.sh covers this file. */
#include "sched/simulate/exposed.h"

typedef struct {
    uint32_t item;
    bool previous;
    double over_s;
} last_wait;

static void look_at(last_wait *last, const slc_item_times *items, double step_s, uint32_t item, bool previous)
{
    double over_s = items[item].over_s - (previous ? step_s : 0);
    if (last->item == SLC_NONE || over_s > last->over_s) *last = (last_wait){item, previous, over_s};
}

/* Finds the wait that was over last, among those that the plan gives the slot, and for a pass's first slot also among
 * the operations that end the previous pass. */
static last_wait find_cause(const slc_program *program, const slc_item_times *items, double step_s, uint32_t slot,
                            bool first)
{
    last_wait last = {.item = SLC_NONE};
    const slc_item *item = &program->items[slot];
    for (uint32_t a = 0; a < item->after_count; a++)
        if (!slc_on_compute_lane(&program->items[item->after[a].item]))
            look_at(&last, items, step_s, item->after[a].item, item->after[a].previous);
    for (uint32_t i = 0; first && i < program->item_count; i++)
        if (program->items[i].kind == SLC_ITEM_AGREE || program->items[i].late) look_at(&last, items, step_s, i, true);
    return last;
}

/* Finds the operation that runs longest between the two times. Operations of a pass may run in the time of the next
 * one, so each is looked at in three passes. */
static uint32_t find_busy(const slc_program *program, const slc_item_times *items, double step_s, double from_s,
                          double to_s)
{
    uint32_t busy = SLC_NONE;
    double most_s = 0;
    for (uint32_t i = 0; i < program->item_count; i++) {
        if (slc_on_compute_lane(&program->items[i])) continue;
        for (int pass = -1; pass <= 1; pass++) {
            double start_s = items[i].start_s + pass * step_s, end_s = items[i].end_s + pass * step_s;
            double both_s = (end_s < to_s ? end_s : to_s) - (start_s > from_s ? start_s : from_s);
            if (both_s <= most_s) continue;
            most_s = both_s;
            busy = i;
        }
    }
    return busy;
}

static uint32_t last_slot(const slc_program *program)
{
    uint32_t i = program->item_count;
    while (i > 0 && !slc_on_compute_lane(&program->items[i - 1])) i--;
    return i ? i - 1 : SLC_NONE;
}

uint32_t slc_exposures(const slc_plan *plan, const slc_item_times *items, const slc_forecast *forecast,
                       slc_exposure *out)
{
    const double step_s = forecast->step_s;
    const slc_program *program = &plan->train;
    uint32_t count = 0, last = last_slot(program);
    if (last == SLC_NONE) return 0;
    double free_s = items[last].end_s - step_s + forecast->outside_s;
    bool first = true;
    for (uint32_t i = 0; i < program->item_count; i++) {
        if (!slc_on_compute_lane(&program->items[i])) continue;
        if (items[i].start_s - free_s > 1e-9 * step_s) {
            last_wait cause = find_cause(program, items, step_s, i, first);
            uint32_t busy = find_busy(program, items, step_s, free_s, items[i].start_s);
            out[count++] = (slc_exposure){i, cause.item, cause.previous, busy, free_s, items[i].start_s};
        }
        free_s = items[i].end_s;
        first = false;
    }
    return count;
}
