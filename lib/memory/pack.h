/* Packing of lifetimes: decides the offset of every buffer in one arena so that no two overlap in address and time.
 *
 * A buffer is contiguous; what lives of it may differ over time: it is a set of rectangles (bytes x time). A gradient
 * whose blocks are released one after another is a staircase; packing uses the free corner. */
#ifndef SLC_MEMORY_PACK_H
#define SLC_MEMORY_PACK_H

#include <sluice/status.h>
#include <stddef.h>
#include <stdint.h>

enum { SLC_PACK_ALIGNMENT = 64 };

typedef struct {
    uint64_t first_byte, end_byte; /* of the buffer */
    uint32_t start, end;           /* times [start, end), any unit that only grows */
} slc_pack_part;

typedef struct {
    uint64_t bytes;
    const slc_pack_part *parts; /* inside [0, bytes); parts of one buffer may overlap */
    uint32_t part_count;
    uint64_t offset; /* result: multiple of SLC_PACK_ALIGNMENT */
} slc_pack_buffer;

/* Fills every `offset`; *peak is the highest end. Deterministic: the same input gives the same result everywhere.
 * Errors: MEMORY, ARGUMENT (a part outside its buffer). */
sluice_status slc_pack(slc_pack_buffer *buffers, size_t count, uint64_t *peak);

/* The same for a known limit: stops as soon as the peak is at most `target`, and tries `tries` more orders while it is
 * not. */
sluice_status slc_pack_within(slc_pack_buffer *buffers, size_t count, uint64_t target, uint32_t tries, uint64_t *peak);

/* Independent check, written without the packer's code: FORMAT names two buffers that overlap. */
sluice_status slc_pack_check(const slc_pack_buffer *buffers, size_t count);

/* The largest sum of live bytes at any time: no packing can be smaller. 0, a bound too, if memory runs out. */
uint64_t slc_pack_lower_bound(const slc_pack_buffer *buffers, size_t count);

#endif
