/* Flash attention backward (arXiv 2205.14135, algorithm 4): weights are recomputed tile by tile from logsumexp. A tile
 * of keys keeps its dK and dV in cache while all queries pass; dQ accumulates in the workspace.
 * attention_test.c covers this file. */
#include "lib/kernels/attention/attention_addends.h"
#include "lib/kernels/attention/attention_cpu.h"
#include "lib/kernels/attention/attention_tile.h"
#include "lib/kernels/dropout/dropout_lanes.h"

enum { KEYS = ATTENTION_BACKWARD_KEYS, QUERIES = ATTENTION_BACKWARD_QUERIES };

typedef struct {
    const slc_attention_shape *shape;
    uint64_t depth, padded; /* head size, and the same rounded up to whole lanes */
    uint64_t seen;          /* no query sees the keys from this one on */
    float scale;
    addends addends;
    float *addend_rows;     /* [GROUP][KEYS] */
    uint64_t weight;        /* dropout's index of this head's first weight */
    float *factors;         /* room for dropout's factors of one row */
    const float *logsumexp; /* [tokens] */
    float *delta;           /* [tokens]: dout . out */
    float *q, *dout;        /* [QUERIES][padded]; q is multiplied by scale */
    float *k;               /* [KEYS][padded], this tile */
    float *kt, *vt;         /* [depth][KEYS], this tile transposed */
    float *p, *ds;          /* [QUERIES][KEYS]: weights, and the derivative by the scores */
    float *dq;              /* [tokens][padded]; not yet multiplied by scale */
    float *dk, *dv;         /* [KEYS][padded] */
} head;

/* Turns scores (p) and dout . v (ds) into the weights that v is multiplied by and the derivative by the scores.
 * `addend` and dropout's `factors` may be NULL. */
LANES_INLINE void row_derivative(const head *h, float *p, float *ds, const float *addend, const float *factors,
                                 uint64_t count, uint64_t query)
{
    lanes base = lanes_set(h->logsumexp[query]), delta = lanes_set(h->delta[query]);
    for (uint64_t at = 0; at < count; at += LANES) {
        lanes score = lanes_load(p + at);
        if (addend) score = lanes_add(score, lanes_load(addend + at));
        lanes weight = lanes_exp(lanes_sub(score, base));
        lanes factor = factors ? lanes_load(factors + at) : lanes_set(1.0f), dweight = lanes_load(ds + at);
        if (factors) dweight = lanes_mul(dweight, factor);
        lanes_store(p + at, factors ? lanes_mul(weight, factor) : weight);
        lanes_store(ds + at, lanes_mul(weight, lanes_sub(dweight, delta)));
    }
}

/* Zeroes the row from `valid` on. */
LANES_INLINE void row_cut(float *row, uint64_t valid)
{
    if (valid % LANES) {
        float *border = row + valid / LANES * LANES;
        lanes_store(border, lanes_first(lanes_load(border), valid % LANES, 0.0f));
    }
    for (uint64_t at = attention_padded(valid, LANES); at < KEYS; at += LANES) lanes_store(row + at, lanes_set(0.0f));
}

/* Computes queries q0..q0+rows-1 against keys k0..end-1; the first of these queries is number `first` of its block. */
static void group_step(const head *h, uint64_t first, uint64_t q0, uint64_t rows, uint64_t k0, uint64_t end)
{
    const uint64_t used = attention_padded(end - k0, LANES) / LANES, padded = h->padded;
    const bool add = addends_any(&h->addends);
    float *p = h->p + first * KEYS, *ds = h->ds + first * KEYS;
    if (add) addends_rows(&h->addends, q0, rows, k0, end, h->addend_rows, KEYS);
    tile_product(rows, used, h->depth, (tile_left){h->q + first * padded, padded, 1}, h->kt, KEYS, (tile_out){p, KEYS},
                 false);
    tile_product(rows, used, h->depth, (tile_left){h->dout + first * padded, padded, 1}, h->vt, KEYS,
                 (tile_out){ds, KEYS}, false);
    for (uint64_t r = 0; r < rows; r++) {
        uint64_t valid_end = h->shape->causal && q0 + r + 1 < end ? q0 + r + 1 : end;
        float *weights = p + r * KEYS, *slopes = ds + r * KEYS;
        const float *addend = add ? h->addend_rows + r * KEYS : NULL, *factors = NULL;
        if (h->shape->dropout)
            factors = dropout_factors(h->shape->dropout, h->weight + (q0 + r) * h->shape->tokens + k0, valid_end - k0,
                                      h->factors);
        if (addend || factors)
            row_derivative(h, weights, slopes, addend, factors, valid_end - k0, q0 + r);
        else
            row_derivative(h, weights, slopes, NULL, NULL, valid_end - k0, q0 + r);
        row_cut(weights, valid_end - k0), row_cut(slopes, valid_end - k0);
        if (h->addends.dtable) addends_relative_backward(&h->addends, q0 + r, k0, valid_end, slopes);
    }
    tile_product(rows, padded / LANES, end - k0, (tile_left){ds, KEYS, 1}, h->k, padded,
                 (tile_out){h->dq + q0 * padded, padded}, true);
}

/* dV += P^T dO and dK += dS^T Q, for the block of queries q0..q0+rows-1. */
static void keys_step(const head *h, uint64_t q0, uint64_t rows, uint64_t k0, uint64_t count)
{
    const uint64_t padded = h->padded, width = padded / LANES;
    for (uint64_t g = 0; g < count; g += GROUP) {
        uint64_t some = count - g < GROUP ? count - g : GROUP;
        uint64_t skip = h->shape->causal && k0 + g > q0 ? k0 + g - q0 : 0; /* earlier queries do not see these keys */
        if (skip >= rows) continue;
        tile_product(some, width, rows - skip, (tile_left){h->p + skip * KEYS + g, 1, KEYS}, h->dout + skip * padded,
                     padded, (tile_out){h->dv + g * padded, padded}, true);
        tile_product(some, width, rows - skip, (tile_left){h->ds + skip * KEYS + g, 1, KEYS}, h->q + skip * padded,
                     padded, (tile_out){h->dk + g * padded, padded}, true);
    }
}

/* Index of this head's first element in the arrays with row_stride (in) and out_stride (out). */
typedef struct {
    uint64_t in, out;
} place;

static void key_tile(const head *h, const slc_attention_backward_args *args, place at, uint64_t k0, uint64_t count)
{
    const slc_attention_shape *s = h->shape;
    const uint64_t keys_at = at.in + k0 * s->row_stride;
    tile_pack(s->dtype, count, h->depth, args->v, keys_at, s->row_stride, 1.0f, h->k);
    tile_transpose(count, h->depth, h->k, h->padded, h->vt, KEYS);
    tile_pack(s->dtype, count, h->depth, args->k, keys_at, s->row_stride, 1.0f, h->k);
    tile_transpose(count, h->depth, h->k, h->padded, h->kt, KEYS);
    memset(h->dk, 0, count * h->padded * sizeof *h->dk);
    memset(h->dv, 0, count * h->padded * sizeof *h->dv);
    for (uint64_t q0 = s->causal ? k0 : 0; q0 < s->tokens; q0 += QUERIES) {
        uint64_t rows = s->tokens - q0 < QUERIES ? s->tokens - q0 : QUERIES;
        tile_pack(s->dtype, rows, h->depth, args->q, at.in + q0 * s->row_stride, s->row_stride, h->scale, h->q);
        tile_pack(s->dtype, rows, h->depth, args->dout, at.out + q0 * s->out_stride, s->out_stride, 1.0f, h->dout);
        for (uint64_t g = 0; g < rows; g += GROUP) {
            uint64_t some = rows - g < GROUP ? rows - g : GROUP, last = q0 + g + some;
            uint64_t end = s->causal && last - k0 < count ? last : k0 + count;
            group_step(h, g, q0 + g, some, k0, end);
        }
        keys_step(h, q0, rows, k0, count);
    }
    tile_unpack(s->dtype, count, h->depth, h->dk, 1.0f, args->dk, keys_at, s->row_stride);
    tile_unpack(s->dtype, count, h->depth, h->dv, 1.0f, args->dv, keys_at, s->row_stride);
}

LANES_INLINE float dot_as(const sluice_dtype dtype, uint64_t count, const void *a, const void *b, uint64_t at)
{
    lanes sum = lanes_set(0.0f);
    for (uint64_t i = 0; i < count; i += LANES)
        sum = lanes_fma(lanes_load_some_as(dtype, a, at + i, count - i, 0.0f),
                        lanes_load_some_as(dtype, b, at + i, count - i, 0.0f), sum);
    return lanes_sum(sum);
}

static void head_backward(head *h, const slc_attention_backward_args *args, place at)
{
    const slc_attention_shape *s = h->shape;
    for (uint64_t t = 0; t < s->tokens; t++) {
        uint64_t row = at.out + t * s->out_stride;
        h->delta[t] = LANES_BY_TYPE(s->dtype, dot_as, h->depth, args->out, args->dout, row);
    }
    memset(h->dq, 0, s->tokens * h->padded * sizeof *h->dq);
    for (uint64_t k0 = 0; k0 < h->seen; k0 += KEYS)
        key_tile(h, args, at, k0, h->seen - k0 < KEYS ? h->seen - k0 : KEYS);
    tile_unpack(s->dtype, s->tokens, h->depth, h->dq, h->scale, args->dq, at.in, s->row_stride);

    memset(h->dk, 0, h->padded * sizeof *h->dk);
    for (uint64_t t = h->seen; t < s->tokens; t++) {
        tile_unpack(s->dtype, 1, h->depth, h->dk, 1.0f, args->dk, at.in + t * s->row_stride, 0);
        tile_unpack(s->dtype, 1, h->depth, h->dk, 1.0f, args->dv, at.in + t * s->row_stride, 0);
    }
}

void SLC_ISA(slc_attention_backward_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    const slc_attention_backward_args *args = context;
    const slc_attention_shape *s = &args->shape;
    const slc_attention_backward_space space = slc_attention_backward_layout(s);
    const uint64_t table_rows = attention_distances(s) + 3;
    float *base = (float *)args->workspace + part * slc_attention_part_floats(s, false);
    head h = {.shape = s,
              .depth = s->head_size,
              .padded = attention_padded(s->head_size, LANES),
              .scale = (float)(1.0 / sqrt((double)s->head_size)),
              .addend_rows = base + space.addends,
              .factors = base + space.factors,
              .delta = base + space.delta,
              .q = base + space.q,
              .dout = base + space.dout,
              .k = base + space.k,
              .kt = base + space.kt,
              .vt = base + space.vt,
              .p = base + space.p,
              .ds = base + space.ds,
              .dq = base + space.dq,
              .dk = base + space.dk,
              .dv = base + space.dv};
    if (args->drelative) memset(base + space.drelative, 0, s->heads * table_rows * sizeof *base);
    for (uint64_t item = first; item < last; item++) {
        const uint64_t batch = item / s->heads, at = item % s->heads;
        h.weight = item * s->tokens * s->tokens;
        h.seen = addends_keys_seen(s, batch);
        h.addends = addends_of(s, batch, at, base + space.mask, base + space.table);
        h.logsumexp = (const float *)args->logsumexp + item * s->tokens;
        if (args->drelative) {
            h.addends.dtable = base + space.dtable;
            memset(h.addends.dtable, 0, (table_rows + LANES) * sizeof *base);
        }
        head_backward(&h, args,
                      (place){batch * s->tokens * s->row_stride + at * s->head_size,
                              batch * s->tokens * s->out_stride + at * s->head_size});
        if (args->drelative) addends_relative_gather(&h.addends, base + space.drelative + at * table_rows);
    }
}
