/* Packing of lifetimes: decides the offset of every buffer in one arena so that no two overlap in address and time.
 *
 * A buffer is contiguous, but different parts of it may live at different times: it is a set of rectangles (bytes x
 * time). A gradient whose blocks are released one after another is a staircase, and packing uses the free corner. */
#ifndef SLC_MEMORY_PACK_H
#define SLC_MEMORY_PACK_H

#include <sluice/status.h>
#include <stddef.h>
#include <stdint.h>

enum { SLC_PACK_ALIGNMENT = 64 };

typedef struct {
    uint64_t first_byte, end_byte; /* bytes within the buffer */
    uint32_t start, end;           /* times [start, end), in any unit that only grows */
} slc_pack_part;

typedef struct {
    uint64_t bytes;
    const slc_pack_part *parts; /* inside [0, bytes); parts of one buffer may overlap */
    uint32_t part_count;
    uint64_t offset; /* result: a multiple of SLC_PACK_ALIGNMENT */
} slc_pack_buffer;

/* Fills every `offset`; *peak is the highest end. Packing stops as soon as the peak is at most `target`, and tries up
 * to `tries` more orders than usual until it is; with 0 for both it packs as tightly as the usual orders do. It is
 * deterministic: the same input gives the same result everywhere. *looked_at (NULL: nobody asks) is how much work that
 * was: parts, and pairs of parts, that were looked at. Errors: MEMORY, ARGUMENT (a part outside its buffer, or more
 * buffers or bytes than can be packed). */
sluice_status slc_pack_within(slc_pack_buffer *buffers, size_t count, uint64_t target, uint32_t tries, uint64_t *peak,
                              uint64_t *looked_at);

/* Returns the largest sum of live bytes at any time: no packing can be smaller. If memory runs out it returns 0, which
 * is a bound too. */
uint64_t slc_pack_lower_bound(const slc_pack_buffer *buffers, size_t count);

#endif
