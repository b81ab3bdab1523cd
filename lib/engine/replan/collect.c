/* Collects the parts of new units that this rank owns. The blocks of the units before are gathered one after the other
 * in the staging buffer, and each rank copies its own parts from there. tests/engine/regroup_test.c covers this file.
 */
#include "lib/engine/replan/regroup.h"

#include "lib/base/integer.h"
#include "lib/engine/model/buffers.h"
#include "lib/engine/model/unit.h"
#include "lib/engine/runtime.h"

typedef struct {
    sluice_runtime *rt;
    const slc_regrouping *regrouping;
    const slc_transition *transition;
} collecting;

/* Elements [first, first + count) of an array of a unit of before. */
typedef struct {
    uint32_t unit, array;
    sluice_dtype dtype;
    uint64_t first, count;
    const void *data; /* of the first one */
} run;

/* NULL: the array of the new unit is not collected. */
static void *collected_memory(const collecting *c, uint32_t unit, uint32_t array)
{
    const slc_transition *t = c->transition;
    for (size_t i = 0; i < t->collected_count; i++)
        if (t->collected[i].unit == unit && t->collected[i].array == array)
            return c->rt->memory.base + t->collected[i].offset;
    return NULL;
}

/* Copies those of elements [first, first + count) of a new unit that this rank owns. `data`: where they are. */
static sluice_status copy_owned(const collecting *c, uint32_t unit, uint32_t array, sluice_dtype dtype,
                                const void *data, uint64_t first, uint64_t count)
{
    sluice_runtime *rt = c->rt;
    const slc_unit *to = &rt->job.units[unit];
    void *memory = collected_memory(c, unit, array);
    sluice_status status = SLUICE_OK;
    for (uint64_t b = first / to->block_elements; memory && !status && b * to->block_elements < first + count; b++) {
        const slc_part part = slc_unit_part(to, (uint32_t)rt->size, b, (uint32_t)rt->rank);
        const uint64_t begin = slc_most(part.first, first), end = slc_least(part.first + part.count, first + count);
        if (begin < end)
            status = slc_copy(&rt->compute, slc_element(memory, dtype, part.shard_first + (begin - part.first)),
                              slc_element(data, dtype, begin - first), sluice_dtype_bytes(dtype) * (end - begin));
    }
    return status;
}

static sluice_status copy_run(const collecting *c, const run *from)
{
    sluice_status status = SLUICE_OK;
    for (size_t i = 0; !status && i < c->regrouping->piece_count; i++) {
        const slc_unit_piece *piece = &c->regrouping->pieces[i];
        const uint64_t begin = slc_most(piece->first_before, from->first),
                       end = slc_least(piece->first_before + piece->count, from->first + from->count);
        if (piece->before == from->unit && begin < end)
            status = copy_owned(c, piece->unit, from->array, from->dtype,
                                slc_element(from->data, from->dtype, begin - from->first),
                                piece->first + (begin - piece->first_before), end - begin);
    }
    return status ? status : slc_stream_synchronize(&c->rt->compute);
}

static sluice_status collect_array(const collecting *c, uint32_t u, uint32_t array)
{
    sluice_runtime *rt = c->rt;
    const slc_unit *unit = &c->regrouping->before.units[u];
    slc_kept_array kept;
    sluice_status status = slc_find_kept_array(&c->regrouping->job_before, rt->current.plan, u, array, &kept);
    if (status) return status;
    const void *data = rt->memory.base + kept.offset;
    if (!kept.shard) return copy_run(c, &(run){u, array, kept.dtype, 0, unit->elements, data});
    for (uint64_t b = 0; !status && b < slc_unit_blocks(unit); b++) {
        const run block = {u,
                           array,
                           kept.dtype,
                           b * unit->block_elements,
                           slc_block_length(unit->elements, unit->block_elements, b),
                           rt->memory.staging};
        status = slc_staging_gather(rt, unit, data, kept.dtype, true, b);
        if (!status) status = copy_run(c, &block);
    }
    return status;
}

/* Returns true if a unit of before is none of the units now, because others are made of it. */
static bool is_gone(const collecting *c, uint32_t before)
{
    for (uint32_t u = 0; u < c->rt->job.unit_count; u++)
        if (c->regrouping->same[u] == before) return false;
    return true;
}

sluice_status slc_collect_units(sluice_runtime *rt, const slc_regrouping *regrouping, const slc_transition *transition)
{
    const collecting c = {rt, regrouping, transition};
    const slc_job *before = &regrouping->job_before;
    sluice_status status = SLUICE_OK;
    if (!transition->collected_count) return SLUICE_OK;
    for (uint32_t u = 0; !status && u < before->unit_count; u++)
        for (uint32_t a = 0; !status && is_gone(&c, u) && a < SLC_KEPT_STATES + before->states; a++)
            if (slc_has_kept_array(before, u, a)) status = collect_array(&c, u, a);
    return status;
}
