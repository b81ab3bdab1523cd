/* What a rank does with the reduced gradient that it owns: look at it (norm, non-finite values) and update. Runs on the
 * communication thread. */
#include "lib/engine/runtime.h"

#include "lib/base/status.h"

float *slc_reduced_at(const sluice_runtime *rt, uint32_t unit, const slc_part *part)
{
    const slc_unit_state *state = &rt->units[unit];
    return state->reduced ? state->reduced + part->shard_first : state->gradient + part->first;
}

sluice_status slc_inspect_reduced(sluice_runtime *rt, const slc_item *item, slc_step_state *step)
{
    const slc_unit *unit = &rt->job.units[item->unit];
    for (uint64_t b = item->first_block; b < item->first_block + item->block_count; b++) {
        slc_part part = slc_unit_part(unit, (uint32_t)rt->size, b, (uint32_t)rt->rank);
        const float *gradient = slc_reduced_at(rt, item->unit, &part);
        bool finite = true;
        sluice_status status = slc_all_finite(&rt->updates, SLUICE_FP32, part.count, gradient, &finite);
        if (!status && rt->config.clip > 0)
            status = slc_norm_add(&rt->updates, SLUICE_FP32, part.count, gradient, step->bins);
        if (!status) status = slc_stream_synchronize(&rt->updates);
        if (status) return status;
        if (finite) continue;
        step->non_finite++;
        if (step->bad_unit == SLC_NONE) step->bad_unit = item->unit;
    }
    return SLUICE_OK;
}

/* A run of elements of one parameter. */
static sluice_status update_range(sluice_runtime *rt, uint32_t unit, const sluice_param *param, const slc_part *range,
                                  const slc_step_state *step)
{
    const slc_unit_state *state = &rt->units[unit];
    bool dp = state->strategy == SLC_DP;
    uint64_t owned = dp ? range->first : range->shard_first;
    sluice_update update = {
        .value = state->shard ? state->shard + range->shard_first : state->value + range->first,
        .gradient = dp ? state->gradient + range->first : slc_reduced_at(rt, unit, range),
        .count = range->count,
        .step = step->step,
        .learning_rate = step->learning_rate,
        .gradient_factor = step->factor,
        .no_decay = param->no_decay,
    };
    for (uint32_t s = 0; s < rt->optimizer.state_count; s++) update.state[s] = state->state[s] + owned;
    sluice_status status = rt->optimizer.update(&update, rt->optimizer.context);
    return slc_error_context(status, "optimizer %s, parameter \"%s\"", rt->optimizer.name, param->name);
}

sluice_status slc_update_unit(sluice_runtime *rt, const slc_item *item, const slc_step_state *step)
{
    if (step->skip) return SLUICE_OK;
    const slc_unit_state *state = &rt->units[item->unit];
    bool whole = state->strategy == SLC_DP;
    for (uint64_t b = item->first_block; b < item->first_block + item->block_count; b++) {
        slc_part part = slc_unit_part(&rt->job.units[item->unit], whole ? 1 : (uint32_t)rt->size, b,
                                      whole ? 0 : (uint32_t)rt->rank);
        for (uint32_t p = 0; p < state->param_count; p++) {
            slc_part range = slc_part_of_param(&part, state->params[p]);
            if (!range.count) continue;
            sluice_status status = update_range(rt, item->unit, state->params[p], &range, step);
            if (status) return status;
        }
    }
    return slc_stream_synchronize(&rt->updates);
}
