/* The workspaces of a slot (a layer's forward or backward) share one region, packed by their lifetimes inside the slot.
 * The plan sees one workspace per slot, as large as its region. Ranks may differ in their workspaces and in what they
 * reserve, since both follow from the processor and the threads: every rank makes room for the largest, so that one
 * plan fits all. Private to lib/engine. */
#pragma once

#include "lib/engine/model/state.h"

/* Packs the workspaces of all slots, takes the largest sizes and the most reserved bytes of all ranks, and adds the
 * regions to the job. Collective. Errors: MEMORY; those of the world. */
sluice_status slc_engine_make_regions(sluice_runtime *rt);
/* Packs them again for the shape that is set, and sets the bytes of the job's regions. As above else. */
sluice_status slc_engine_shape_regions(sluice_runtime *rt);
/* Fills in the three sizes of activations and workspaces. Errors: MEMORY. */
sluice_status slc_engine_account_activations(const sluice_runtime *rt, sluice_memory_report *report);

typedef struct {
    uint64_t bytes;
    uint32_t first, last; /* operations, inclusive; first < UINT32_MAX */
    uint64_t offset;      /* result: in the region, a multiple of 64 */
} slc_slot_life;

/* Packs the lives of one slot. Sizes are rounded up to 64 bytes. *live is the largest sum of what lives at one
 * operation: live <= packed <= sum. Errors: MEMORY. */
sluice_status slc_pack_slot(slc_slot_life *lives, uint32_t count, uint64_t *packed, uint64_t *live);

typedef struct {
    uint64_t sum, packed, bound;
} slc_activation_sizes;

/* Packs the job's activations and the regions of its slots, without anything else. Activations of a layer in
 * `recompute` are dropped between its slots. live_bytes[s] is the most that lives of slot s's workspaces at one
 * operation. `sum` adds `workspace_sum` to the activations' sizes; `bound` is the largest live set. Errors: MEMORY. */
sluice_status slc_size_activations(const slc_job *job, const bool *recompute, const uint64_t *live_bytes,
                                   uint64_t workspace_sum, slc_activation_sizes *out);
