/* A profile says how many bytes of one buffer live at each time: the size of the union of its parts, as a step
 * function. Private to lib/memory. */
#pragma once

#include "lib/memory/pack_buffer.h"

typedef struct {
    uint32_t start, end; /* times [start, end) */
    uint64_t live_bytes; /* > 0 */
} slc_pack_step;

/* Fills at most 2 * part_count steps, ascending and disjoint, and returns their number. The scratch arrays hold
 * part_count parts and 2 * part_count times. Empty parts do not count. */
uint32_t slc_pack_profile(const slc_pack_buffer *buffer, slc_pack_part *scratch_parts, uint32_t *scratch_times,
                          slc_pack_step *steps);
