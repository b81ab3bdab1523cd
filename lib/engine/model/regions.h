/* The workspaces of a slot (a layer's forward or backward) share one region: packed by their lifetimes inside the slot.
 * The plan sees one workspace a slot, as large as its region. Private to lib/engine. */
#ifndef SLC_ENGINE_REGIONS_H
#define SLC_ENGINE_REGIONS_H

#include "lib/plan/job.h"

#include <sluice/status.h>

typedef struct {
    uint64_t bytes;
    uint32_t first, last; /* operations, inclusive; first < UINT32_MAX */
    uint64_t offset;      /* result: in the region, a multiple of 64 */
} slc_slot_life;

/* Sizes are rounded up to 64 bytes. *live is the largest sum of what lives at one operation: live <= packed <= sum.
 * Errors: MEMORY. */
sluice_status slc_pack_slot(slc_slot_life *lives, uint32_t count, uint64_t *packed, uint64_t *live);

typedef struct {
    uint64_t sum, packed, bound;
} slc_activation_sizes;

/* The job's activations (those of a layer in `recompute` are dropped between its slots) and the regions of its slots,
 * packed alone. `live_bytes`: of each slot, the most that lives of its workspaces at one operation. `sum` adds
 * `workspace_sum` to the activations'; `bound` is the largest live set. Errors: MEMORY. */
sluice_status slc_size_activations(const slc_job *job, const bool *recompute, const uint64_t *live_bytes,
                                   uint64_t workspace_sum, slc_activation_sizes *out);

#endif
