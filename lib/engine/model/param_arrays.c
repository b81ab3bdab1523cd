/* tests/checkpoint/onebit_checkpoint_test.c covers this file. */
#include "lib/engine/model/param_arrays.h"

#include "lib/engine/model/buffers.h"
#include "lib/engine/model/unit.h"
#include "lib/engine/runtime.h"
#include "lib/plan/strategy_table.h"

#include <string.h>

/* One value per element of a unit: whole on every rank, or the owned parts only. If the replicas of a whole array
 * are apart, only the owned parts count. */
typedef struct {
    void *data;
    sluice_dtype dtype;
    bool sharded;
} array;

static array values_of(const slc_unit_state *unit)
{
    return (array){unit->shard ? unit->shard : unit->value, unit->dtype, unit->shard != NULL};
}

static array masters_of(const slc_unit_state *unit)
{
    return unit->master ? (array){unit->master, SLUICE_FP32, !slc_updates_whole(unit->strategy)} : values_of(unit);
}

static array array_of(const sluice_param *param, uint32_t which)
{
    const slc_unit_state *unit = &param->rt->units[param->unit];
    return which ? (array){unit->state[which - 1], SLUICE_FP32, !slc_updates_whole(unit->strategy)} : masters_of(unit);
}

static sluice_status store(sluice_runtime *rt, array target, uint64_t at, const float *src, uint64_t count)
{
    void *dst = slc_element(target.data, target.dtype, at);
    return slc_bounce_write(&rt->memory.bounce, src, target.dtype, dst, count);
}

static sluice_status load(sluice_runtime *rt, array source, uint64_t at, float *dst, uint64_t count)
{
    const void *src = slc_element(source.data, source.dtype, at);
    return slc_bounce_read(&rt->memory.bounce, source.dtype, src, dst, count);
}

static sluice_status write_array(sluice_param *param, array target, uint64_t first, uint64_t count, const float *src)
{
    sluice_runtime *rt = param->rt;
    const uint64_t begin = param->first + first, end = begin + count;
    if (!target.sharded) return store(rt, target, begin, src, count);
    for (slc_part range = {.first = begin}; range.first < end; range.first += range.count) {
        range = slc_part_first_owned(param, range.first - param->first, end - range.first);
        if (!range.count) break;
        sluice_status status = store(rt, target, range.shard_first, src + (range.first - begin), range.count);
        if (status) return status;
    }
    return SLUICE_OK;
}

static sluice_status write_values(sluice_param *param, uint64_t first, uint64_t count, const float *src)
{
    const slc_unit_state *unit = &param->rt->units[param->unit];
    sluice_status status = write_array(param, masters_of(unit), first, count, src);
    if (!status && unit->master) status = write_array(param, values_of(unit), first, count, src);
    return status;
}

static sluice_status read_owners(sluice_param *param, array source, uint64_t first, uint64_t count, float *dst)
{
    sluice_runtime *rt = param->rt;
    const slc_unit *unit = &rt->job.units[param->unit];
    uint64_t at = param->first + first, end = at + count;
    sluice_status status = slc_staging_claim(rt, true);
    if (status) return status;
    while (!status && at < end) {
        uint64_t block = at / unit->block_elements, start = block * unit->block_elements;
        uint64_t block_end = start + unit->block_elements < end ? start + unit->block_elements : end;
        status = slc_staging_gather(rt, unit, source.data, source.dtype, source.sharded, block);
        if (!status)
            status = load(rt, (array){rt->memory.staging, source.dtype, false}, at - start, dst, block_end - at);
        dst += block_end - at;
        at = block_end;
    }
    sluice_status released = slc_staging_claim(rt, false);
    return status ? status : released;
}

/* The only rank owns everything, where it would be as a whole. */
static bool has_owners(const sluice_param *param, uint32_t which)
{
    return param->rt->replicas > 1 && (array_of(param, which).sharded || param->apart);
}

bool slc_param_is_replica(const sluice_param *param, uint32_t which)
{
    const sluice_runtime *rt = param->rt;
    return slc_is_stage(&rt->stage) && rt->replicas > 1 && param->unit != SLC_NONE && !has_owners(param, which);
}

sluice_status slc_param_get_replica(const sluice_param *param, uint32_t which, uint64_t first, uint64_t count,
                                    float *dst)
{
    return load(param->rt, array_of(param, which), param->first + first, dst, count);
}

/* Reads an array of a stage: its replicas gather it, and the first of them sends it to all. */
static sluice_status get_from_stage(sluice_param *param, uint32_t which, uint64_t first, uint64_t count, float *dst)
{
    sluice_runtime *rt = param->rt;
    sluice_status status = SLUICE_OK;
    if (param->unit != SLC_NONE && has_owners(param, which))
        status = read_owners(param, array_of(param, which), first, count, dst);
    else if (param->unit != SLC_NONE)
        status = load(rt, array_of(param, which), param->first + first, dst, count);
    return status ? status
                  : sluice_world_broadcast(rt->world, dst, count * sizeof *dst, (int)param->holder * rt->replicas);
}

bool slc_param_is_gathered(const sluice_param *param, uint32_t which)
{
    return slc_is_stage(&param->rt->stage) || has_owners(param, which);
}

const float *slc_param_whole(const sluice_param *param, uint32_t which)
{
    if (slc_bounce_room(&param->rt->memory.bounce) || slc_param_is_gathered(param, which)) return NULL;
    const array source = array_of(param, which);
    return source.dtype == SLUICE_FP32 ? slc_element(source.data, source.dtype, param->first) : NULL;
}

sluice_status slc_param_get(sluice_param *param, uint32_t which, uint64_t first, uint64_t count, float *dst)
{
    if (!count) return SLUICE_OK;
    if (slc_is_stage(&param->rt->stage)) return get_from_stage(param, which, first, count, dst);
    if (slc_param_is_gathered(param, which)) return read_owners(param, array_of(param, which), first, count, dst);
    const array source = array_of(param, which);
    return load(param->rt, source, param->first + first, dst, count);
}

bool slc_param_owned(const sluice_param *param, uint64_t *first, uint64_t *count)
{
    slc_part range = slc_part_first_owned(param, *first, *count);
    *first = range.first - param->first;
    *count = range.count;
    return range.count > 0;
}

bool slc_param_kept(const sluice_param *param, uint32_t which, uint64_t *first, uint64_t *count)
{
    if (param->unit == SLC_NONE) return false;
    /* Every rank may hold values whole though their masters are sharded. */
    bool whole = !array_of(param, which).sharded || (!which && !param->rt->units[param->unit].shard);
    return whole ? *count > 0 : slc_param_owned(param, first, count);
}

const void *slc_param_owned_at(const sluice_param *param, uint32_t which, uint64_t first, uint64_t count,
                               sluice_dtype *dtype)
{
    const slc_part range = slc_part_first_owned(param, first, count);
    const array source = array_of(param, which);
    *dtype = source.dtype;
    return slc_element(source.data, source.dtype, source.sharded ? range.shard_first : range.first);
}

sluice_status slc_param_add_owned(const sluice_param *param, uint32_t which, int64_t *bins)
{
    array source = array_of(param, which);
    uint64_t done = 0;
    /* A GPU adds to memory that it reads in place. */
    int64_t *sums = slc_bounce_room(&param->rt->memory.bounce);
    if (sums)
        memset(sums, 0, SLC_NORM_BINS * sizeof *sums);
    else
        sums = bins;
    for (slc_part range; (range = slc_part_first_owned(param, done, param->count - done)).count;) {
        done = range.first - param->first + range.count;
        const void *from = slc_element(source.data, source.dtype, source.sharded ? range.shard_first : range.first);
        sluice_status status = slc_norm_add(&param->rt->compute, source.dtype, range.count, from, sums);
        if (status) return status;
        if (done == param->count) break;
    }
    sluice_status status = slc_stream_synchronize(&param->rt->compute);
    for (int i = 0; !status && sums != bins && i < SLC_NORM_BINS; i++) bins[i] += sums[i];
    return status;
}

sluice_status slc_param_put(sluice_param *param, uint32_t which, uint64_t first, uint64_t count, const float *src)
{
    if (param->unit == SLC_NONE) return SLUICE_OK; /* another stage keeps it */
    if (!which) return write_values(param, first, count, src);
    return write_array(param, array_of(param, which), first, count, src);
}

float *slc_param_values_at(const sluice_param *param, uint32_t which, uint64_t first, uint64_t *count)
{
    const slc_unit_state *unit = &param->rt->units[param->unit];
    const array target = array_of(param, which);
    const bool twice = !which && unit->master; /* masters, and values that are rounded from them */
    if (slc_bounce_room(&param->rt->memory.bounce) || target.dtype != SLUICE_FP32 || twice) return NULL;
    uint64_t at = param->first + first;
    if (target.sharded) {
        const slc_part range = slc_part_first_owned(param, first, *count);
        at = range.shard_first;
        *count = range.count;
    }
    return slc_element(target.data, target.dtype, at);
}
