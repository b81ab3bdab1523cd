/* The budget arena: one segment, from which every byte that training uses is claimed at an offset that the plan
 * decided. The arena counts what is really claimed, without looking at the plan, and checks that claims do not overlap.
 * Under the address sanitizer, memory that nobody claims is poisoned. Any thread may claim and release. */
#pragma once

#include "lib/device/device.h"

#include <sluice/status.h>

typedef enum {
    SLC_MEMORY_VALUES,
    SLC_MEMORY_MASTERS, /* fp32 masters of values in bf16 */
    SLC_MEMORY_GRADIENTS,
    SLC_MEMORY_OPTIMIZER,
    SLC_MEMORY_GATHERED,      /* fsdp: whole values around a forward or backward slot */
    SLC_MEMORY_REDUCED,       /* reduced gradient shards that wait for their update */
    SLC_MEMORY_COMMUNICATION, /* scratch for messages */
    SLC_MEMORY_ACTIVATIONS,
    SLC_MEMORY_WORKSPACES,
    SLC_MEMORY_REPLANNING, /* a buffer while the link is measured, and everything while a re-plan moves it */
    SLC_MEMORY_RESERVED,   /* bytes that the binary keeps for itself: counted, but not in the arena */
    SLC_MEMORY_CATEGORIES
} slc_memory_category;

const char *slc_memory_category_name(slc_memory_category category); /* "optimizer state", ...; static */

typedef struct slc_arena slc_arena;

/* Creates a segment of `bytes` on `device`. `reserved` bytes are counted on top of it: peak = highest end + reserved.
 * The caller destroys *out. Errors: MEMORY, those of slc_segment_create. */
sluice_status slc_arena_create(slc_device *device, uint64_t bytes, uint64_t reserved, slc_arena **out);
void slc_arena_destroy(slc_arena *arena);
slc_segment *slc_arena_segment(slc_arena *arena);

/* Takes a larger segment in the place of the arena's, which is destroyed; clears `larger`. Claims must then end at its
 * size. The caller has copied what it wants to keep, and uses neither. Errors: ORDER (something is claimed); the
 * segment stays the caller's. */
sluice_status slc_arena_replace(slc_arena *arena, slc_segment *larger);

/* Sets where claims must end: at `bytes`, which may not be more than the arena was created with. Memory below is made
 * present, memory above is given back to the system. Until the first call nothing is present, and claims must end at
 * the size of creation. Errors: ARGUMENT (more than created with), ORDER (something above is claimed). */
sluice_status slc_arena_limit(slc_arena *arena, uint64_t bytes);
/* The most that the limit may be. The segment is rounded up to pages, so it may have some bytes more. */
uint64_t slc_arena_most(const slc_arena *arena);

/* Claims [offset, offset + bytes) and returns its address in *out. `what` names the claim in messages; its pointer is
 * kept. Errors: ARGUMENT (no bytes, or a category that is not in the arena), ORDER (a byte is claimed already; the
 * message names both claims), BUDGET (beyond the end), MEMORY. */
sluice_status slc_arena_claim(slc_arena *arena, slc_memory_category category, const char *what, uint64_t offset,
                              uint64_t bytes, void **out);
/* Releases a whole claim or any part of one (a block of a staircase). Errors: ARGUMENT (no bytes), ORDER (no single
 * claim holds the range), MEMORY. */
sluice_status slc_arena_release(slc_arena *arena, uint64_t offset, uint64_t bytes);

/* Calls `fill` for each stretch of memory below the end that nobody holds, which it may write. The device is the host.
 */
void slc_arena_fill_free(slc_arena *arena, void (*fill)(void *memory, uint64_t bytes));

uint64_t slc_arena_peak(const slc_arena *arena);
uint64_t slc_arena_category_peak(const slc_arena *arena, slc_memory_category category);
