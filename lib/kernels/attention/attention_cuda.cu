/* Attention on CUDA cores, with fp32 sums: the path of fp32, and the reference of faster ones. A warp has one query, or
 * in the gradients of keys and values one key; a block of eight warps shares tiles of 32 keys or queries. A lane
 * computes the score of one pair; then the lanes of the warp take the channels between them. All sums have a fixed
 * order. */
#include "lib/kernels/attention/attention_cpu.h"

#include "lib/kernels/dropout/dropout_cuda.cuh"
#include "lib/kernels/gpu_math.cuh"

enum { WARPS = 8, TILE = GPU_LANES, DEPTH = SLC_ATTENTION_CUDA_DEPTH, PARTS = DEPTH / GPU_LANES };

template <class T> struct attention_arrays {
    uint32_t batch, tokens, heads, depth;
    uint64_t row_stride, out_stride;
    bool causal;
    const uint8_t *key_mask;
    const float *bias;
    uint64_t bias_batch, bias_head;
    const T *relative;
    uint32_t window_h, window_w;
    gpu_dropout dropout;
    float scale;
    const T *q, *k, *v, *out_in, *dout;
    T *out, *dq, *dk, *dv;
    float *logsumexp;
    float *delta;     /* [batch][heads][tokens]: dout . out */
    float *drelative; /* [batch][heads][blocks of queries][rows of the table], or NULL */
    uint32_t table;   /* rows of the table */
};

struct tile_shared {
    float one[TILE][DEPTH + 1], two[TILE][DEPTH + 1]; /* rows of two arrays; + 1: lanes read rows at once */
    float own[2][WARPS][DEPTH];                       /* the warp's rows of the two other arrays */
    float weights[2][WARPS][TILE];
};
static_assert(sizeof(tile_shared) <= GPU_SHARED_WITHOUT_ASKING, "shared memory that every GPU gives");

/* The sequence and the head of a block. Both are in the block's x and its rows are in y, because a grid has at most
 * 65535 blocks along y. */
struct head_place {
    uint32_t batch, head;
    uint64_t first_row; /* of this sequence in arrays of tokens */
    uint64_t item;      /* batch * heads + head */
};

template <class T> static __device__ head_place head_of(const attention_arrays<T> &a)
{
    const uint32_t b = blockIdx.x / a.heads, h = blockIdx.x % a.heads;
    return {b, h, (uint64_t)b * a.tokens, blockIdx.x};
}

/* Loads `count` rows from token `first` on, multiplied by `scale`; rows after the last token are zero. The block's
 * threads share the work. */
template <class T, uint32_t PITCH>
static __device__ void load_rows(const attention_arrays<T> &a, const head_place &p, const T *from, uint64_t stride,
                                 uint32_t first, uint32_t count, float scale, float (*to)[PITCH])
{
    for (uint32_t i = threadIdx.x; i < count * a.depth; i += WARPS * GPU_LANES) {
        const uint32_t row = i / a.depth, d = i % a.depth, token = first + row;
        to[row][d] =
            token < a.tokens ? gpu_widen(from[(p.first_row + token) * stride + p.head * a.depth + d]) * scale : 0;
    }
}

static __device__ float product(uint32_t depth, const float *x, const float *y)
{
    float sum = 0;
    for (uint32_t d = 0; d < depth; d++) sum = gpu_add_product(x[d], y[d], sum);
    return sum;
}

/* The row of BEiT's table for a pair (attention.h). */
template <class T> static __device__ uint32_t relative_row(const attention_arrays<T> &a, uint32_t query, uint32_t key)
{
    const uint32_t w = a.window_w, distances = a.table - 3;
    if (!query || !key) return distances + (query ? 1 : key ? 0 : 2);
    const uint32_t y = (query - 1) / w + a.window_h - 1 - (key - 1) / w, x = (query - 1) % w + w - 1 - (key - 1) % w;
    return y * (2 * w - 1) + x;
}

/* The score of a pair whose product with the scaled query is `dot`; -inf if the query does not see the key. */
template <class T>
static __device__ float score_of(const attention_arrays<T> &a, const head_place &p, uint32_t query, uint32_t key,
                                 float dot)
{
    if (key >= a.tokens || query >= a.tokens || (a.causal && key > query)) return -INFINITY;
    if (a.key_mask && !a.key_mask[p.first_row + key]) return -INFINITY;
    float addend = 0;
    if (a.relative) addend = gpu_widen(a.relative[(uint64_t)relative_row(a, query, key) * a.heads + p.head]);
    if (a.bias) addend += a.bias[p.batch * a.bias_batch + p.head * a.bias_head + (uint64_t)query * a.tokens + key];
    return dot + addend;
}

template <class T>
static __device__ float factor_of(const attention_arrays<T> &a, const head_place &p, uint32_t query, uint32_t key)
{
    if (!a.dropout.limit) return 1;
    return gpu_dropout_factor(a.dropout, (p.item * a.tokens + query) * a.tokens + key);
}

/* sums[part] += the sum over the tile's rows of weights[row] * rows[row][lane + 32 part] */
static __device__ void add_weighted(uint32_t depth, const float *weights, const float (*rows)[DEPTH + 1],
                                    float sums[PARTS])
{
    const uint32_t lane = threadIdx.x % GPU_LANES;
    for (int row = 0; row < TILE; row++) {
        if (weights[row] == 0) continue; /* a pair that does not see each other passes on no NaN */
        for (int part = 0; part < PARTS; part++)
            if (lane + GPU_LANES * part < depth)
                sums[part] = gpu_add_product(weights[row], rows[row][lane + GPU_LANES * part], sums[part]);
    }
}

template <class T>
static __device__ void store_row(const attention_arrays<T> &a, const head_place &p, T *to, uint64_t stride,
                                 uint32_t token, const float sums[PARTS], float scale)
{
    const uint32_t lane = threadIdx.x % GPU_LANES;
    for (int part = 0; part < PARTS; part++)
        if (lane + GPU_LANES * part < a.depth)
            to[(p.first_row + token) * stride + p.head * a.depth + lane + GPU_LANES * part] =
                gpu_round<T>(sums[part] * scale);
}

/* The number of keys that the queries of this block see at most. */
template <class T> static __device__ uint32_t keys_seen(const attention_arrays<T> &a)
{
    const uint32_t end = (blockIdx.y + 1) * WARPS;
    return a.causal && end < a.tokens ? end : a.tokens;
}

template <class T> static __global__ void __launch_bounds__(WARPS *GPU_LANES) attend(attention_arrays<T> a)
{
    SLC_SHARED(tile_shared, s);
    const head_place p = head_of(a);
    const uint32_t lane = threadIdx.x % GPU_LANES, warp = threadIdx.x / GPU_LANES, query = blockIdx.y * WARPS + warp;
    float most = -INFINITY, total = 0, sums[PARTS] = {};
    load_rows(a, p, a.q, a.row_stride, blockIdx.y * WARPS, WARPS, a.scale, s.own[0]);
    for (uint32_t k0 = 0, end = keys_seen(a); k0 < end; k0 += TILE) {
        __syncthreads(); /* the tile before has been read */
        load_rows(a, p, a.k, a.row_stride, k0, TILE, 1, s.one);
        load_rows(a, p, a.v, a.row_stride, k0, TILE, 1, s.two);
        __syncthreads();
        if (query >= a.tokens) continue;
        const uint32_t key = k0 + lane;
        const float score = score_of(a, p, query, key, product(a.depth, s.own[0][warp], s.one[lane]));
        const float before = most;
        most = fmaxf(most, gpu_warp_largest(score));
        const float base = most == -INFINITY ? 0 : most, weight = gpu_exp(score - base);
        const float shrink = before == -INFINITY ? 1 : gpu_exp(before - base);
        total = total * shrink + weight;
        for (int part = 0; part < PARTS; part++) sums[part] *= shrink;
        s.weights[0][warp][lane] = weight * (weight == 0 ? 1 : factor_of(a, p, query, key));
        __syncwarp();
        add_weighted(a.depth, s.weights[0][warp], s.two, sums);
        __syncwarp();
    }
    if (query >= a.tokens) return;
    total = gpu_warp_sum(total);
    store_row(a, p, a.out, a.out_stride, query, sums, total == 0 ? 0 : 1 / total);
    if (!lane)
        a.logsumexp[p.item * a.tokens + query] = total == 0 ? INFINITY : (float)((double)most + log((double)total));
}

/* dq, with delta, which the gradients of keys need too, and what each pair adds to drelative. */
template <class T>
static __global__ void __launch_bounds__(WARPS *GPU_LANES) attend_backward_queries(attention_arrays<T> a)
{
    SLC_SHARED(tile_shared, s);
    const head_place p = head_of(a);
    const uint32_t lane = threadIdx.x % GPU_LANES, warp = threadIdx.x / GPU_LANES, query = blockIdx.y * WARPS + warp;
    const uint64_t row = p.item * a.tokens + query;
    float *table = a.drelative ? a.drelative + (p.item * gridDim.y + blockIdx.y) * a.table : NULL;
    float delta = 0, sums[PARTS] = {};
    for (uint32_t i = threadIdx.x; table && i < a.table; i += WARPS * GPU_LANES) table[i] = 0;
    load_rows(a, p, a.q, a.row_stride, blockIdx.y * WARPS, WARPS, a.scale, s.own[0]);
    load_rows(a, p, a.dout, a.out_stride, blockIdx.y * WARPS, WARPS, 1, s.own[1]);
    if (query < a.tokens) {
        const uint64_t at = (p.first_row + query) * a.out_stride + p.head * a.depth;
        for (uint32_t d = lane; d < a.depth; d += GPU_LANES)
            delta = gpu_add_product(gpu_widen(a.dout[at + d]), gpu_widen(a.out_in[at + d]), delta);
        delta = gpu_warp_sum(delta);
        if (!lane) a.delta[row] = delta;
    }
    for (uint32_t k0 = 0, end = keys_seen(a); k0 < end; k0 += TILE) {
        __syncthreads();
        load_rows(a, p, a.k, a.row_stride, k0, TILE, 1, s.one);
        load_rows(a, p, a.v, a.row_stride, k0, TILE, 1, s.two);
        __syncthreads();
        const uint32_t key = k0 + lane;
        float slope = 0;
        if (query < a.tokens) {
            const float score = score_of(a, p, query, key, product(a.depth, s.own[0][warp], s.one[lane]));
            const float weight = gpu_exp(score - a.logsumexp[row]);
            if (weight != 0)
                slope = weight * (product(a.depth, s.own[1][warp], s.two[lane]) * factor_of(a, p, query, key) - delta);
            s.weights[0][warp][lane] = slope;
            __syncwarp();
            add_weighted(a.depth, s.weights[0][warp], s.one, sums);
            __syncwarp();
        }
        for (uint32_t turn = 0; table && turn < WARPS; turn++) { /* one warp after the other: a fixed order */
            __syncthreads();
            if (turn != warp || query >= a.tokens) continue;
            if (query) { /* each key has a row of its own */
                if (key < a.tokens) table[relative_row(a, query, key)] += slope;
                continue;
            }
            const float of_patches = gpu_warp_sum(key ? slope : 0);
            if (!lane) table[a.table - 3] += of_patches;
            if (!key) table[a.table - 1] += slope;
        }
    }
    if (query < a.tokens) store_row(a, p, a.dq, a.row_stride, query, sums, a.scale);
}

/* dk and dv: the block's warps have a key each, and go through tiles of queries. */
template <class T>
static __global__ void __launch_bounds__(WARPS *GPU_LANES) attend_backward_keys(attention_arrays<T> a)
{
    SLC_SHARED(tile_shared, s);
    const head_place p = head_of(a);
    const uint32_t lane = threadIdx.x % GPU_LANES, warp = threadIdx.x / GPU_LANES, key = blockIdx.y * WARPS + warp;
    float dk[PARTS] = {}, dv[PARTS] = {};
    load_rows(a, p, a.k, a.row_stride, blockIdx.y * WARPS, WARPS, 1, s.own[0]);
    load_rows(a, p, a.v, a.row_stride, blockIdx.y * WARPS, WARPS, 1, s.own[1]);
    for (uint32_t q0 = a.causal ? blockIdx.y * WARPS / TILE * TILE : 0; q0 < a.tokens; q0 += TILE) {
        __syncthreads();
        load_rows(a, p, a.q, a.row_stride, q0, TILE, a.scale, s.one);
        load_rows(a, p, a.dout, a.out_stride, q0, TILE, 1, s.two);
        __syncthreads();
        if (key >= a.tokens) continue;
        const uint32_t query = q0 + lane;
        const uint64_t row = p.item * a.tokens + query;
        const float score = score_of(a, p, query, key, product(a.depth, s.one[lane], s.own[0][warp]));
        const float weight = query < a.tokens ? gpu_exp(score - a.logsumexp[row]) : 0;
        float kept = 0, slope = 0;
        if (weight != 0) {
            const float factor = factor_of(a, p, query, key);
            kept = weight * factor;
            slope = weight * (product(a.depth, s.two[lane], s.own[1][warp]) * factor - a.delta[row]);
        }
        s.weights[0][warp][lane] = kept;
        s.weights[1][warp][lane] = slope;
        __syncwarp();
        add_weighted(a.depth, s.weights[0][warp], s.two, dv);
        add_weighted(a.depth, s.weights[1][warp], s.one, dk);
        __syncwarp();
    }
    if (key >= a.tokens) return;
    store_row(a, p, a.dk, a.row_stride, key, dk, 1); /* the queries were scaled */
    store_row(a, p, a.dv, a.row_stride, key, dv, 1);
}

/* drelative[row][head] gets the sum over sequences and blocks of queries, in their order. */
template <class G>
static __global__ void __launch_bounds__(GPU_THREADS)
    join_relative(uint32_t batch, uint32_t heads, uint32_t blocks, uint32_t table, const float *parts, G *drelative,
                  bool fresh)
{
    const uint32_t i = blockIdx.x * GPU_THREADS + threadIdx.x, row = i / heads, head = i % heads;
    if (row >= table) return;
    float sum = 0;
    for (uint32_t b = 0; b < batch; b++)
        for (uint32_t block = 0; block < blocks; block++)
            sum += parts[(((uint64_t)b * heads + head) * blocks + block) * table + row];
    drelative[i] = gpu_round<G>(fresh ? sum : gpu_widen(drelative[i]) + sum);
}

/* ---- Calls ---- */

static uint32_t blocks_of(const slc_attention_shape *s)
{
    return (uint32_t)((s->tokens + WARPS - 1) / WARPS);
}

static uint32_t table_rows(const slc_attention_shape *s)
{
    return s->relative ? (uint32_t)attention_distances(s) + 3 : 0;
}

/* Args: of forward or backward. */
template <class T, class Args> static attention_arrays<T> arrays_of(const Args *args)
{
    const slc_attention_shape *s = &args->shape;
    attention_arrays<T> a = {};
    a.batch = (uint32_t)s->batch, a.tokens = (uint32_t)s->tokens, a.heads = (uint32_t)s->heads;
    a.depth = (uint32_t)s->head_size;
    a.row_stride = s->row_stride, a.out_stride = s->out_stride;
    a.causal = s->causal;
    a.key_mask = s->key_mask;
    a.bias = s->bias, a.bias_batch = s->bias_batch, a.bias_head = s->bias_head;
    a.relative = (const T *)s->relative, a.table = table_rows(s);
    a.window_h = (uint32_t)s->window_h, a.window_w = (uint32_t)s->window_w;
    a.dropout = gpu_dropout_of(s->dropout);
    a.scale = 1.0f / sqrtf((float)s->head_size);
    a.q = (const T *)args->q, a.k = (const T *)args->k, a.v = (const T *)args->v;
    return a;
}

template <class T> static sluice_status forward(sluice_stream *stream, const slc_attention_forward_args *args)
{
    const slc_attention_shape *s = &args->shape;
    attention_arrays<T> a = arrays_of<T>(args);
    a.out = (T *)args->out, a.logsumexp = (float *)args->logsumexp;
    GPU_START(attend<T>, dim3((uint32_t)(s->batch * s->heads), blocks_of(s)), dim3(WARPS * GPU_LANES),
              sizeof(tile_shared), slc_cuda_stream(stream), a);
    return slc_cuda_launched(stream, "attention_forward");
}

sluice_status slc_attention_forward_cuda(sluice_stream *stream, const slc_attention_forward_args *args)
{
    if (!args->shape.batch || !args->shape.tokens) return SLUICE_OK;
    return GPU_BY_TYPE(args->shape.dtype, forward, stream, args);
}

uint64_t slc_attention_workspace_bytes_cuda(const sluice_stream *, const slc_attention_shape *s)
{
    return s->batch * s->heads * (s->tokens + (uint64_t)blocks_of(s) * table_rows(s)) * sizeof(float);
}

/* The parts of drelative lie in the workspace after delta. */
template <class G> static sluice_status join(sluice_stream *stream, const slc_attention_backward_args *args)
{
    const slc_attention_shape *s = &args->shape;
    const uint32_t heads = (uint32_t)s->heads, table = table_rows(s);
    const dim3 all((table * heads + GPU_THREADS - 1) / GPU_THREADS);
    const float *parts = (const float *)args->workspace + s->batch * heads * s->tokens;
    GPU_START(join_relative<G>, all, dim3(GPU_THREADS), 0, slc_cuda_stream(stream), (uint32_t)s->batch, heads,
              blocks_of(s), table, parts, (G *)args->drelative, args->fresh);
    return slc_cuda_launched(stream, "attention_backward (drelative)");
}

template <class T> static sluice_status backward(sluice_stream *stream, const slc_attention_backward_args *args)
{
    const slc_attention_shape *s = &args->shape;
    attention_arrays<T> a = arrays_of<T>(args);
    a.out_in = (const T *)args->out, a.dout = (const T *)args->dout, a.logsumexp = (float *)args->logsumexp;
    a.dq = (T *)args->dq, a.dk = (T *)args->dk, a.dv = (T *)args->dv;
    a.delta = (float *)args->workspace;
    a.drelative = args->drelative ? a.delta + s->batch * s->heads * s->tokens : NULL;
    const dim3 grid((uint32_t)(s->batch * s->heads), blocks_of(s)), threads(WARPS * GPU_LANES);
    GPU_START(attend_backward_queries<T>, grid, threads, sizeof(tile_shared), slc_cuda_stream(stream), a);
    sluice_status status = slc_cuda_launched(stream, "attention_backward (queries)");
    if (status) return status;
    GPU_START(attend_backward_keys<T>, grid, threads, sizeof(tile_shared), slc_cuda_stream(stream), a);
    status = slc_cuda_launched(stream, "attention_backward (keys)");
    return status || !args->drelative ? status : GPU_BY_TYPE(args->gradient, join, stream, args);
}

sluice_status slc_attention_backward_cuda(sluice_stream *stream, const slc_attention_backward_args *args)
{
    if (!args->shape.batch || !args->shape.tokens) return SLUICE_OK;
    return GPU_BY_TYPE(args->shape.dtype, backward, stream, args);
}
