/* tests/engine/engine_test.c covers this file. */
#include "lib/engine/step/waits.h"

#include "lib/engine/state.h"

bool slc_pass_threshold(const sluice_runtime *rt, const slc_pass *pass, const slc_after *after, uint32_t *count)
{
    const slc_item *item = &pass->program->items[after->item];
    uint32_t which = after->previous ? 1 : 0;
    if (after->previous && !pass->has_previous) return false;
    uint32_t ordinal = pass->order[pass->kind[which]].ordinal[after->item];
    if (ordinal == SLC_NONE) return false;
    if (slc_is_message(item->kind))
        *count = pass->transfer_base[which][item->index] + (ordinal + 1) * rt->stage.transfers[item->index];
    else
        *count = (slc_on_compute_lane(item) ? pass->computed_base : pass->operation_base)[which] + ordinal + 1;
    return true;
}

uint32_t slc_pass_counts(sluice_runtime *rt, const slc_pass *pass, uint32_t item, slc_gate_count *counts)
{
    uint32_t count = 0;
    for (uint32_t a = 0; a < pass->program->items[item].after_count; a++) {
        const slc_after *after = &pass->program->items[item].after[a];
        const slc_item *before = &pass->program->items[after->item];
        if (!slc_pass_threshold(rt, pass, after, &counts[count].value)) continue;
        counts[count++].gate = slc_on_compute_lane(before)    ? &rt->lanes.computed
                               : slc_is_message(before->kind) ? slc_channel_completed(rt->stage.channels[before->index])
                                                              : slc_comm_completed(rt->lane);
    }
    return count;
}
