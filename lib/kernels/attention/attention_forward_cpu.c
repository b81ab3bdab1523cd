/* Flash attention forward (arXiv 2205.14135, algorithm 1): a block of queries meets tiles of keys; a running maximum
 * and sum make the softmax exact. K is kept transposed, so that scores of sixteen keys are one register. */
#include "lib/kernels/attention/attention_cpu.h"
#include "lib/kernels/attention/attention_tile.h"

#include <math.h>

enum { KEYS = ATTENTION_FORWARD_KEYS, QUERIES = ATTENTION_FORWARD_QUERIES };

typedef struct {
    uint64_t tokens, depth, width; /* head size, and lanes that hold it */
    bool causal;
    float scale;
    const float *q;
    uint64_t row; /* between rows of q */
    tile_right v;
    const float *keys; /* [tile][depth][KEYS] */
    float *scores;     /* [GROUP][KEYS] */
    float *sums;       /* [QUERIES][width * LANES]: not yet divided outputs */
    float *weights;    /* [QUERIES][LANES]: partial sums of the softmax' denominator */
    float most[QUERIES];
} head;

/* Scores to weights; what was summed before is rescaled to the new maximum. */
LANES_INLINE void row_softmax(const head *h, float *scores, uint64_t valid, uint64_t lanes_used, bool first,
                              float *most, float *weights, float *sums)
{
    uint64_t whole = valid / LANES;
    lanes top = lanes_set(-INFINITY);
    for (uint64_t j = 0; j < whole; j++) top = lanes_max(top, lanes_load(scores + j * LANES));
    if (valid % LANES) top = lanes_max(top, lanes_first(lanes_load(scores + whole * LANES), valid % LANES, -INFINITY));
    float before = *most, now = lanes_largest(top);
    if (!first && before > now) now = before;
    *most = now;

    lanes scale = lanes_set(h->scale), base = lanes_set(-now * h->scale), total = lanes_set(0.0f);
    if (!first) {
        total = lanes_load(weights);
        if (before != now) {
            lanes shrink = lanes_exp(lanes_set((before - now) * h->scale));
            total = lanes_mul(total, shrink);
            for (uint64_t j = 0; j < h->width; j++)
                lanes_store(sums + j * LANES, lanes_mul(lanes_load(sums + j * LANES), shrink));
        }
    }
    for (uint64_t j = 0; j < whole; j++) {
        lanes p = lanes_exp(lanes_fma(lanes_load(scores + j * LANES), scale, base));
        lanes_store(scores + j * LANES, p);
        total = lanes_add(total, p);
    }
    for (uint64_t j = whole; j < lanes_used; j++) {
        lanes p = lanes_exp(lanes_fma(lanes_load(scores + j * LANES), scale, base));
        p = lanes_first(p, j == whole ? valid % LANES : 0, 0.0f);
        lanes_store(scores + j * LANES, p);
        total = lanes_add(total, p);
    }
    lanes_store(weights, total);
}

/* Queries q0..q0+rows-1 (a group of the block at `block`) against keys k0..k0+count-1. */
static void group_step(head *h, uint64_t block, uint64_t q0, uint64_t rows, uint64_t k0, uint64_t count)
{
    const uint64_t first = q0 - block, used = attention_padded(count, LANES) / LANES, padded = h->width * LANES;
    float *sums = h->sums + first * padded;
    tile_product(rows, used, h->depth, (tile_left){h->q + q0 * h->row, h->row, 1}, h->keys + k0 * h->depth, KEYS,
                 (tile_out){h->scores, KEYS}, false);
    for (uint64_t r = 0; r < rows; r++) {
        uint64_t valid = h->causal && q0 + r + 1 - k0 < count ? q0 + r + 1 - k0 : count;
        row_softmax(h, h->scores + r * KEYS, valid, used, k0 == 0, &h->most[first + r],
                    h->weights + (first + r) * LANES, sums + r * padded);
    }
    tile_product(rows, h->width, count, (tile_left){h->scores, KEYS, 1}, h->v.at + k0 * h->v.row, h->v.row,
                 (tile_out){sums, padded}, k0 > 0);
}

static void block_forward(head *h, uint64_t block, uint64_t rows, float *out, uint64_t out_row, float *logsumexp)
{
    const uint64_t end = h->causal ? block + rows : h->tokens, padded = h->width * LANES;
    for (uint64_t k0 = 0; k0 < end; k0 += KEYS)
        for (uint64_t g = 0; g < rows; g += GROUP) {
            uint64_t q0 = block + g, some = rows - g < GROUP ? rows - g : GROUP;
            uint64_t last = h->causal ? q0 + some : h->tokens;
            if (last <= k0) continue;
            group_step(h, block, q0, some, k0, last - k0 < KEYS ? last - k0 : KEYS);
        }
    for (uint64_t r = 0; r < rows; r++) {
        float total = lanes_sum(lanes_load(h->weights + r * LANES));
        lanes share = lanes_set(1.0f / total);
        for (uint64_t d = 0; d < h->depth; d += LANES)
            lanes_store_some(out + (block + r) * out_row + d, h->depth - d,
                             lanes_mul(lanes_load(h->sums + r * padded + d), share));
        logsumexp[block + r] = (float)((double)h->most[r] * (double)h->scale + log((double)total));
    }
}

void SLC_ISA(slc_attention_forward_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    const slc_attention_forward_args *args = context;
    const slc_attention_shape *s = &args->shape;
    const uint64_t all = s->heads * s->head_size, padded = attention_padded(s->head_size, LANES);
    float *space = args->workspace + part * args->workspace_floats;
    head h = {.tokens = s->tokens,
              .depth = s->head_size,
              .width = padded / LANES,
              .causal = s->causal,
              .scale = (float)(1.0 / sqrt((double)s->head_size)),
              .row = 3 * all};
    h.scores = space, space += GROUP * KEYS;
    h.sums = space, space += QUERIES * padded;
    h.weights = space, space += QUERIES * LANES;
    float *values = space;
    if (s->head_size % LANES) space += s->tokens * padded;
    float *keys = space;
    h.keys = keys;

    for (uint64_t item = first; item < last; item++) {
        uint64_t batch = item / s->heads, offset = item % s->heads * s->head_size;
        h.q = args->qkv + batch * s->tokens * h.row + offset;
        h.v = tile_whole_lanes(s->tokens, s->head_size, h.q + 2 * all, h.row, values);
        for (uint64_t k0 = 0; k0 < s->tokens; k0 += KEYS)
            tile_transpose(s->tokens - k0 < KEYS ? s->tokens - k0 : KEYS, s->head_size, h.q + all + k0 * h.row, h.row,
                           keys + k0 * s->head_size, KEYS);
        for (uint64_t q0 = 0; q0 < s->tokens; q0 += QUERIES)
            block_forward(&h, q0, s->tokens - q0 < QUERIES ? s->tokens - q0 : QUERIES,
                          args->out + batch * s->tokens * all + offset, all, args->logsumexp + item * s->tokens);
    }
}
