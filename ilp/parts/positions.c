/* The legal positions that a family may use, its windows. Only one gap is of use, the one that holds least memory
 * (after the last gradient slot for a reduction, before the first use for a gather), because waiting costs the same in
 * any gap. If no gap always holds least, the first and the last gap are offered, or all. Slots are offered near that
 * gap and then at growing distances ("geo2"), or all. If overlap saves nothing (kappa >= 1), only gaps are left.
 * ilp/slot_model_test.c covers this file. */
#include "ilp/parts/slot_parts.h"

enum { DENSE = 6 }; /* offsets before the distances grow */
/* All positions are offered up to this product of units and slots. */
enum { FEW = 1500 };

/* True if a family is drawn to the first end of its range, false if to the last. Gathers of values wait for their use;
 * dp's gather of the gradient frees the shard that its sum waits in. An exchange holds nothing either way, so it is
 * drawn to be done early. */
static bool is_drawn_to_first(const slc_flow_family *family)
{
    return family->kind == SLC_FLOW_REDUCE || family->kind == SLC_FLOW_EXCHANGE ||
           (family->kind == SLC_FLOW_GATHER_VALUE && slc_flow_family_is_dp(family));
}

/* Reducing a gradient that stays in memory frees nothing, while the sum's shard begins to wait. */
static bool frees_nothing(const slc_slot_model_parts *parts, const slc_flow_family *family)
{
    bool stays = !slc_gradient_is_transient(slc_flow_family_strategy(family));
    return family->kind == SLC_FLOW_REDUCE && stays && parts->job->each;
}

static bool holds_least_at_last(const slc_slot_model_parts *parts, const slc_flow_family *family)
{
    if (!frees_nothing(parts, family) || family->micro_batch) return false;
    return parts->micro_batches > 1 ||
           (slc_updated_last(parts->job, &parts->job->units[family->unit]) && !slc_flow_family_is_dp(family));
}

uint32_t slc_flow_family_serial_position(const slc_slot_model_parts *parts, const slc_flow_family *family)
{
    return is_drawn_to_first(family) && !holds_least_at_last(parts, family) ? family->first : family->last;
}

/* True if the gap that the family allows may depend on another family: dp's gather comes after its reduction, and a
 * reduction that frees nothing comes right before its gather. */
static bool gaps_differ(const slc_slot_model_parts *parts, const slc_flow_family *family)
{
    return family->kind == SLC_FLOW_GATHER_VALUE || frees_nothing(parts, family);
}

static bool offers_other_gaps(const slc_slot_model_parts *parts, const slc_flow_family *family)
{
    return gaps_differ(parts, family) || (parts->bounding && parts->job->world == 1);
}

static bool offers_all(const slc_slot_model_parts *parts)
{
    return parts->request->every_position || (uint64_t)parts->job->unit_count * parts->slots <= FEW;
}

static uint32_t next_offset(const slc_slot_model_parts *parts, uint32_t offset)
{
    if (offers_all(parts) || offset < DENSE) return offset + 1;
    return offset + (offset >= 8 ? offset / 4 : 1);
}

bool slc_slot_is_offered(const slc_slot_model_parts *parts, uint32_t s)
{
    uint32_t slot = s % slc_job_slots(parts->job), layer = slc_slot_layer(parts->job, slot);
    if (parts->times->link.kappa >= 1) return false;
    double seconds = parts->times->slot_s[slot];
    if (!slc_slot_is_forward(parts->job, slot) && slc_recompute_of(parts, layer))
        seconds += parts->times->recompute_s[layer];
    return seconds > 0;
}

static uint32_t from_first(const slc_slot_model_parts *parts, const slc_flow_family *family, uint32_t *out)
{
    uint32_t count = 0;
    const bool gaps = offers_other_gaps(parts, family);
    out[count++] = family->first;
    for (uint32_t o = 1; family->first - 1 + 2 * o <= family->last; o = next_offset(parts, o)) {
        uint32_t slot = family->first - 1 + 2 * o;
        if (slc_slot_is_offered(parts, slot / 2)) out[count++] = slot;
        if (gaps && offers_all(parts)) out[count++] = slot + 1;
    }
    if (gaps && family->last > out[count - 1]) out[count++] = family->last;
    return count;
}

static uint32_t from_last(const slc_slot_model_parts *parts, const slc_flow_family *family, uint32_t *out)
{
    uint32_t count = 0;
    out[count++] = family->last;
    for (uint32_t o = 1; family->first + 2 * o <= family->last + 1; o = next_offset(parts, o))
        if (slc_slot_is_offered(parts, (family->last + 1 - 2 * o) / 2)) out[count++] = family->last + 1 - 2 * o;
    for (uint32_t i = 0; i < count / 2; i++) {
        uint32_t swap = out[i];
        out[i] = out[count - 1 - i];
        out[count - 1 - i] = swap;
    }
    return count;
}

uint32_t slc_flow_family_positions(const slc_slot_model_parts *parts, const slc_flow_family *family, uint32_t *out)
{
    return is_drawn_to_first(family) ? from_first(parts, family, out) : from_last(parts, family, out);
}

uint32_t slc_flow_family_end_gaps(const slc_slot_model_parts *parts, const slc_flow_family *family, uint32_t out[2])
{
    uint32_t count = 0;
    if (is_drawn_to_first(family)) out[count++] = family->first;
    if (!count || (offers_other_gaps(parts, family) && family->last > family->first)) out[count++] = family->last;
    return count;
}
