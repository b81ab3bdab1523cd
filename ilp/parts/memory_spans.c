/* Says from when to when bytes are in memory, as spans of half rows: for strategies, for a family at a position, and
 * for recomputation. The strategy table says which buffers there are.
 * ilp/slot_model_test.c covers this file. */
#include "ilp/parts/slot_parts.h"

static double whole_bytes(const slc_job *job, const slc_unit *unit, slc_buffer_kind kind)
{
    return (double)slc_block_byte(job, unit, kind, false, slc_unit_blocks(unit));
}

/* The buffer in which a sum waits, from the first reduction until the update (or dp's gather of the gradient). The
 * first reduction lays it down, and whatever follows the last one takes it away, unless the barrier ends it. */
static uint32_t waiting_sum(const slc_slot_model_parts *parts, const slc_flow_family *family, uint32_t position,
                            slc_lifetime *out)
{
    const slc_job *job = parts->job;
    slc_strategy strategy = slc_flow_family_strategy(family);
    const slc_unit *unit = &job->units[family->unit];
    slc_unit_operations of = slc_operations_of(job, unit, strategy);
    if (!of.keeps_sum) return 0;
    bool gathered = of.gather_gradient != SLC_ITEM_KINDS;
    bool at_barrier = slc_updated_last(job, unit) && (!gathered || of.whole_sum);
    bool reduce = family->kind == SLC_FLOW_REDUCE;
    bool last = family->micro_batch == parts->micro_batches - 1;
    bool lays = reduce && (family->micro_batch == 0 || !job->each);
    bool takes = !at_barrier && last && reduce != gathered;
    double sum = whole_bytes(job, unit, SLC_BUFFER_REDUCED) / (of.whole_sum ? 1 : job->world);
    slc_lifetime span = {position + 1, slc_first_update(parts, unit), sum};
    if (!at_barrier) span.to = 2 * ((int64_t)parts->slots + slc_forward_slot(unit->uses[0].layer)) - 1;
    uint32_t count = 0;
    if (lays) {
        out[count] = span;
        int64_t middle = 2 * (int64_t)slc_job_slots(job); /* in a template the later micro-batches hold all of it */
        if (slc_is_template(parts) && out[count].from > middle && job->each) out[count].from = middle;
        count++;
    }
    span.bytes = -sum;
    if (takes) out[count++] = span;
    return count;
}

uint32_t slc_flow_family_spans(const slc_slot_model_parts *parts, const slc_flow_family *family, uint32_t position,
                               slc_lifetime out[SLC_SPANS_MAX])
{
    uint32_t count = 0;
    const slc_unit *unit = &parts->job->units[family->unit];
    if (family->kind == SLC_FLOW_WINDOW) {
        out[count++] = (slc_lifetime){position + 1, family->last, whole_bytes(parts->job, unit, SLC_BUFFER_GATHERED)};
        return count;
    }
    if (family->kind == SLC_FLOW_UPDATE) return 0;
    if (family->kind == SLC_FLOW_EXCHANGE) {
        if (parts->bounding) return 0; /* all of it may end within the slot, before what the slot's end holds comes */
        double flying = (double)(unit->exchange.packets + unit->exchange.results);
        if (!(position & 1)) out[count++] = (slc_lifetime){position + 1, position + 1, flying};
        return count;
    }
    if (family->kind == SLC_FLOW_REDUCE && slc_gradient_is_transient(slc_flow_family_strategy(family)))
        out[count++] = (slc_lifetime){family->first + 1, position, whole_bytes(parts->job, unit, SLC_BUFFER_GRADIENT)};
    return count + waiting_sum(parts, family, position, out + count);
}

uint32_t slc_strategy_spans_max(const slc_slot_model_parts *parts)
{
    uint32_t most = 0;
    for (uint32_t u = 0; u < parts->job->unit_count; u++)
        if (parts->job->units[u].use_count > most) most = parts->job->units[u].use_count;
    return 1 + parts->micro_batches * (2 * most + 1);
}

uint32_t slc_strategy_spans(const slc_slot_model_parts *parts, uint32_t u, slc_strategy strategy, slc_lifetime *out)
{
    const slc_job *job = parts->job;
    const slc_unit *unit = &job->units[u];
    int64_t cycle = slc_job_slots(job);
    uint32_t count = 0, first, last, windows = parts->micro_batches;
    slc_window window;

    out[count++] = (slc_lifetime){0, parts->half_rows - 1, (double)slc_resident_bytes(job, unit, strategy)};
    for (uint32_t m = 0; slc_gathers_windows(strategy) && m < windows; m++)
        for (uint32_t w = 0; slc_unit_window(job, unit, true, w, &window); w++)
            out[count++] = (slc_lifetime){2 * (m * cycle + window.first_slot), 2 * (m * cycle + window.last_slot) + 1,
                                          whole_bytes(job, unit, SLC_BUFFER_GATHERED)};
    if (!unit->trainable || !slc_gradient_is_transient(strategy)) return count;
    double gradient = whole_bytes(job, unit, SLC_BUFFER_GRADIENT);
    slc_unit_gradient_slots(job, unit, &first, &last);
    if (!job->each) {
        int64_t end = 2 * ((parts->micro_batches - 1) * cycle + last) + 1;
        out[count++] = (slc_lifetime){2 * (int64_t)first, end, gradient};
        return count;
    }
    for (uint32_t m = 0; m < parts->micro_batches; m++)
        out[count++] = (slc_lifetime){2 * (m * cycle + first), 2 * (m * cycle + last) + 1, gradient};
    return count;
}

uint32_t slc_activation_layer(const slc_job *job, uint32_t activation)
{
    return slc_slot_layer(job, job->activations[activation].first_slot);
}

bool slc_recompute_span(const slc_slot_model_parts *parts, uint32_t activation, uint32_t micro_batch, slc_lifetime *out)
{
    const slc_job *job = parts->job;
    const slc_activation_life *life = &job->activations[activation];
    if (!life->recomputable || !slc_slot_is_forward(job, life->first_slot)) return false;
    uint32_t backward = slc_backward_slot(job, slc_activation_layer(job, activation));
    uint32_t first = life->first_slot + 1, last = life->last_slot < backward ? life->last_slot : backward - 1;
    if (last < first || life->last_slot < life->first_slot) return false;
    int64_t origin = (int64_t)micro_batch * slc_job_slots(job);
    *out = (slc_lifetime){2 * (origin + first), 2 * (origin + last) + 1, (double)life->bytes};
    return true;
}
