/* The addends of a head's scores: bias, BEiT's relative-position bias, -inf for masked keys. Their rows are made as
 * each tile of scores is computed.
 *
 * A head's table is kept reversed: the entry of patches i and j is at (y_j - y_i + h - 1) * (2w - 1) + x_j - x_i +
 * w - 1, so that a row of keys reads consecutive entries. */
#pragma once

#include "lib/kernels/attention/attention_cpu.h"
#include "lib/kernels/lanes.h"

#include <math.h>

typedef struct {
    uint64_t tokens, window_h, window_w, distances;
    const float *bias;  /* [tokens][tokens] for this head, or NULL */
    const float *mask;  /* [tokens], 0 or -inf; or NULL */
    const float *table; /* [distances + 3], or NULL */
    float *dtable;      /* its gradient, or NULL */
} addends;

static inline bool addends_any(const addends *a)
{
    return a->bias || a->mask || a->table;
}

/* Returns the number of keys of this sequence up to the last one that is seen. */
static inline uint64_t addends_keys_seen(const slc_attention_shape *s, uint64_t batch)
{
    uint64_t seen = s->tokens;
    if (s->key_mask)
        while (seen > 0 && !s->key_mask[batch * s->tokens + seen - 1]) seen--;
    return seen;
}

/* Returns the addends of sequence `batch`, head `head`; the caller provides room for mask and table. */
static inline addends addends_of(const slc_attention_shape *s, uint64_t batch, uint64_t head, float *mask, float *table)
{
    addends a = {
        .tokens = s->tokens, .window_h = s->window_h, .window_w = s->window_w, .distances = attention_distances(s)};
    if (s->bias) a.bias = s->bias + batch * s->bias_batch + head * s->bias_head;
    if (s->key_mask) {
        const uint8_t *seen = s->key_mask + batch * s->tokens;
        for (uint64_t j = 0; j < s->tokens; j++) mask[j] = seen[j] ? 0.0f : -INFINITY;
        a.mask = mask;
    }
    if (s->relative) {
        for (uint64_t i = 0; i < a.distances; i++)
            table[i] = lanes_get_as(s->dtype, s->relative, (a.distances - 1 - i) * s->heads + head);
        for (uint64_t i = a.distances; i < a.distances + 3 + LANES; i++)
            table[i] = i < a.distances + 3 ? lanes_get_as(s->dtype, s->relative, i * s->heads + head) : 0.0f;
        a.table = table;
    }
    return a;
}

/* Consecutive keys in one row of the window, as seen by a query that is a patch. */
typedef struct {
    uint64_t key, count; /* keys key..key+count-1 */
    uint64_t at;         /* index of the first key's entry in the table */
} addends_run;

/* Returns the run that begins at `key` (not the class token) and ends before `end`. */
LANES_INLINE addends_run addends_next(const addends *a, uint64_t query, uint64_t key, uint64_t end)
{
    const uint64_t w = a->window_w, y = (query - 1) / w, x = (query - 1) % w;
    const uint64_t key_y = (key - 1) / w, key_x = (key - 1) % w, left = w - key_x;
    return (addends_run){.key = key,
                         .count = end - key < left ? end - key : left,
                         .at = (key_y + a->window_h - 1 - y) * (2 * w - 1) + key_x + w - 1 - x};
}

/* Returns the run after `run`, which begins at key_x = 0 of the next row of the window. */
LANES_INLINE addends_run addends_following(const addends *a, addends_run run, uint64_t end)
{
    const uint64_t w = a->window_w, key = run.key + run.count;
    return (addends_run){.key = key, .count = end - key < w ? end - key : w, .at = run.at + run.count + w - 1};
}

/* Fills row[0..end-k0-1]; may write up to LANES - 1 floats after it. */
static inline void addends_relative(const addends *a, uint64_t query, uint64_t k0, uint64_t end, float *row)
{
    const float *classes = a->table + a->distances;
    if (query == 0) {
        for (uint64_t j = k0; j < end; j++) row[j - k0] = j ? classes[0] : classes[2];
        return;
    }
    uint64_t key = k0;
    if (key == 0) row[0] = classes[1], key = 1;
    if (key >= end) return;
    for (addends_run run = addends_next(a, query, key, end);; run = addends_following(a, run, end)) {
        for (uint64_t i = 0; i < run.count; i += LANES)
            lanes_store(row + run.key - k0 + i, lanes_load(a->table + run.at + i));
        if (run.key + run.count >= end) break;
    }
}

/* Adds ds, the gradient of the scores of (query, k0..end-1), to dtable. Whole lanes of ds can be read past its end. */
static inline void addends_relative_backward(const addends *a, uint64_t query, uint64_t k0, uint64_t end,
                                             const float *ds)
{
    float *classes = a->dtable + a->distances;
    if (query == 0) {
        float sum = 0;
        for (uint64_t j = k0 ? k0 : 1; j < end; j++) sum += ds[j - k0];
        classes[0] += sum;
        if (k0 == 0) classes[2] += ds[0];
        return;
    }
    uint64_t key = k0;
    if (key == 0) classes[1] += ds[0], key = 1;
    if (key >= end) return;
    for (addends_run run = addends_next(a, query, key, end);; run = addends_following(a, run, end)) {
        for (uint64_t i = 0; i < run.count; i += LANES) {
            float *to = a->dtable + run.at + i;
            lanes slope = lanes_first(lanes_load(ds + run.key - k0 + i), run.count - i, 0.0f);
            lanes_store(to, lanes_add(lanes_load(to), slope));
        }
        if (run.key + run.count >= end) break;
    }
}

/* Adds dtable to sums, whose rows are in the order of the caller's table. */
static inline void addends_relative_gather(const addends *a, float *sums)
{
    for (uint64_t i = 0; i < a->distances; i++) sums[a->distances - 1 - i] += a->dtable[i];
    for (uint64_t i = a->distances; i < a->distances + 3; i++) sums[i] += a->dtable[i];
}

/* Fills rows[r][j], `stride` floats apart, for queries q0..q0+count-1 and keys k0..end-1. LANES more floats follow the
 * last row. */
static inline void addends_rows(const addends *a, uint64_t q0, uint64_t count, uint64_t k0, uint64_t end, float *rows,
                                uint64_t stride)
{
    for (uint64_t r = 0; r < count; r++) {
        float *row = rows + r * stride;
        if (a->table) addends_relative(a, q0 + r, k0, end, row);
        if (!a->bias && !a->mask) continue;
        for (uint64_t j = k0; j < end; j += LANES) {
            lanes sum = a->table ? lanes_load(row + j - k0) : lanes_set(0.0f);
            if (a->bias) sum = lanes_add(sum, lanes_load_some(a->bias + (q0 + r) * a->tokens + j, end - j, 0.0f));
            if (a->mask) sum = lanes_add(sum, lanes_load_some(a->mask + j, end - j, 0.0f));
            lanes_store(row + j - k0, sum);
        }
    }
}
