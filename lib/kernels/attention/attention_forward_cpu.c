/* Flash attention forward (arXiv 2205.14135, algorithm 1): a block of queries meets tiles of keys; a running maximum
 * and sum make the softmax exact. K is kept transposed, so that the scores of sixteen keys fill one register.
 * attention_test.c covers this file. */
#include "lib/kernels/attention/attention_addends.h"
#include "lib/kernels/attention/attention_cpu.h"
#include "lib/kernels/attention/attention_tile.h"
#include "lib/kernels/dropout/dropout_lanes.h"

enum { KEYS = ATTENTION_FORWARD_KEYS, QUERIES = ATTENTION_FORWARD_QUERIES };

typedef struct {
    const slc_attention_shape *shape;
    uint64_t depth, padded; /* head size, and the same rounded up to whole lanes */
    uint64_t seen;          /* no query sees the keys from this one on */
    addends addends;
    float *query;        /* [QUERIES][padded], multiplied by 1 / sqrt(head size) */
    float *keys;         /* [tile][depth][KEYS] */
    float *values;       /* [tokens][padded] */
    float *scores;       /* [GROUP][KEYS] */
    float *addend_rows;  /* [GROUP][KEYS] */
    uint64_t weight;     /* dropout's index of this head's first weight */
    float *factors;      /* room for dropout's factors of one row */
    float *sums;         /* [QUERIES][padded]: outputs before the division */
    float *weights;      /* [QUERIES][LANES]: partial sums of the softmax denominator */
    float most[QUERIES]; /* largest score so far */
} head;

/* Returns how many keys the queries before `end` see. */
static uint64_t keys_seen(const head *h, uint64_t end)
{
    return h->shape->causal && end < h->seen ? end : h->seen;
}

LANES_INLINE void row_add(float *scores, const float *addend, uint64_t count)
{
    for (uint64_t j = 0; j < count; j += LANES)
        lanes_store(scores + j, lanes_add(lanes_load(scores + j), lanes_load(addend + j)));
}

/* Turns scores into weights and rescales earlier sums to the new maximum. While that maximum is -inf there are none. */
LANES_INLINE void row_softmax(float *scores, uint64_t valid, uint64_t used, float *most, float *weights, float *sums,
                              uint64_t padded)
{
    uint64_t whole = valid / LANES;
    lanes top = lanes_set(-INFINITY);
    for (uint64_t j = 0; j < whole; j++) top = lanes_max(top, lanes_load(scores + j * LANES));
    if (valid % LANES) top = lanes_max(top, lanes_first(lanes_load(scores + whole * LANES), valid % LANES, -INFINITY));
    float before = *most, now = lanes_largest(top);
    if (before > now) now = before;
    *most = now;

    lanes base = lanes_set(now == -INFINITY ? 0.0f : now), total = lanes_load(weights);
    if (before != now && before != -INFINITY) {
        lanes shrink = lanes_exp(lanes_set(before - now));
        total = lanes_mul(total, shrink);
        for (uint64_t d = 0; d < padded; d += LANES) lanes_store(sums + d, lanes_mul(lanes_load(sums + d), shrink));
    }
    for (uint64_t j = 0; j < whole; j++) {
        lanes p = lanes_exp(lanes_sub(lanes_load(scores + j * LANES), base));
        lanes_store(scores + j * LANES, p);
        total = lanes_add(total, p);
    }
    for (uint64_t j = whole; j < used; j++) {
        lanes p = lanes_exp(lanes_sub(lanes_load(scores + j * LANES), base));
        p = lanes_first(p, j == whole ? valid % LANES : 0, 0.0f);
        lanes_store(scores + j * LANES, p);
        total = lanes_add(total, p);
    }
    lanes_store(weights, total);
}

static void row_drop(const head *h, float *weights, uint64_t query, uint64_t k0, uint64_t count)
{
    const uint64_t first = h->weight + query * h->shape->tokens + k0;
    const float *factors = dropout_factors(h->shape->dropout, first, attention_padded(count, LANES), h->factors);
    for (uint64_t j = 0; j < count; j += LANES)
        lanes_store(weights + j, lanes_mul(lanes_load(weights + j), lanes_load(factors + j)));
}

/* Computes queries q0..q0+rows-1 against keys k0..end-1; the first of these queries is number `first` of its block. */
static void group_step(head *h, uint64_t first, uint64_t q0, uint64_t rows, uint64_t k0, uint64_t end)
{
    const uint64_t used = attention_padded(end - k0, LANES) / LANES, padded = h->padded;
    const bool add = addends_any(&h->addends);
    float *sums = h->sums + first * padded;
    if (add) addends_rows(&h->addends, q0, rows, k0, end, h->addend_rows, KEYS);
    tile_product(rows, used, h->depth, (tile_left){h->query + first * padded, padded, 1}, h->keys + k0 * h->depth, KEYS,
                 (tile_out){h->scores, KEYS}, false);
    for (uint64_t r = 0; r < rows; r++) {
        /* only after tokens of a cache can a group of queries begin before a tile of keys and end in it */
        uint64_t valid_end = keys_seen(h, q0 + r + 1), valid_to = valid_end < end ? valid_end : end;
        uint64_t valid = valid_to > k0 ? valid_to - k0 : 0;
        if (add) row_add(h->scores + r * KEYS, h->addend_rows + r * KEYS, valid);
        row_softmax(h->scores + r * KEYS, valid, used, &h->most[first + r], h->weights + (first + r) * LANES,
                    sums + r * padded, padded);
        if (h->shape->dropout) row_drop(h, h->scores + r * KEYS, q0 + r, k0, valid);
    }
    tile_product(rows, padded / LANES, end - k0, (tile_left){h->scores, KEYS, 1}, h->values + k0 * padded, padded,
                 (tile_out){sums, padded}, true);
}

/* Writes the block's outputs and logsumexp. The sum of weights is 0 only if no key was seen: the largest score has
 * weight 1. */
static void block_finish(head *h, uint64_t rows, void *out, uint64_t at, float *logsumexp)
{
    for (uint64_t r = 0; r < rows; r++) {
        float total = lanes_sum(lanes_load(h->weights + r * LANES));
        lanes share = lanes_set(total == 0 ? 0.0f : 1.0f / total);
        for (uint64_t d = 0; d < h->padded; d += LANES) {
            float *sum = h->sums + r * h->padded + d;
            lanes_store(sum, lanes_mul(lanes_load(sum), share));
        }
        if (logsumexp) logsumexp[r] = total == 0 ? INFINITY : (float)((double)h->most[r] + log((double)total));
    }
    tile_unpack(h->shape->dtype, rows, h->depth, h->sums, 1.0f, out, at, h->shape->out_stride);
}

static void block_forward(head *h, uint64_t block, uint64_t rows)
{
    memset(h->sums, 0, rows * h->padded * sizeof *h->sums);
    memset(h->weights, 0, rows * LANES * sizeof *h->weights);
    for (uint64_t r = 0; r < rows; r++) h->most[r] = -INFINITY;
    const uint64_t end = keys_seen(h, block + rows);
    for (uint64_t k0 = 0; k0 < end; k0 += KEYS)
        for (uint64_t g = 0; g < rows; g += GROUP) {
            uint64_t some = rows - g < GROUP ? rows - g : GROUP, last = keys_seen(h, block + g + some);
            if (last > k0) group_step(h, g, block + g, some, k0, last - k0 < KEYS ? last : k0 + KEYS);
        }
}

/* Copies K, transposed tile by tile, and V into the workspace, or into the cache after what it has, in fp32. The
 * transposition fills whole lanes, so keys that begin inside of them are written one by one. */
static void pack_keys(head *h, const slc_attention_forward_args *args, uint64_t at)
{
    const slc_attention_shape *s = h->shape;
    for (uint64_t key = args->cache.tokens, count; key < h->seen; key += count, at += count * s->row_stride) {
        const uint64_t column = key % KEYS, rest = h->seen - key;
        count = column % LANES ? 1 : rest < KEYS - column ? rest : KEYS - column;
        float *values = h->values + key * h->padded, *keys = h->keys + (key - column) * h->depth + column;
        tile_pack(s->dtype, count, h->depth, args->k, at, s->row_stride, 1.0f, values);
        if (column % LANES)
            for (uint64_t d = 0; d < h->depth; d++) keys[d * KEYS] = values[d];
        else
            tile_transpose(count, h->depth, values, h->padded, keys, KEYS);
        tile_pack(s->dtype, count, h->depth, args->v, at, s->row_stride, 1.0f, values);
    }
}

void SLC_ISA(slc_attention_forward_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    const slc_attention_forward_args *args = context;
    const slc_attention_shape *s = &args->shape;
    const bool cached = args->cache.memory != NULL;
    const uint64_t past = args->cache.tokens, room = attention_padded(args->cache.room, KEYS);
    const slc_attention_forward_space space = slc_attention_forward_layout(s, cached);
    const float scale = (float)(1.0 / sqrt((double)s->head_size));
    float *base = (float *)args->workspace + part * slc_attention_part_floats(s, cached), *logsumexp = args->logsumexp;
    head h = {.shape = s,
              .depth = s->head_size,
              .padded = attention_padded(s->head_size, LANES),
              .query = base + space.query,
              .keys = base + space.keys,
              .values = base + space.values,
              .scores = base + space.scores,
              .addend_rows = base + space.addends,
              .factors = base + space.factors,
              .sums = base + space.sums,
              .weights = base + space.weights};
    for (uint64_t item = first; item < last; item++) {
        const uint64_t batch = item / s->heads, offset = item % s->heads * s->head_size;
        const uint64_t in = batch * s->tokens * s->row_stride + offset;
        const uint64_t out = batch * s->tokens * s->out_stride + offset;
        h.weight = item * s->tokens * s->tokens;
        h.seen = past + addends_keys_seen(s, batch);
        if (cached) {
            h.keys = (float *)args->cache.memory + item * room * (h.depth + h.padded);
            h.values = h.keys + room * h.depth;
        }
        h.addends = addends_of(s, batch, item % s->heads, base + space.mask, base + space.table);
        pack_keys(&h, args, in);
        for (uint64_t q0 = 0; q0 < s->tokens; q0 += QUERIES) {
            uint64_t rows = s->tokens - q0 < QUERIES ? s->tokens - q0 : QUERIES;
            tile_pack(s->dtype, rows, h.depth, args->q, in + q0 * s->row_stride, s->row_stride, scale, h.query);
            block_forward(&h, past + q0, rows);
            block_finish(&h, rows, args->out, out + q0 * s->out_stride,
                         logsumexp ? logsumexp + item * s->tokens + q0 : NULL);
        }
    }
}
