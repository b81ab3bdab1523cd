/* Packs by stacking: buffers are placed from the bottom of the arena upwards, each as low as those below it allow.
 * Private to lib/memory. */
#pragma once

#include "lib/memory/pack_buffer.h"

#include <sluice/status.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct slc_stack slc_stack;

/* Borrows the buffers, which were checked, for this call only. *out is NULL if there are so many that stacking would
 * take too long; else the caller destroys it. Errors: MEMORY. */
sluice_status slc_stack_create(const slc_pack_buffer *buffers, size_t count, slc_stack **out);
void slc_stack_destroy(slc_stack *stack);

/* Returns how many lives of buffers at moments this stack has looked at so far. */
uint64_t slc_stack_looked_at(const slc_stack *stack);

/* Returns a size that no stacked packing is below. If *exact, no packing at all is; else a buffer has live bytes on
 * both sides of dead ones, where stacking lets no other buffer lie. */
uint64_t slc_stack_lower_bound(slc_stack *stack, bool *exact);

/* Looks for offsets whose highest end is at most `target`. It makes at most `placements` placements, but at least one
 * whole try. If *found, it has filled offset[count] and *peak. A further call draws other orders. It is deterministic:
 * the same calls give the same results everywhere. */
void slc_stack_search(slc_stack *stack, uint64_t target, uint64_t placements, int64_t *offset, int64_t *peak,
                      bool *found);
