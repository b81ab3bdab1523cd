/* The table of strategies. */
#include "lib/plan/strategy_table.h"

#include "lib/base/integer.h"

#define BIT(name) (1 << SLC_##name)

/* oss, sdp and dp move the same bytes, and sdp keeps least of them; dp only saves the start of one operation. Frozen
 * units move nothing but fsdp's windows, and keep only their values. */
const slc_strategy_rules slc_strategies[SLC_STRATEGIES] = {
    [SLC_DP] = {.doc = "every rank keeps everything",
                .updates_whole = true,
                .dominated_if_frozen = BIT(SDP) | BIT(OSS)},
    [SLC_OSS] = {.doc = "optimizer state is sharded", .dominated_by = BIT(SDP), .dominated_if_frozen = BIT(SDP)},
    [SLC_SDP] = {.doc = "optimizer state and gradients are sharded", .gradient_is_transient = true, .offered = true},
    [SLC_FSDP] = {.doc = "parameters too", .gradient_is_transient = true, .gathers_windows = true, .offered = true},
    [SLC_ONEBIT] = {.doc = "every rank keeps everything, one bit an element is exchanged",
                    .updates_whole = true,
                    .exchanges = true,
                    .offered = true,
                    .dominated_if_frozen = BIT(DP) | BIT(OSS) | BIT(SDP) | BIT(FSDP)},
};

const slc_strategy slc_strategies_by_memory[SLC_STRATEGIES] = {SLC_FSDP, SLC_SDP, SLC_OSS, SLC_DP, SLC_ONEBIT};

uint8_t slc_offered_strategies(const slc_job *job, const slc_unit *unit, bool lossy)
{
    uint8_t offered = 0;
    for (int k = 0; k < SLC_STRATEGIES; k++)
        if (slc_strategies[k].offered && (lossy || !slc_strategies[k].exchanges) &&
            slc_unit_may_be(job, unit, (slc_strategy)k))
            offered |= (uint8_t)(1 << k);
    return offered;
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
                              .windows = slc_gathers_windows(strategy)};
    if (!unit->trainable) return of;
    if (slc_looks_up(unit)) {
        of.reduce = SLC_ITEM_REDUCE_SCATTER;
        of.moves_sum = true;
        return of;
    }
    of.update = SLC_ITEM_UPDATE;
    if (slc_exchanges(strategy)) {
        if (job->refreshes) of.reduce = SLC_ITEM_ALL_REDUCE;
        if (slc_waits_for_agreement(job, strategy)) of.inspect = SLC_ITEM_INSPECT;
        of.compress = SLC_ITEM_COMPRESS;
        of.exchange = SLC_ITEM_EXCHANGE;
        return of;
    }
    bool whole = slc_updates_whole(strategy);
    of.moves_sum = of.keeps_sum = job->each || (slc_updated_last(job, unit) && slc_gradient_is_transient(strategy));
    of.reduce = whole && !job->each ? SLC_ITEM_ALL_REDUCE : SLC_ITEM_REDUCE_SCATTER;
    if (whole && job->each) of.gather_gradient = SLC_ITEM_GATHER_GRADIENT;
    of.whole_sum = whole && job->each && slc_reduced_dtype(job, unit) != slc_gradient_dtype(job, unit);
    if (!whole && !of.windows) of.gather_value = SLC_ITEM_GATHER_VALUE;
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
    if (!slc_looks_up(unit) || kind != SLC_BUFFER_GRADIENT) return unit->elements;
    return slc_round_up(slc_gradient_rows(job, unit) * unit->row_elements, 16 * (uint64_t)job->world);
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
        if (slc_looks_up(unit)) continue; /* reading goes to its partner */
        largest = slc_most(largest, slc_least(unit->elements, unit->block_elements));
    }
    return sluice_dtype_bytes(SLUICE_FP32) * largest;
}

uint64_t slc_operation_bytes(const slc_job *job, const slc_unit *unit, slc_item_kind kind, uint64_t elements)
{
    if (kind == SLC_ITEM_EXCHANGE) return unit->exchange.wire;
    if (slc_looks_up(unit) && slc_is_reduction(kind)) elements = slc_reduced_rows(job, unit) * unit->row_elements;
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
    if (slc_looks_up(unit)) return look_up_rows(unit, rows);
    if (slc_gathers_windows(strategy)) {
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
    if (of.keeps_sum) rows[count++] = (slc_buffer_rule){SLC_BUFFER_REDUCED, SLC_LIFE_REDUCED, !of.whole_sum, 0};
    for (uint32_t s = 0; s < job->states && count < SLC_BUFFER_RULES_MAX; s++)
        rows[count++] = (slc_buffer_rule){SLC_BUFFER_STATE, SLC_LIFE_RESIDENT, !slc_updates_whole(strategy), s};
    if (slc_exchanges(strategy)) count += onebit_rows(job, rows + count);
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

uint64_t slc_resident_bytes_of_all(const slc_job *job, const slc_strategy *strategies)
{
    uint64_t bytes = 0;
    for (uint32_t u = 0; u < job->unit_count; u++) bytes += slc_resident_bytes(job, &job->units[u], strategies[u]);
    return bytes;
}
