/* The budget arena: one segment; every byte that training uses is claimed from it at an offset that the plan decided.
 * It counts what is really claimed, without looking at the plan, and checks that claims do not overlap. Under the
 * address sanitizer, memory that nobody claims is poisoned. Any thread may claim and release. */
#ifndef SLC_MEMORY_ARENA_H
#define SLC_MEMORY_ARENA_H

#include "lib/device/device.h"

#include <sluice/status.h>

typedef enum {
    SLC_MEMORY_VALUES,
    SLC_MEMORY_MASTERS, /* fp32 masters of values in bf16 */
    SLC_MEMORY_GRADIENTS,
    SLC_MEMORY_OPTIMIZER,
    SLC_MEMORY_GATHERED,      /* fsdp: whole values around F and B */
    SLC_MEMORY_REDUCED,       /* reduced gradient shards that wait */
    SLC_MEMORY_COMMUNICATION, /* scratch for messages */
    SLC_MEMORY_ACTIVATIONS,
    SLC_MEMORY_WORKSPACES,
    SLC_MEMORY_REPLANNING, /* while the link is measured, and everything while a re-plan moves it */
    SLC_MEMORY_RESERVED,   /* what the binary keeps itself: counted, not in the arena */
    SLC_MEMORY_CATEGORIES
} slc_memory_category;

const char *slc_memory_category_name(slc_memory_category category); /* "optimizer state", ... */

typedef struct slc_arena slc_arena;

/* A segment of `bytes` on `device`. `reserved` counts as in use at its end: peak = highest end + reserved. */
sluice_status slc_arena_create(slc_device *device, uint64_t bytes, uint64_t reserved, slc_arena **out);
void slc_arena_destroy(slc_arena *arena);
slc_segment *slc_arena_segment(slc_arena *arena);

/* Sets where claims must end: at most `bytes`, which is at most what the arena was created with. Memory up to there is
 * made present, memory above is given back to the system. Until this is called, nothing is present and the end is that
 * of creation. Errors: ARGUMENT (beyond creation's), ORDER (something above is claimed). */
sluice_status slc_arena_limit(slc_arena *arena, uint64_t bytes);

/* Claims [offset, offset + bytes). Errors: ORDER when any byte is claimed already (names both), BUDGET beyond the end.
 * `what` is kept by pointer for messages. Results: the address. */
sluice_status slc_arena_claim(slc_arena *arena, slc_memory_category category, const char *what, uint64_t offset,
                              uint64_t bytes, void **out);
/* Releases exactly a claim, or a prefix or any other part of one (a block of a staircase). */
sluice_status slc_arena_release(slc_arena *arena, uint64_t offset, uint64_t bytes);

/* Calls `fill` for each stretch of memory below the end that nobody holds, which it may write. */
void slc_arena_fill_free(slc_arena *arena, void (*fill)(void *memory, uint64_t bytes));

uint64_t slc_arena_bytes(const slc_arena *arena); /* where claims must end */
uint64_t slc_arena_peak(const slc_arena *arena);
uint64_t slc_arena_category_peak(const slc_arena *arena, slc_memory_category category);

#endif
