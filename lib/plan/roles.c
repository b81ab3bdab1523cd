/* The table of roles. lib/plan/json/plan_json_test.c covers this file. */
#include "lib/plan/roles.h"

#define STRATEGY(name) (1 << SLC_##name)
#define KIND(name) (1 << SLC_ITEM_##name)

const slc_role_rules slc_roles[] = {
    [SLC_UNIT_WHOLE] = {.strategies = (1 << SLC_STRATEGIES) - 1,
                        .otherwise = SLC_DP,
                        .late = ~(uint32_t)KIND(GATHER_WINDOW),
                        .fuses = true},
    [SLC_UNIT_SPLIT] = {.strategies = STRATEGY(OSS) | STRATEGY(SDP) | STRATEGY(FSDP), /* dp's owners would add rows that
                                                                                         other ranks' look-ups touch */
                        .otherwise = SLC_OSS,
                        .late = KIND(GATHER_VALUE),
                        .partner_reads_first = true,
                        .waits = {{SLC_ITEM_REDUCE_SCATTER, SLC_ITEM_REDUCE_SCATTER, SLC_MICRO_BATCH_BEFORE},
                                  {SLC_ITEM_UPDATE, SLC_ITEM_REDUCE_SCATTER, SLC_SAME_MICRO_BATCH}}},
    [SLC_UNIT_ROWS] = {.strategies = STRATEGY(FSDP), /* its table comes and goes */
                       .otherwise = SLC_FSDP,
                       .looks_up = true,
                       .waits = {{SLC_ITEM_REDUCE_SCATTER, SLC_ITEM_REDUCE_SCATTER, SLC_SAME_MICRO_BATCH},
                                 {SLC_ITEM_GATHER_WINDOW, SLC_ITEM_UPDATE, SLC_STEP_BEFORE}}},
};

bool slc_unit_may_be(const slc_job *job, const slc_unit *unit, slc_strategy strategy)
{
    return (int)strategy < slc_job_strategies(job) && slc_role_of(unit)->strategies >> strategy & 1 &&
           (strategy != SLC_ONEBIT || unit->trainable);
}

slc_strategy slc_unit_strategy(const slc_job *job, const slc_unit *unit, slc_strategy asked)
{
    return slc_unit_may_be(job, unit, asked) ? asked : slc_role_of(unit)->otherwise;
}

bool slc_unit_is_free(const slc_unit *unit, slc_strategy asked)
{
    uint8_t choices = slc_role_of(unit)->strategies;
    return asked == SLC_STRATEGIES && (choices & (choices - 1));
}

bool slc_precedes_agreement(const slc_job *job, slc_item_kind kind)
{
    return slc_is_reduction(kind) || kind == SLC_ITEM_INSPECT ||
           (kind == SLC_ITEM_COMPRESS && !slc_exchange_waits(job));
}

bool slc_may_be_late(const slc_job *job, const slc_item *item)
{
    if (item->kind == SLC_ITEM_SLOT) return false;
    if (item->kind == SLC_ITEM_AGREE) return !job->barrier;
    bool agreement_waits = job->barrier && slc_precedes_agreement(job, item->kind);
    return slc_role_of(&job->units[item->unit])->late >> item->kind & 1 && !agreement_waits;
}

const slc_partner_wait *slc_partner_wait_of(const slc_unit *unit, slc_item_kind kind)
{
    const slc_partner_wait *waits = slc_role_of(unit)->waits;
    for (int i = 0; i < SLC_PARTNER_WAITS && waits[i].kind != SLC_ITEM_SLOT; i++)
        if (waits[i].kind == kind) return &waits[i];
    return NULL;
}

uint32_t slc_parameter_unit(const slc_job *job, uint32_t unit)
{
    return slc_looks_up(&job->units[unit]) ? job->units[unit].partner : unit;
}

const slc_unit *slc_first_reader(const slc_job *job, const slc_unit *unit)
{
    return slc_role_of(unit)->partner_reads_first ? &job->units[unit->partner] : unit;
}

bool slc_job_splits(const slc_job *job)
{
    for (uint32_t u = 0; u < job->unit_count; u++)
        if (slc_role_of(&job->units[u])->partner_reads_first) return true;
    return false;
}
