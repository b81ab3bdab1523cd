/* The tiles into which the fast attention cuts its work, and the layout of its workspace. */
#pragma once

#include "lib/kernels/attention/attention.h"

/* Tile sizes: multiples of 16; the size of a key tile is a multiple of that of a query block. */
enum {
    ATTENTION_FORWARD_KEYS = 128,
    ATTENTION_FORWARD_QUERIES = 64,
    ATTENTION_BACKWARD_KEYS = 128,
    ATTENTION_BACKWARD_QUERIES = 64
};

/* Offsets in the workspace of one part, in floats from its start. */
typedef struct {
    uint64_t mask, table, addends;                       /* see attention_addends.h */
    uint64_t factors;                                    /* dropout's factors for one row of a tile */
    uint64_t query, keys, values, scores, sums, weights; /* used by forward only */
    uint64_t floats;                                     /* size of the whole */
} slc_attention_forward_space;

typedef struct {
    uint64_t mask, table, addends, factors;
    uint64_t dtable;    /* for one item, laid out like `table` */
    uint64_t drelative; /* [heads][rows of the table], summed over the items of this part */
    uint64_t q, dout, k, kt, vt, p, ds, dk, dv, dq, delta;
    uint64_t floats;
} slc_attention_backward_space;

/* cached: keys and values lie in a cache, and the workspace has no room for them. */
slc_attention_forward_space slc_attention_forward_layout(const slc_attention_shape *shape, bool cached);
slc_attention_backward_space slc_attention_backward_layout(const slc_attention_shape *shape);

/* Size of one part's workspace in floats. */
uint64_t slc_attention_part_floats(const slc_attention_shape *shape, bool cached);

static inline uint64_t attention_padded(uint64_t count, uint64_t unit)
{
    return (count + unit - 1) / unit * unit;
}

/* Returns the number of table rows for pairs of patches; three more rows follow them. */
static inline uint64_t attention_distances(const slc_attention_shape *s)
{
    return s->relative ? (2 * s->window_h - 1) * (2 * s->window_w - 1) : 0;
}
