/* Where things lie: blocks and parts of an operation, as comm.h defines them. All in elements unless said otherwise. */
#ifndef SLC_COMM_GEOMETRY_H
#define SLC_COMM_GEOMETRY_H

#include "lib/comm/comm.h"

#include <sluice/dtype.h>

/* The type of what an operation writes. */
static inline slc_dtype slc_op_result(const slc_op *op)
{
    return op->widen ? SLC_FLOAT32 : op->dtype;
}

static inline sluice_dtype slc_float_type(slc_dtype dtype)
{
    return dtype == SLC_BFLOAT16 ? SLUICE_BF16 : SLUICE_FP32;
}

/* Length of block `block`; the last may be shorter. */
static inline uint64_t slc_block_length(const slc_op *op, uint64_t block)
{
    uint64_t begin = block * op->block_elements;
    uint64_t left = op->elements - begin;
    return left < op->block_elements ? left : op->block_elements;
}

/* What is moved of a part: of a packet (in bytes), no more than it takes. */
static inline uint64_t slc_part_length(const slc_op *op, uint64_t block, int size)
{
    if (op->kind == SLC_COMPRESSED_EXCHANGE) return op->group->packet_bytes;
    return slc_block_length(op, block) / (uint64_t)size;
}

/* Begin of `rank`'s part of a block, from the buffer's begin. */
static inline uint64_t slc_part_begin(const slc_op *op, slc_layout layout, uint64_t block, int rank, int size)
{
    if (layout == SLC_SHARD) return block * op->block_elements / (uint64_t)size;
    return block * op->block_elements + (uint64_t)rank * (slc_block_length(op, block) / (uint64_t)size);
}

/* All elements of the operation's blocks. */
static inline uint64_t slc_op_length(const slc_op *op)
{
    uint64_t begin = op->first_block * op->block_elements, end = begin + op->block_count * op->block_elements;
    return (end < op->elements ? end : op->elements) - begin;
}

#endif
