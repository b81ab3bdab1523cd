/* The table of strategies. */
#include "lib/plan/strategy_table.h"

bool slc_updates_whole(slc_strategy strategy)
{
    return strategy == SLC_DP || strategy == SLC_ONEBIT;
}

bool slc_gradient_is_transient(slc_strategy strategy)
{
    return strategy == SLC_SDP || strategy == SLC_FSDP;
}

slc_unit_operations slc_operations_of(const slc_job *job, const slc_unit *unit, slc_strategy strategy)
{
    slc_unit_operations of = {.reduce = SLC_ITEM_KINDS,
                              .gather_gradient = SLC_ITEM_KINDS,
                              .update = SLC_ITEM_KINDS,
                              .inspect = SLC_ITEM_KINDS,
                              .compress = SLC_ITEM_KINDS,
                              .exchange = SLC_ITEM_KINDS,
                              .gather_value = SLC_ITEM_KINDS,
                              .windows = strategy == SLC_FSDP};
    if (!unit->trainable) return of;
    if (unit->role == SLC_UNIT_ROWS) {
        of.reduce = SLC_ITEM_REDUCE_SCATTER;
        of.moves_sum = true;
        return of;
    }
    of.update = SLC_ITEM_UPDATE;
    if (strategy == SLC_ONEBIT) {
        if (job->refreshes) of.reduce = SLC_ITEM_ALL_REDUCE;
        if (slc_waits_for_agreement(job, strategy)) of.inspect = SLC_ITEM_INSPECT;
        of.compress = SLC_ITEM_COMPRESS;
        of.exchange = SLC_ITEM_EXCHANGE;
        return of;
    }
    of.moves_sum = job->each || (slc_updated_last(job, unit) && slc_gradient_is_transient(strategy));
    of.reduce = strategy == SLC_DP && !job->each ? SLC_ITEM_ALL_REDUCE : SLC_ITEM_REDUCE_SCATTER;
    if (strategy == SLC_DP && job->each) of.gather_gradient = SLC_ITEM_GATHER_GRADIENT;
    of.whole_sum = strategy == SLC_DP && job->each && slc_reduced_dtype(job, unit) != slc_gradient_dtype(job, unit);
    if (strategy == SLC_OSS || strategy == SLC_SDP) of.gather_value = SLC_ITEM_GATHER_VALUE;
    return of;
}

sluice_dtype slc_buffer_dtype(const slc_job *job, const slc_unit *unit, slc_buffer_kind kind)
{
    switch (kind) {
    case SLC_BUFFER_VALUE:
    case SLC_BUFFER_VALUE_SHARD:
    case SLC_BUFFER_GATHERED: return unit->dtype;
    case SLC_BUFFER_GRADIENT: return slc_gradient_dtype(job, unit);
    case SLC_BUFFER_REDUCED: return slc_reduced_dtype(job, unit);
    default: return SLUICE_FP32;
    }
}

/* The elements of a whole buffer of a unit. */
static uint64_t buffer_elements(const slc_job *job, const slc_unit *unit, slc_buffer_kind kind)
{
    if (unit->role != SLC_UNIT_ROWS || kind != SLC_BUFFER_GRADIENT) return unit->elements;
    uint64_t grain = 16 * (uint64_t)job->world;
    return (slc_gradient_rows(job, unit) * unit->row_elements + grain - 1) / grain * grain;
}

uint64_t slc_buffer_bytes(const slc_job *job, const slc_unit *unit, const slc_buffer_rule *row)
{
    switch (row->kind) {
    case SLC_BUFFER_WORKER_ERROR: return unit->exchange.worker;
    case SLC_BUFFER_SERVER_ERROR: return unit->exchange.server;
    case SLC_BUFFER_PACKETS: return unit->exchange.packets;
    case SLC_BUFFER_RESULTS: return unit->exchange.results;
    case SLC_BUFFER_ROW_LISTS: return slc_row_lists_bytes(job, unit);
    default: break;
    }
    uint64_t whole = sluice_dtype_bytes(slc_buffer_dtype(job, unit, row->kind)) * buffer_elements(job, unit, row->kind);
    return row->shard ? whole / job->world : whole;
}

uint64_t slc_block_byte(const slc_job *job, const slc_unit *unit, slc_buffer_kind kind, bool shard, uint64_t block)
{
    uint64_t element = block * unit->block_elements;
    if (element >= unit->elements) element = buffer_elements(job, unit, kind);
    return sluice_dtype_bytes(slc_buffer_dtype(job, unit, kind)) * element / (shard ? job->world : 1);
}

uint64_t slc_reading_bytes(const slc_job *job)
{
    uint64_t largest = 0;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        const slc_unit *unit = &job->units[u];
        if (unit->role == SLC_UNIT_ROWS) continue; /* reading goes to its partner */
        uint64_t block = unit->elements < unit->block_elements ? unit->elements : unit->block_elements;
        if (block > largest) largest = block;
    }
    return sluice_dtype_bytes(SLUICE_FP32) * largest;
}

uint64_t slc_operation_bytes(const slc_job *job, const slc_unit *unit, slc_item_kind kind, uint64_t elements)
{
    if (kind == SLC_ITEM_EXCHANGE) return unit->exchange.wire;
    if (unit->role == SLC_UNIT_ROWS && slc_is_reduction(kind))
        elements = slc_reduced_rows(job, unit) * unit->row_elements;
    bool sum = kind == SLC_ITEM_GATHER_GRADIENT || kind == SLC_ITEM_UPDATE;
    slc_buffer_kind moved = slc_is_reduction(kind) ? SLC_BUFFER_GRADIENT : sum ? SLC_BUFFER_REDUCED : SLC_BUFFER_VALUE;
    return sluice_dtype_bytes(slc_buffer_dtype(job, unit, moved)) * elements;
}

static uint32_t onebit_rows(const slc_job *job, slc_buffer_rule *rows)
{
    uint32_t count = 0;
    rows[count++] = (slc_buffer_rule){SLC_BUFFER_WORKER_ERROR, SLC_LIFE_RESIDENT, false, 0};
    rows[count++] = (slc_buffer_rule){SLC_BUFFER_SERVER_ERROR, SLC_LIFE_RESIDENT, false, 0};
    for (uint32_t i = 0; i < job->local_arrays; i++)
        rows[count++] = (slc_buffer_rule){SLC_BUFFER_LOCAL, SLC_LIFE_RESIDENT, false, i};
    rows[count++] = (slc_buffer_rule){SLC_BUFFER_PACKETS, SLC_LIFE_PACKETS, false, 0};
    rows[count++] = (slc_buffer_rule){SLC_BUFFER_RESULTS, SLC_LIFE_RESULTS, false, 0};
    return count;
}

static uint32_t look_up_rows(const slc_unit *unit, slc_buffer_rule *rows)
{
    uint32_t count = 0;
    rows[count++] = (slc_buffer_rule){SLC_BUFFER_ROW_LISTS, SLC_LIFE_RESIDENT, false, 0};
    rows[count++] = (slc_buffer_rule){SLC_BUFFER_GATHERED, SLC_LIFE_WINDOW, false, 0};
    if (unit->trainable) rows[count++] = (slc_buffer_rule){SLC_BUFFER_GRADIENT, SLC_LIFE_GRADIENT, false, 0};
    return count;
}

uint32_t slc_buffer_rules(const slc_job *job, const slc_unit *unit, slc_strategy strategy,
                          slc_buffer_rule rows[SLC_BUFFER_RULES_MAX])
{
    uint32_t count = 0;
    if (unit->role == SLC_UNIT_ROWS) return look_up_rows(unit, rows);
    if (strategy == SLC_FSDP) {
        rows[count++] = (slc_buffer_rule){SLC_BUFFER_VALUE_SHARD, SLC_LIFE_RESIDENT, true, 0};
        rows[count++] = (slc_buffer_rule){SLC_BUFFER_GATHERED, SLC_LIFE_WINDOW, false, 0};
    } else {
        rows[count++] = (slc_buffer_rule){SLC_BUFFER_VALUE, SLC_LIFE_RESIDENT, false, 0};
    }
    if (!unit->trainable) return count;
    if (slc_has_master(unit))
        rows[count++] = (slc_buffer_rule){SLC_BUFFER_MASTER, SLC_LIFE_RESIDENT, !slc_updates_whole(strategy), 0};
    slc_unit_operations of = slc_operations_of(job, unit, strategy);
    slc_life gradient = slc_gradient_is_transient(strategy) ? SLC_LIFE_GRADIENT : SLC_LIFE_RESIDENT;
    rows[count++] = (slc_buffer_rule){SLC_BUFFER_GRADIENT, gradient, false, 0};
    if (of.moves_sum) rows[count++] = (slc_buffer_rule){SLC_BUFFER_REDUCED, SLC_LIFE_REDUCED, !of.whole_sum, 0};
    for (uint32_t s = 0; s < job->states && count < SLC_BUFFER_RULES_MAX; s++)
        rows[count++] = (slc_buffer_rule){SLC_BUFFER_STATE, SLC_LIFE_RESIDENT, !slc_updates_whole(strategy), s};
    if (strategy == SLC_ONEBIT) count += onebit_rows(job, rows + count);
    return count;
}

uint64_t slc_resident_bytes(const slc_job *job, const slc_unit *unit, slc_strategy strategy)
{
    slc_buffer_rule rows[SLC_BUFFER_RULES_MAX];
    uint64_t bytes = 0;
    for (uint32_t i = slc_buffer_rules(job, unit, strategy, rows); i-- > 0;)
        if (rows[i].life == SLC_LIFE_RESIDENT) bytes += slc_buffer_bytes(job, unit, &rows[i]);
    return bytes;
}
