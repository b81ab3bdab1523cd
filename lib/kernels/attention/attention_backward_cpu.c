/* Flash attention backward (arXiv 2205.14135, algorithm 4): weights are recomputed tile by tile from logsumexp. A tile
 * of keys keeps its dK and dV at hand while all queries pass; dQ gathers in the workspace. */
#include "lib/kernels/attention/attention_cpu.h"
#include "lib/kernels/attention/attention_tile.h"

#include <math.h>

enum { KEYS = ATTENTION_BACKWARD_KEYS, QUERIES = ATTENTION_BACKWARD_QUERIES };

typedef struct {
    uint64_t tokens, depth, width; /* head size, and lanes that hold it */
    bool causal;
    float scale;
    tile_right q, k, dout;  /* rows in whole lanes */
    const float *logsumexp; /* [tokens] */
    float *delta;           /* [tokens]: dout . out */
    float *kt, *vt;         /* [depth][KEYS] of this tile */
    float *p, *ds;          /* [QUERIES][KEYS]: weights, and derivative by the scores */
    float *dq;              /* [tokens][width * LANES] */
    float *dk, *dv;         /* [KEYS][width * LANES] */
} head;

/* From scores and dout . v to weights and their derivative; zero behind `valid`. */
LANES_INLINE void row_derivative(const head *h, float *p, float *ds, uint64_t valid, uint64_t query)
{
    lanes scale = lanes_set(h->scale), base = lanes_set(-h->logsumexp[query]), delta = lanes_set(h->delta[query]);
    uint64_t at = 0;
    for (; at + LANES <= valid; at += LANES) {
        lanes weight = lanes_exp(lanes_fma(lanes_load(p + at), scale, base));
        lanes_store(p + at, weight);
        lanes_store(ds + at, lanes_mul(lanes_mul(weight, lanes_sub(lanes_load(ds + at), delta)), scale));
    }
    if (at < valid) {
        lanes weight = lanes_exp(lanes_fma(lanes_load(p + at), scale, base));
        lanes slope = lanes_mul(lanes_mul(weight, lanes_sub(lanes_load(ds + at), delta)), scale);
        lanes_store(p + at, lanes_first(weight, valid - at, 0.0f));
        lanes_store(ds + at, lanes_first(slope, valid - at, 0.0f));
        at += LANES;
    }
    for (; at < KEYS; at += LANES) {
        lanes_store(p + at, lanes_set(0.0f));
        lanes_store(ds + at, lanes_set(0.0f));
    }
}

/* Queries q0..q0+rows-1, whose rows of p and ds begin at `r`, against keys k0..k0+count-1. */
static void group_step(const head *h, uint64_t r, uint64_t q0, uint64_t rows, uint64_t k0, uint64_t count)
{
    const uint64_t used = attention_padded(count, LANES) / LANES, padded = h->width * LANES;
    float *p = h->p + r * KEYS, *ds = h->ds + r * KEYS;
    tile_product(rows, used, h->depth, (tile_left){h->q.at + q0 * h->q.row, h->q.row, 1}, h->kt, KEYS,
                 (tile_out){p, KEYS}, false);
    tile_product(rows, used, h->depth, (tile_left){h->dout.at + q0 * h->dout.row, h->dout.row, 1}, h->vt, KEYS,
                 (tile_out){ds, KEYS}, false);
    for (uint64_t i = 0; i < rows; i++) {
        uint64_t valid = h->causal && q0 + i + 1 - k0 < count ? q0 + i + 1 - k0 : count;
        row_derivative(h, p + i * KEYS, ds + i * KEYS, valid, q0 + i);
    }
    tile_product(rows, h->width, count, (tile_left){ds, KEYS, 1}, h->k.at + k0 * h->k.row, h->k.row,
                 (tile_out){h->dq + q0 * padded, padded}, true);
}

/* dV += P^T dO and dK += dS^T Q for the block of queries q0..q0+rows-1. */
static void keys_step(const head *h, uint64_t q0, uint64_t rows, uint64_t k0, uint64_t count)
{
    const uint64_t padded = h->width * LANES;
    for (uint64_t g = 0; g < count; g += GROUP) {
        uint64_t some = count - g < GROUP ? count - g : GROUP;
        uint64_t skip = h->causal && k0 + g > q0 ? k0 + g - q0 : 0; /* earlier queries do not see these keys */
        if (skip >= rows) continue;
        tile_product(some, h->width, rows - skip, (tile_left){h->p + skip * KEYS + g, 1, KEYS},
                     h->dout.at + (q0 + skip) * h->dout.row, h->dout.row, (tile_out){h->dv + g * padded, padded}, true);
        tile_product(some, h->width, rows - skip, (tile_left){h->ds + skip * KEYS + g, 1, KEYS},
                     h->q.at + (q0 + skip) * h->q.row, h->q.row, (tile_out){h->dk + g * padded, padded}, true);
    }
}

static void key_tile(const head *h, uint64_t k0, uint64_t count)
{
    const uint64_t padded = h->width * LANES;
    memset(h->dk, 0, count * padded * sizeof *h->dk);
    memset(h->dv, 0, count * padded * sizeof *h->dv);
    for (uint64_t q0 = h->causal ? k0 : 0; q0 < h->tokens; q0 += QUERIES) {
        uint64_t rows = h->tokens - q0 < QUERIES ? h->tokens - q0 : QUERIES;
        for (uint64_t g = 0; g < rows; g += GROUP) {
            uint64_t some = rows - g < GROUP ? rows - g : GROUP, last = q0 + g + some;
            uint64_t seen = h->causal && last - k0 < count ? last - k0 : count;
            group_step(h, g, q0 + g, some, k0, seen);
        }
        keys_step(h, q0, rows, k0, count);
    }
}

static float dot(uint64_t count, const float *a, const float *b)
{
    lanes sum = lanes_set(0.0f);
    for (uint64_t i = 0; i < count; i += LANES)
        sum = lanes_fma(lanes_load_some(a + i, count - i, 0.0f), lanes_load_some(b + i, count - i, 0.0f), sum);
    return lanes_sum(sum);
}

static void store_rows(uint64_t rows, const head *h, const float *from, float *to, uint64_t row)
{
    for (uint64_t r = 0; r < rows; r++) memcpy(to + r * row, from + r * h->width * LANES, h->depth * sizeof *to);
}

static void head_backward(head *h, const float *k, const float *v, const float *out, const float *dout, uint64_t row,
                          uint64_t out_row, float *dqkv, uint64_t all)
{
    for (uint64_t t = 0; t < h->tokens; t++) h->delta[t] = dot(h->depth, out + t * out_row, dout + t * out_row);
    memset(h->dq, 0, h->tokens * h->width * LANES * sizeof *h->dq);
    for (uint64_t k0 = 0; k0 < h->tokens; k0 += KEYS) {
        uint64_t count = h->tokens - k0 < KEYS ? h->tokens - k0 : KEYS;
        tile_transpose(count, h->depth, k + k0 * row, row, h->kt, KEYS);
        tile_transpose(count, h->depth, v + k0 * row, row, h->vt, KEYS);
        key_tile(h, k0, count);
        store_rows(count, h, h->dk, dqkv + all + k0 * row, row);
        store_rows(count, h, h->dv, dqkv + 2 * all + k0 * row, row);
    }
    store_rows(h->tokens, h, h->dq, dqkv, row);
}

void SLC_ISA(slc_attention_backward_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    const slc_attention_backward_args *args = context;
    const slc_attention_shape *s = &args->shape;
    const uint64_t all = s->heads * s->head_size, row = 3 * all, padded = attention_padded(s->head_size, LANES);
    const uint64_t whole = s->head_size % LANES ? s->tokens * padded : 0;
    float *space = args->workspace + part * args->workspace_floats;
    head h = {.tokens = s->tokens,
              .depth = s->head_size,
              .width = padded / LANES,
              .causal = s->causal,
              .scale = (float)(1.0 / sqrt((double)s->head_size))};
    h.kt = space, space += s->head_size * KEYS;
    h.vt = space, space += s->head_size * KEYS;
    h.p = space, space += QUERIES * KEYS;
    h.ds = space, space += QUERIES * KEYS;
    h.dk = space, space += KEYS * padded;
    h.dv = space, space += KEYS * padded;
    h.dq = space, space += s->tokens * padded;
    h.delta = space, space += attention_padded(s->tokens, LANES);

    for (uint64_t item = first; item < last; item++) {
        uint64_t batch = item / s->heads, offset = item % s->heads * s->head_size;
        uint64_t in = batch * s->tokens * row + offset, out = batch * s->tokens * all + offset;
        const float *q = args->qkv + in;
        h.q = tile_whole_lanes(s->tokens, s->head_size, q, row, space);
        h.k = tile_whole_lanes(s->tokens, s->head_size, q + all, row, space + whole);
        h.dout = tile_whole_lanes(s->tokens, s->head_size, args->dout + out, all, space + 2 * whole);
        h.logsumexp = args->logsumexp + item * s->tokens;
        head_backward(&h, q + all, q + 2 * all, args->out + out, args->dout + out, row, all, args->dqkv + in, all);
    }
}
