/* tests/engine/engine_test.c covers this file. */
#include "lib/engine/model/buffers.h"

#include "lib/engine/model/unit.h"
#include "lib/engine/runtime.h"
#include "lib/memory/category.h"

void *slc_engine_buffer(const sluice_runtime *rt, slc_buffer_kind kind, uint32_t unit, uint32_t index)
{
    uint32_t buffer = slc_plan_buffer(rt->current.plan, kind, unit, index);
    return buffer == SLC_NONE ? NULL : rt->memory.base + rt->current.plan->buffers[buffer].offset;
}

sluice_status slc_engine_claim(sluice_runtime *rt, const slc_claim *claim)
{
    const slc_buffer *buffer = &rt->current.plan->buffers[claim->buffer];
    const char *what = buffer->unit != SLC_NONE ? rt->job.units[buffer->unit].name : slc_buffer_kind_name(buffer->kind);
    if (buffer->kind == SLC_BUFFER_ACTIVATION) what = rt->job.activations[buffer->index].name;
    if (buffer->kind == SLC_BUFFER_WORKSPACE) what = rt->job.workspaces[buffer->index].name;
    void *address;
    return slc_arena_claim(rt->memory.arena, slc_memory_category_of(buffer->kind), what,
                           buffer->offset + claim->first_byte, claim->end_byte - claim->first_byte, &address);
}

sluice_status slc_engine_release(sluice_runtime *rt, const slc_claim *claim)
{
    return slc_arena_release(rt->memory.arena, rt->current.plan->buffers[claim->buffer].offset + claim->first_byte,
                             claim->end_byte - claim->first_byte);
}

static uint32_t staging_buffer(const sluice_runtime *rt)
{
    return slc_plan_buffer(rt->current.plan, SLC_BUFFER_STAGING, SLC_NONE, 0);
}

sluice_status slc_staging_claim(sluice_runtime *rt, bool claim)
{
    const slc_claim staging = {.buffer = staging_buffer(rt), .end_byte = slc_staging_bytes(rt)};
    return claim ? slc_engine_claim(rt, &staging) : slc_engine_release(rt, &staging);
}

uint64_t slc_staging_bytes(const sluice_runtime *rt)
{
    return rt->current.plan->buffers[staging_buffer(rt)].bytes;
}

sluice_status slc_staging_gather(sluice_runtime *rt, const slc_unit *unit, const void *data, sluice_dtype dtype,
                                 bool shard, uint64_t block)
{
    const uint64_t start = block * unit->block_elements;
    const uint64_t length = slc_block_length(unit->elements, unit->block_elements, block);
    slc_op op = {.kind = SLC_ALL_GATHER,
                 .dtype = dtype,
                 .elements = length,
                 .block_elements = length,
                 .block_count = 1,
                 .src = slc_element(data, dtype, shard ? start / (uint64_t)rt->replicas : start),
                 .src_layout = shard ? SLC_SHARD : SLC_WHOLE,
                 .dst = rt->memory.staging,
                 .alone = true,
                 .what = "reading a parameter"};
    sluice_status status = slc_comm_submit(rt->lane, &op, 1, NULL);
    if (!status) status = slc_comm_wait(rt->lane, ++rt->lanes.next_operation);
    return status ? status : slc_comm_synchronize(rt->lane, rt->lanes.next_operation);
}

slc_file_room slc_engine_file_room(const sluice_runtime *rt)
{
    void *room = slc_bounce_room(&rt->memory.bounce);
    return room ? (slc_file_room){room, SLC_BOUNCE_ROOM_BYTES}
                : (slc_file_room){rt->memory.staging, slc_staging_bytes(rt)};
}
