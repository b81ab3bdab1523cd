/* tests/engine/engine_test.c covers this file. */
#include "lib/engine/model/unit.h"

#include "lib/engine/runtime.h"
#include "lib/plan/strategy_table.h"

slc_part slc_unit_part(const slc_unit *unit, uint32_t world, uint64_t block, uint32_t rank)
{
    return slc_part_of_rank(unit->elements, unit->block_elements, block, world, rank);
}

slc_part slc_part_of_param(const slc_part *part, const sluice_param *param)
{
    uint64_t first = param->first > part->first ? param->first : part->first;
    uint64_t end = param->first + param->count, part_end = part->first + part->count;
    if (part_end < end) end = part_end;
    if (first >= end) return (slc_part){0};
    return (slc_part){first, end - first, part->shard_first + (first - part->first)};
}

slc_part slc_part_first_owned(const sluice_param *param, uint64_t first, uint64_t count)
{
    const sluice_runtime *rt = param->rt;
    if (param->unit == SLC_NONE) return (slc_part){0}; /* another stage has it */
    const slc_unit *unit = &rt->job.units[param->unit];
    sluice_param piece = {.first = param->first + first, .count = count};
    slc_part range = {0};
    for (uint64_t b = piece.first / unit->block_elements; !range.count && b < slc_unit_blocks(unit); b++) {
        slc_part part = slc_unit_part(unit, (uint32_t)rt->replicas, b, (uint32_t)rt->replica);
        if (part.first >= piece.first + count) break;
        range = slc_part_of_param(&part, &piece);
    }
    return range;
}

const void *slc_reduced_at(const sluice_runtime *rt, uint32_t unit, const slc_part *part)
{
    const slc_unit_state *state = &rt->units[unit];
    bool shard = state->reduced && !state->whole_sum;
    return slc_element(state->reduced ? state->reduced : state->gradient, state->reduced_dtype,
                       shard ? part->shard_first : part->first);
}

sluice_update slc_update_of(const sluice_runtime *rt, uint32_t unit, const sluice_param *param, const slc_part *range,
                            const slc_step_state *step)
{
    const slc_unit_state *state = &rt->units[unit];
    uint64_t owned = slc_updates_whole(state->strategy) ? range->first : range->shard_first;
    void *value = state->shard ? slc_element(state->shard, state->dtype, range->shard_first)
                               : slc_element(state->value, state->dtype, range->first);
    sluice_update update = {
        .value = state->master ? state->master + owned : value,
        .rounded = state->master ? value : NULL,
        .count = range->count,
        .step = step->updates[param->number],
        .learning_rate =
            step->has_group_rates ? step->learning_rate * step->group_rates[param->group] : step->learning_rate,
        .gradient_factor = step->factor * step->left_scale,
        .no_decay = param->no_decay,
        .parameter = param->number,
        .job_step = step->step,
    };
    for (uint32_t s = 0; s < rt->optimizer.state_count; s++) update.state[s] = state->state[s] + owned;
    return update;
}
