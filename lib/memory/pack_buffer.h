/* A buffer that is packed. It is contiguous, but different parts of it may live at different times: it is a set of
 * rectangles (bytes x time). A gradient whose blocks are released one after another is a staircase, and packing uses
 * the free corner. */
#pragma once

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
