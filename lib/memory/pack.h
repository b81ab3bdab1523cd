/* Packing of lifetimes: decides the offset of every buffer in one arena so that no two overlap in address and time. */
#pragma once

#include "lib/memory/pack_buffer.h"

#include <sluice/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fills every `offset`; *peak is the highest end. Packing stops as soon as the peak is at most `target`, and tries up
 * to `tries` more orders than usual until it is; with 0 for both it packs as tightly as the usual orders do. It is
 * deterministic: the same input gives the same result everywhere. *looked_at (NULL: nobody asks) is how much work that
 * was: parts, and pairs of parts, that were looked at. Errors: MEMORY, ARGUMENT (a part outside its buffer, or more
 * buffers or bytes than can be packed). */
sluice_status slc_pack_within(slc_pack_buffer *buffers, size_t count, uint64_t target, uint32_t tries, uint64_t *peak,
                              uint64_t *looked_at);

/* Moves the buffer `index` to the gap that fits it best between those buffers that are not `absent` [count], which stay
 * where they are; if there is none, on top of those that are in its way. *looked_at grows by the parts, and pairs of
 * parts, that were looked at. Errors: MEMORY. */
sluice_status slc_pack_one(slc_pack_buffer *buffers, size_t count, const bool *absent, size_t index,
                           uint64_t *looked_at);

/* Returns true if two buffers share a byte at some moment, at the offsets that they have. */
bool slc_pack_clash(const slc_pack_buffer *a, const slc_pack_buffer *b);
