/* Forward takes eight channels a thread. Backward gives a warp to each place and 256 channels: the warp of the first
 * place with a token adds up all places with that token, in their order, so that no two warps write the same row and
 * the sums are the host's to the bit. */
#include "lib/kernels/embedding/embedding.h"

#include "lib/kernels/gpu.cuh"

enum { WARPS = 8, CHANNELS = GPU_LANES * GPU_EACH };

/* aligned: all arrays, and rows. */
template <class T>
static __global__ void __launch_bounds__(WARPS *GPU_LANES) add_rows(slc_embedding_forward_args a, bool aligned)
{
    const uint64_t place = (uint64_t)blockIdx.x * WARPS + threadIdx.x / GPU_LANES, channels = a.channels;
    if (place >= a.batch * a.length) return;
    const T *token = (const T *)a.tables.token + (uint64_t)a.tokens[place] * channels;
    const T *position = a.tables.position ? (const T *)a.tables.position + place % a.length * channels : NULL;
    const T *type =
        a.tables.type ? (const T *)a.tables.type + (a.types ? (uint64_t)a.types[place] : 0) * channels : NULL;
    for (uint64_t c = threadIdx.x % GPU_LANES * GPU_EACH; c < channels; c += CHANNELS) {
        float sum[GPU_EACH], v[GPU_EACH];
        gpu_load8(token + c, aligned, channels - c, 0.0f, sum);
        if (position) {
            gpu_load8(position + c, aligned, channels - c, 0.0f, v);
            for (int e = 0; e < GPU_EACH; e++) sum[e] += v[e];
        }
        if (type) {
            gpu_load8(type + c, aligned, channels - c, 0.0f, v);
            for (int e = 0; e < GPU_EACH; e++) sum[e] += v[e];
        }
        gpu_store8((T *)a.out + place * channels + c, aligned, channels - c, sum);
    }
}

template <class T> static sluice_status forward(sluice_stream *stream, const slc_embedding_forward_args *a)
{
    const bool aligned = a->channels % GPU_EACH == 0 && gpu_aligned(a->tables.token) &&
                         gpu_aligned(a->tables.position) && gpu_aligned(a->tables.type) && gpu_aligned(a->out);
    GPU_START(add_rows<T>, dim3((uint32_t)((a->batch * a->length + WARPS - 1) / WARPS)), dim3(WARPS * GPU_LANES), 0,
              slc_cuda_stream(stream), *a, aligned);
    return slc_cuda_launched(stream, "embedding_forward");
}

GPU_KERNEL(slc_embedding_forward, slc_embedding_forward_args, dtype, forward)

/* The sum of what a row of the gradient gets, in channels c..c+7, from the places that belong to it, from zero and in
 * their order. It is added to the row at the end. */
struct row_sum {
    float sum[GPU_EACH] = {0};

    template <class T> __device__ void add(const T *dout, uint64_t left)
    {
        float v[GPU_EACH];
        gpu_load8(dout, false, left, 0.0f, v);
        for (int e = 0; e < GPU_EACH; e++) sum[e] += v[e];
    }
    template <class G> __device__ void add_to(G *row, uint64_t left)
    {
        float before[GPU_EACH];
        gpu_load8(row, false, left, 0.0f, before);
        for (int e = 0; e < GPU_EACH; e++) before[e] += sum[e];
        gpu_store8(row, false, left, before);
    }
};

struct place_keys {
    const int32_t *keys;
    const uint32_t *order;
    bool padded; /* places with the key `padding` are skipped */
    int32_t padding;
};

/* `order` has the places sorted by key. The warp at the first place of a key adds up all places of that key: its lanes
 * look at the next 32 places together, so that what they add does not wait for one place after the other to be read. */
template <class T, class G>
static __global__ void __launch_bounds__(WARPS *GPU_LANES)
    add_by_key(uint64_t places, uint64_t channels, place_keys by, const T *dout, G *table)
{
    const int32_t *const keys = by.keys;
    const uint32_t *const order = by.order;
    const uint64_t first = (uint64_t)blockIdx.x * WARPS + threadIdx.x / GPU_LANES;
    const uint32_t lane = threadIdx.x % GPU_LANES;
    if (first >= places) return;
    const int32_t key = keys[order[first]];
    if ((by.padded && key == by.padding) || (first && keys[order[first - 1]] == key)) return;
    const uint64_t c = (uint64_t)blockIdx.y * CHANNELS + lane * GPU_EACH;
    const bool mine = c < channels;
    const uint64_t left = mine ? channels - c : 0;
    G *row = table + (uint64_t)key * channels + c;
    row_sum s;
    for (uint64_t at = first, more = GPU_LANES; more == GPU_LANES; at += more) {
        const uint32_t place = at + lane < places ? order[at + lane] : 0;
        const bool same = at + lane < places && keys[place] == key;
        more = (uint64_t)__popc(__ballot_sync(0xffffffffu, same));
        for (uint32_t i = 0; i < more; i++) {
            const uint64_t from = __shfl_sync(0xffffffffu, place, (int)i);
            if (mine) s.add(dout + from * channels + c, left);
        }
    }
    if (mine) s.add_to(row, left);
}

/* Row r of the table gets places r, r + rows, ... */
template <class T, class G>
static __global__ void __launch_bounds__(WARPS *GPU_LANES)
    add_by_row(uint64_t rows, uint64_t places, uint64_t channels, const T *dout, G *table)
{
    const uint64_t row = (uint64_t)blockIdx.x * WARPS + threadIdx.x / GPU_LANES;
    const uint64_t c = (uint64_t)blockIdx.y * CHANNELS + threadIdx.x % GPU_LANES * GPU_EACH;
    if (row >= rows || c >= channels) return;
    row_sum s;
    for (uint64_t place = row; place < places; place += rows) s.add(dout + place * channels + c, channels - c);
    s.add_to(table + row * channels + c, channels - c);
}

template <class T, class G> static sluice_status backward(sluice_stream *stream, const slc_embedding_backward_args *a)
{
    const slc_embedding_gradients *g = &a->gradients;
    const uint64_t places = a->batch * a->length, channels = a->channels;
    const uint32_t groups = (uint32_t)((channels + CHANNELS - 1) / CHANNELS);
    const dim3 by_place((uint32_t)((places + WARPS - 1) / WARPS), groups),
        by_position((uint32_t)((a->length + WARPS - 1) / WARPS), groups), threads(WARPS * GPU_LANES);
    const place_keys tokens = {a->tokens, g->token_order, g->padded, g->padding};
    const place_keys types = {a->types, g->type_order, false, 0};
    const T *from = (const T *)a->dout;
    cudaStream_t s = slc_cuda_stream(stream);
    if (g->token) GPU_START((add_by_key<T, G>), by_place, threads, 0, s, places, channels, tokens, from, (G *)g->token);
    if (g->position)
        GPU_START((add_by_row<T, G>), by_position, threads, 0, s, a->length, places, channels, from, (G *)g->position);
    if (g->type && a->types)
        GPU_START((add_by_key<T, G>), by_place, threads, 0, s, places, channels, types, from, (G *)g->type);
    else if (g->type)
        GPU_START((add_by_row<T, G>), dim3(1, groups), threads, 0, s, (uint64_t)1, places, channels, from,
                  (G *)g->type);
    return slc_cuda_launched(stream, "embedding_backward");
}

GPU_KERNEL_OF_TYPES(slc_embedding_backward, slc_embedding_backward_args, dtype, gradient, backward)
