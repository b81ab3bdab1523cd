/* Says what kinds of operations have in common, and where the blocks and parts of an operation lie
 * (lib/base/ownership.h has the rule). Everything counts elements unless said otherwise. */
#pragma once

#include "lib/base/integer.h"
#include "lib/base/ownership.h"
#include "lib/comm/comm.h"

#include <sluice/dtype.h>

static inline bool slc_moves_rows(const slc_op *op)
{
    return op->kind == SLC_GATHER_ROWS || op->kind == SLC_REDUCE_ROWS;
}

static inline bool slc_gathers(const slc_op *op)
{
    return op->kind == SLC_GATHER_ROWS;
}

/* The type that an operation writes. */
static inline sluice_dtype slc_op_result(const slc_op *op)
{
    return op->widen ? SLUICE_FP32 : op->dtype;
}

static inline uint64_t slc_op_block_length(const slc_op *op, uint64_t block)
{
    return slc_block_length(op->elements, op->block_elements, block);
}

/* Elements of a part that are moved; of a compressed exchange's packet, the bytes that it really takes. */
static inline uint64_t slc_part_length(const slc_op *op, uint64_t block, int size)
{
    if (op->kind == SLC_COMPRESSED_EXCHANGE) return op->group->packet_bytes;
    return slc_op_block_length(op, block) / (uint64_t)size;
}

/* Returns the element at which `rank`'s part of a block begins, counted from the buffer's begin. */
static inline uint64_t slc_part_begin(const slc_op *op, slc_layout layout, uint64_t block, int rank, int size)
{
    slc_part part = slc_part_of_rank(op->elements, op->block_elements, block, (uint32_t)size, (uint32_t)rank);
    return layout == SLC_SHARD ? part.shard_first : part.first;
}

/* Compressed exchange: the address at which the packet of `peer` for this rank's chunks arrives, after the results. */
static inline char *slc_exchange_arrival(const slc_op *op, int peer)
{
    return (char *)op->dst + op->elements + (uint64_t)peer * op->group->stride;
}

/* The number of elements in the operation's blocks. */
static inline uint64_t slc_op_length(const slc_op *op)
{
    uint64_t begin = op->first_block * op->block_elements, end = begin + op->block_count * op->block_elements;
    return (end < op->elements ? end : op->elements) - begin;
}
