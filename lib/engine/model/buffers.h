/* The arena, and the buffers of the plan in force in it. Private to lib/engine. */
#pragma once

#include "lib/engine/model/state.h"
#include "lib/plan/plan.h"

#include <sluice/runtime.h>

/* The address of a buffer; NULL: the plan has none such. */
void *slc_engine_buffer(const sluice_runtime *rt, slc_buffer_kind kind, uint32_t unit, uint32_t index);
/* Claims bytes of a buffer as the plan says, at commit (statics) or when an item starts; releases them. */
sluice_status slc_engine_claim(sluice_runtime *rt, const slc_claim *claim);
sluice_status slc_engine_release(sluice_runtime *rt, const slc_claim *claim);

/* Claims or releases the staging buffer, which like everything else is claimed while it is used. */
sluice_status slc_staging_claim(sluice_runtime *rt, bool claim);
uint64_t slc_staging_bytes(const sluice_runtime *rt);
/* Gathers block number `block` of an array of a unit, of which each rank has its own part in `data` (the shard layout,
 * or in its place of the whole one), to the staging buffer, which is claimed. It is there when this returns.
 * Collective, with nothing pending. */
sluice_status slc_staging_gather(sluice_runtime *rt, const slc_unit *unit, const void *data, sluice_dtype dtype,
                                 bool shard, uint64_t block);

/* Memory for a piece of a file, which the system reads and writes: the staging buffer, which is claimed, or, if the
 * host cannot touch that, the room of the bounce block. */
typedef struct {
    void *memory;
    uint64_t bytes;
} slc_file_room;
slc_file_room slc_engine_file_room(const sluice_runtime *rt);
