/* The memory of an evaluation pass. It holds activations that training recomputes, so it may need more than any slot of
 * a step. The model has a row for each of its slots, except for slots that training, or another slot of the pass,
 * always exceeds: their rows would only make the program larger. ilp/slot_model_test.c covers this file. */
#include "ilp/parts/slot_parts.h"

#include "lib/base/status.h"

#include <math.h>
#include <stdlib.h>

static bool covers(const slc_job *job, const slc_unit *unit, bool with_backward, uint32_t slot)
{
    slc_window window;
    for (uint32_t w = 0; slc_unit_window(job, unit, with_backward, w, &window); w++)
        if (slot >= window.first_slot && slot <= window.last_slot) return true;
    return false;
}

static double gathered_bytes(const slc_job *job, const slc_unit *unit)
{
    return (double)slc_block_byte(job, unit, SLC_BUFFER_GATHERED, false, slc_unit_blocks(unit));
}

double slc_evaluation_bytes(const slc_slot_model_parts *parts, uint32_t u, slc_strategy strategy, uint32_t slot)
{
    const slc_unit *unit = &parts->job->units[u];
    double bytes = (double)slc_resident_bytes(parts->job, unit, strategy);
    bool gathered = slc_gathers_windows(strategy) && covers(parts->job, unit, false, slot);
    return bytes + (gathered ? gathered_bytes(parts->job, unit) : 0);
}

static uint64_t fixed_in(const slc_job *job, uint32_t slot)
{
    uint64_t bytes = job->scratch_bytes + 8 * slc_agreement_words(job);
    for (uint32_t a = 0; a < job->activation_count; a++) {
        const slc_activation_life *life = &job->activations[a];
        bool used = life->last_forward_slot < job->layer_count;
        if (used && slot >= life->first_slot && slot <= life->last_forward_slot) bytes += life->bytes;
    }
    for (uint32_t w = 0; w < job->workspace_count; w++)
        if (job->workspaces[w].slot == slot) bytes += job->workspaces[w].bytes;
    return bytes;
}

/* The bytes besides those of units that a slot of a step holds for certain, whatever is recomputed. */
static double certain_in_training(const slc_slot_model_parts *parts, uint32_t slot)
{
    const slc_job *job = parts->job;
    double bytes = (double)parts->fixed_bytes[2 * slot + 1];
    slc_lifetime span;
    for (uint32_t a = 0; a < job->activation_count; a++)
        if (slc_recompute_of(parts, slc_activation_layer(job, a)) == 2 && slc_recompute_span(parts, a, 0, &span) &&
            2 * (int64_t)slot >= span.from && 2 * (int64_t)slot <= span.to)
            bytes -= span.bytes;
    return bytes;
}

/* The least by which a unit takes more at the end of a slot of a step than in a slot of evaluation. */
static double more_in_training(const slc_slot_model_parts *parts, uint32_t u, uint32_t slot, uint32_t evaluated)
{
    const slc_job *job = parts->job;
    const slc_unit *unit = &job->units[u];
    uint32_t first = 1, last = 0;
    if (unit->trainable) slc_unit_gradient_slots(job, unit, &first, &last);
    double gathered = gathered_bytes(job, unit), least = INFINITY;
    double change =
        (covers(job, unit, true, slot) ? gathered : 0) - (covers(job, unit, false, evaluated) ? gathered : 0);
    for (int k = 0; k < SLC_STRATEGIES; k++) {
        if (!slc_has(parts->options[u], (slc_strategy)k)) continue;
        double more = slc_gathers_windows((slc_strategy)k) ? change : 0;
        if (slot >= first && slot <= last && slc_gradient_is_transient((slc_strategy)k))
            more += (double)slc_block_byte(job, unit, SLC_BUFFER_GRADIENT, false, slc_unit_blocks(unit));
        least = fmin(least, more);
    }
    return least;
}

/* Windows of evaluation are in those of training too, so in its own slot of a step no unit takes less. */
static bool training_exceeds(const slc_slot_model_parts *parts, uint32_t evaluated, uint32_t slot, double bytes)
{
    double more = certain_in_training(parts, slot) - bytes;
    if (slot == evaluated && more >= 0) return true;
    for (uint32_t u = 0; u < parts->job->unit_count; u++) more += more_in_training(parts, u, slot, evaluated);
    return more >= 0;
}

/* Bytes of all values that may be gathered for a slot of evaluation. */
static double gathered_at_most(const slc_slot_model_parts *parts, uint32_t slot)
{
    const slc_job *job = parts->job;
    double bytes = 0;
    for (uint32_t u = 0; u < job->unit_count; u++)
        if (slc_has(parts->options[u], SLC_FSDP) && covers(job, &job->units[u], false, slot))
            bytes += gathered_bytes(job, &job->units[u]);
    return bytes;
}

/* Lists the slots that no slot of a step exceeds. */
static void list_slots(slc_slot_model_parts *parts)
{
    const slc_job *job = parts->job;
    for (uint32_t s = 0; s < job->layer_count; s++) {
        uint64_t bytes = fixed_in(job, s);
        if (training_exceeds(parts, s, s, (double)bytes) ||
            training_exceeds(parts, s, slc_backward_slot(job, s), (double)bytes))
            continue;
        parts->evaluated[parts->evaluated_count] = s;
        parts->evaluated_bytes[parts->evaluated_count++] = bytes;
    }
}

/* Leaves out each slot that, with everything gathered that may be, takes no more than the fullest slot takes with
 * nothing gathered. */
static void drop_exceeded(slc_slot_model_parts *parts)
{
    uint32_t fullest = 0, kept = 0;
    for (uint32_t i = 1; i < parts->evaluated_count; i++)
        if (parts->evaluated_bytes[i] > parts->evaluated_bytes[fullest]) fullest = i;
    const double most = parts->evaluated_count ? (double)parts->evaluated_bytes[fullest] : 0;
    for (uint32_t i = 0; i < parts->evaluated_count; i++) {
        double bytes = (double)parts->evaluated_bytes[i] + gathered_at_most(parts, parts->evaluated[i]);
        if (i != fullest && bytes <= most) continue;
        parts->evaluated[kept] = parts->evaluated[i];
        parts->evaluated_bytes[kept++] = parts->evaluated_bytes[i];
    }
    parts->evaluated_count = kept;
}

/* Leaves out the slots that keep to the limit under any strategies. */
static void forget_below(slc_slot_model_parts *parts, uint64_t limit)
{
    const slc_job *job = parts->job;
    uint32_t kept = 0;
    double resident = 0;
    for (uint32_t u = 0; parts->evaluated_count && u < job->unit_count; u++) {
        double most = 0;
        for (int k = 0; k < SLC_STRATEGIES; k++)
            if (slc_has(parts->options[u], (slc_strategy)k))
                most = fmax(most, (double)slc_resident_bytes(job, &job->units[u], (slc_strategy)k));
        resident += most;
    }
    for (uint32_t i = 0; i < parts->evaluated_count; i++) {
        double bytes = resident + (double)parts->evaluated_bytes[i] + gathered_at_most(parts, parts->evaluated[i]);
        if (bytes <= (double)limit) continue;
        parts->evaluated[kept] = parts->evaluated[i];
        parts->evaluated_bytes[kept++] = parts->evaluated_bytes[i];
    }
    parts->evaluated_count = kept;
}

sluice_status slc_evaluation_init(slc_slot_model_parts *parts, uint64_t limit)
{
    uint32_t layers = parts->job->layer_count;
    parts->evaluated = calloc(layers, sizeof *parts->evaluated);
    parts->evaluated_bytes = calloc(layers, sizeof *parts->evaluated_bytes);
    if (!parts->evaluated || !parts->evaluated_bytes)
        return slc_error(SLUICE_ERR_MEMORY, "slot model: no memory for %u slots of evaluation", layers);
    list_slots(parts);
    drop_exceeded(parts);
    forget_below(parts, limit);
    return SLUICE_OK;
}
