/* The table of strategies. */
#include "lib/plan/strategy_table.h"

bool slc_gradient_is_transient(slc_strategy strategy)
{
    return strategy == SLC_SDP || strategy == SLC_FSDP;
}

slc_unit_operations slc_operations_of(const slc_job *job, const slc_unit *unit, slc_strategy strategy)
{
    slc_unit_operations of = {.reduce = SLC_ITEM_KINDS,
                              .gather_gradient = SLC_ITEM_KINDS,
                              .update = SLC_ITEM_KINDS,
                              .gather_value = SLC_ITEM_KINDS,
                              .windows = strategy == SLC_FSDP};
    if (!unit->trainable) return of;
    of.moves_sum = job->each || (job->barrier && slc_gradient_is_transient(strategy));
    of.reduce = strategy == SLC_DP && !job->each ? SLC_ITEM_ALL_REDUCE : SLC_ITEM_REDUCE_SCATTER;
    if (strategy == SLC_DP && job->each) of.gather_gradient = SLC_ITEM_GATHER_GRADIENT;
    of.update = SLC_ITEM_UPDATE;
    if (strategy == SLC_OSS || strategy == SLC_SDP) of.gather_value = SLC_ITEM_GATHER_VALUE;
    return of;
}

uint32_t slc_memory_rows(const slc_job *job, const slc_unit *unit, slc_strategy strategy,
                         slc_memory_row rows[SLC_MEMORY_ROWS_MAX])
{
    uint32_t count = 0;
    if (strategy == SLC_FSDP) {
        rows[count++] = (slc_memory_row){SLC_BUFFER_VALUE_SHARD, SLC_LIFE_RESIDENT, true, 0};
        rows[count++] = (slc_memory_row){SLC_BUFFER_GATHERED, SLC_LIFE_WINDOW, false, 0};
    } else {
        rows[count++] = (slc_memory_row){SLC_BUFFER_VALUE, SLC_LIFE_RESIDENT, false, 0};
    }
    if (!unit->trainable) return count;
    slc_life gradient = slc_gradient_is_transient(strategy) ? SLC_LIFE_GRADIENT : SLC_LIFE_RESIDENT;
    rows[count++] = (slc_memory_row){SLC_BUFFER_GRADIENT, gradient, false, 0};
    if (slc_operations_of(job, unit, strategy).moves_sum)
        rows[count++] = (slc_memory_row){SLC_BUFFER_REDUCED, SLC_LIFE_REDUCED, true, 0};
    for (uint32_t s = 0; s < job->states && count < SLC_MEMORY_ROWS_MAX; s++)
        rows[count++] = (slc_memory_row){SLC_BUFFER_STATE, SLC_LIFE_RESIDENT, strategy != SLC_DP, s};
    return count;
}

uint64_t slc_resident_bytes(const slc_job *job, const slc_unit *unit, slc_strategy strategy)
{
    slc_memory_row rows[SLC_MEMORY_ROWS_MAX];
    uint64_t bytes = 0, whole = 4 * unit->elements;
    for (uint32_t i = slc_memory_rows(job, unit, strategy, rows); i-- > 0;)
        if (rows[i].life == SLC_LIFE_RESIDENT) bytes += rows[i].shard ? whole / job->world : whole;
    return bytes;
}
