/* The library's compression on a GPU, with the steps and the bits of compress_cuda.cuh. If a block of elements has a
 * scale, a block of threads forms it. If there is one scale, threads stride over the grains and add to the caller's
 * bins, and a small second kernel makes the scale of them. */
#include "lib/kernels/compress/compress_cpu.h"

#include "lib/kernels/adamw/adamw_cuda.cuh"
#include "lib/kernels/compress/compress_cuda.cuh"
#include "lib/kernels/compress/packets_cuda.cuh"

/* ---- Sums, signs and scales, for pass 1 and the server ---- */

static __device__ __forceinline__ unsigned char *packet_at(const slc_compress_out &out, uint64_t chunk)
{
    return (unsigned char *)out.packets + chunk * out.stride;
}

/* input.at(chunk, number, at, left, b) gives up to sixteen numbers of a chunk, under its scale number `number`. */
template <class F>
static __global__ void __launch_bounds__(SLC_COMPRESS_CUDA_THREADS) sum_blocks(slc_compress_out out, F input)
{
    SLC_SHARED(gpu_bins, bins);
    if (slc_compress_skips(input.words)) return;
    const uint64_t item = out.first_item + blockIdx.x;
    compress_block block = {item / out.scales, item % out.scales, 0, 0};
    block.from = block.number * out.scale_elements;
    block.to = out.chunk - block.from < out.scale_elements ? out.chunk : block.from + out.scale_elements;
    compress_one_scale(&bins, block, out.residue.sum + block.chunk * out.chunk, out.residue.scale + item,
                       packet_at(out, block.chunk), out.scales, [&](uint64_t at, uint64_t left, float b[GPU_GRAIN]) {
                           input.at(block.chunk, block.number, at, left, b);
                       });
}

struct sums_shared {
    gpu_bins bins;
};

/* A tensor whose grains of sixteen are worked on, counted through all chunks, each of which begins at a multiple of
 * four. */
template <class F> struct grains_of {
    slc_compress_out out;
    F input;
};

/* Works on a block's share of `grains` grains. */
template <class F>
static __device__ __forceinline__ void sum_share(sums_shared &s, const gpu_place &place, uint64_t grains,
                                                 const slc_compress_out &out, const F &input)
{
    if (slc_compress_skips(input.words)) return;
    const uint64_t each = (out.chunk + SLC_COMPRESS_GRAIN - 1) / SLC_COMPRESS_GRAIN * (SLC_COMPRESS_GRAIN / GPU_GRAIN);
    gpu_bins_clear(&s.bins);
    __syncthreads();
    for (uint64_t tile = (uint64_t)place.block * GPU_THREADS; tile < grains;
         tile += (uint64_t)place.blocks * GPU_THREADS) {
        const uint64_t grain = tile + threadIdx.x;
        const uint64_t counted = out.first_item * (SLC_COMPRESS_GRAIN / GPU_GRAIN) + grain;
        const uint64_t chunk = counted / each, at = counted % each * GPU_GRAIN;
        float b[GPU_GRAIN] = {};
        if (grain < grains && at < out.chunk) {
            const uint64_t rest = out.chunk - at, whole = GPU_GRAIN, left = rest < whole ? rest : whole;
            input.at(chunk, 0, at, left, b);
            compress_keep(b, out.residue.sum + chunk * out.chunk + at, left, out.residue.scale[chunk],
                          compress_packet_bits(packet_at(out, chunk), out.scales) + at / 8);
        }
        compress_add_squares(&s.bins, b);
    }
    __syncthreads();
    gpu_bins_join(out.bins, s.bins);
}

template <class F>
static __global__ void __launch_bounds__(GPU_THREADS) sum_grains(slc_compress_out out, uint64_t grains, F input)
{
    SLC_SHARED(sums_shared, s);
    sum_share(s, {0, blockIdx.x, gridDim.x}, grains, out, input);
}

template <class F> static __global__ void __launch_bounds__(GPU_THREADS) sum_grains_of(gpu_many<grains_of<F>> many)
{
    SLC_SHARED(sums_shared, s);
    const gpu_place place = gpu_place_in(many);
    const grains_of<F> tensor = many.at[place.functor];
    sum_share(s, place, many.items[place.functor], tensor.out, tensor.input);
}

struct scale_shared {
    float scale;
};

/* A tensor of which the bins, the norm of `count` elements, give one scale for `chunks` chunks and their packets. */
struct scale_of {
    slc_compress_out out;
    uint32_t chunks;
    uint64_t count;
    const sluice_step_words *words;
};

/* Gives each tensor its scale, with one block a tensor. */
static __global__ void __launch_bounds__(GPU_LANES) give_scales(gpu_many<scale_of> many)
{
    SLC_SHARED(scale_shared, s);
    const scale_of t = many.at[gpu_place_in(many).functor];
    if (slc_compress_skips(t.words)) return;
    if (!threadIdx.x) s.scale = compress_scale(t.out.bins, t.count);
    __syncthreads();
    for (uint32_t k = threadIdx.x; k < t.chunks; k += GPU_LANES) {
        t.out.residue.scale[k] = s.scale;
        compress_put_scale(packet_at(t.out, k), 0, s.scale);
    }
}

/* Zeroes the bins of each tensor, with one block a tensor. */
static __global__ void __launch_bounds__(GPU_LANES) clear_bins(gpu_many<int64_t *> many)
{
    int64_t *bins = many.at[gpu_place_in(many).functor];
    for (unsigned i = threadIdx.x; i < SLC_NORM_BINS; i += GPU_LANES) bins[i] = 0;
}

template <class F>
static sluice_status launch_blocks(sluice_stream *stream, const char *name, const slc_compress_out &out, uint64_t items,
                                   const F &input)
{
    GPU_START(sum_blocks<F>, dim3((uint32_t)items), dim3(SLC_COMPRESS_CUDA_THREADS), SLC_COMPRESS_CUDA_SHARED,
              slc_cuda_stream(stream), out, input);
    return slc_cuda_launched(stream, name);
}

template <class F>
static sluice_status launch_grains(sluice_stream *stream, const char *name, const slc_compress_out &out, uint64_t items,
                                   const F &input)
{
    const uint64_t grains = items * (SLC_COMPRESS_GRAIN / GPU_GRAIN);
    GPU_START(sum_grains<F>, dim3(gpu_blocks(stream, grains, GPU_THREADS)), dim3(GPU_THREADS), sizeof(sums_shared),
              slc_cuda_stream(stream), out, grains, input);
    return slc_cuda_launched(stream, name);
}

static uint64_t items_of(uint64_t count, uint64_t each)
{
    return (count + each - 1) / each;
}

/* ---- Passes over many tensors, whose scales are of whole tensors ---- */

static uint32_t one_block(uint64_t)
{
    return 1;
}

/* Makes the scales of `count` tensors, as make(k) gives them; those without items are left out. */
template <class I, class M>
static sluice_status launch_scales(sluice_stream *stream, const char *name, uint32_t count, I items, M make)
{
    return gpu_start_many<scale_of>(
        stream, name, count, items, one_block, make, [&](uint32_t all, const gpu_many<scale_of> &many) {
            GPU_START(give_scales, dim3(all), dim3(GPU_LANES), sizeof(scale_shared), slc_cuda_stream(stream), many);
        });
}

/* Sums, signs and then scales of the tensors that have one scale. out(k), chunks(k), words(k): a tensor's destination,
 * how many chunks of it are worked on, its words; input(k): what is summed. */
template <class F, class O, class C, class W, class N>
static sluice_status launch_whole(sluice_stream *stream, const char *name, const char *scale_name, uint32_t count,
                                  O out, C chunks, W words, N input)
{
    typedef grains_of<F> tensor;
    const auto grains = [&](uint32_t k) -> uint64_t {
        const slc_compress_out &to = out(k);
        return to.scale_elements
                   ? 0
                   : chunks(k) * items_of(to.chunk, SLC_COMPRESS_GRAIN) * (SLC_COMPRESS_GRAIN / GPU_GRAIN);
    };
    sluice_status status = gpu_start_many<int64_t *>(
        stream, "clear_bins", count, grains, one_block, [&](uint32_t k) { return out(k).bins; },
        [&](uint32_t all, const gpu_many<int64_t *> &many) {
            GPU_START(clear_bins, dim3(all), dim3(GPU_LANES), 0, slc_cuda_stream(stream), many);
        });
    if (!status)
        status = gpu_start_many<tensor>(
            stream, name, count, grains, [&](uint64_t items) { return gpu_blocks(stream, items, GPU_THREADS); },
            [&](uint32_t k) {
                return tensor{out(k), input(k)};
            },
            [&](uint32_t all, const gpu_many<tensor> &many) {
                GPU_START(sum_grains_of<F>, dim3(all), dim3(GPU_THREADS), sizeof(sums_shared), slc_cuda_stream(stream),
                          many);
            });
    if (status) return status;
    return launch_scales(stream, scale_name, count, grains, [&](uint32_t k) {
        return scale_of{out(k), chunks(k), chunks(k) * out(k).chunk, words(k)};
    });
}

static sluice_status launch_scale(sluice_stream *stream, const char *name, const slc_compress_out &out, uint32_t chunks,
                                  const sluice_step_words *words)
{
    const scale_of one = {out, chunks, chunks * out.chunk, words};
    return launch_scales(
        stream, name, 1, [](uint32_t) { return (uint64_t)1; }, [&](uint32_t) { return one; });
}

/* ---- Pass 1 ---- */

template <class G, class M> struct worker_input {
    const G *gradient;
    const M *momentum;
    const float *exp_avg_sq, *accumulator, *value;
    uint64_t count, chunk;
    float gradient_factor, factor, rest, decay, rescale, epsilon;
    bool gradient_aligned, momentum_aligned, moves_aligned;
    const sluice_step_words *words;

    /* Adds how far this rank has moved by itself. */
    __device__ void add_moves(uint64_t i, uint64_t left, float x[GPU_GRAIN]) const
    {
        float v[GPU_GRAIN], u[GPU_GRAIN] = {}, w[GPU_GRAIN];
        gpu_load_grain(exp_avg_sq + i, moves_aligned, left, v);
        if (accumulator) gpu_load_grain(accumulator + i, moves_aligned, left, u);
        if (value) gpu_load_grain(value + i, moves_aligned, left, w);
        for (int e = 0; e < GPU_GRAIN; e++) {
            if (value) u[e] = u[e] - decay * w[e];
            x[e] = x[e] + u[e] * (sqrtf(v[e]) * rescale + epsilon);
        }
    }
    __device__ void at(uint64_t number, uint64_t, uint64_t at, uint64_t left, float x[GPU_GRAIN]) const
    {
        const uint64_t i = number * chunk + at;
        if (i >= count) return; /* padding */
        if (count - i < left) left = count - i;
        const float scaled = words ? (float)words->gradient_factor : gradient_factor;
        float m[GPU_GRAIN];
        gpu_load_grain(gradient + i, gradient_aligned, left, x);
        if (momentum) gpu_load_grain(momentum + i, momentum_aligned, left, m);
        for (int e = 0; e < GPU_GRAIN; e++) {
            x[e] = rest * (scaled * x[e]);
            if (momentum) x[e] = factor * m[e] + x[e];
        }
        if (exp_avg_sq) add_moves(i, left, x);
    }
};

template <class G, class M> static worker_input<G, M> input_of(const slc_compress_worker_args *args)
{
    const slc_compress_out &out = args->out;
    const slc_compress_input &in = args->input;
    worker_input<G, M> input = {};
    input.gradient = (const G *)in.gradient;
    input.momentum = (const M *)in.momentum;
    input.exp_avg_sq = in.moves.exp_avg_sq, input.accumulator = in.moves.accumulator, input.value = in.moves.value;
    input.count = args->count, input.chunk = out.chunk;
    input.gradient_factor = (float)in.gradient_factor, input.factor = (float)in.factor, input.rest = (float)in.rest;
    input.decay = (float)in.moves.decay, input.rescale = (float)in.moves.rescale;
    input.epsilon = (float)in.moves.epsilon;
    input.gradient_aligned = gpu_aligned(in.gradient), input.momentum_aligned = gpu_aligned(in.momentum);
    input.moves_aligned =
        gpu_aligned(in.moves.exp_avg_sq) && gpu_aligned(in.moves.accumulator) && gpu_aligned(in.moves.value);
    input.words = in.words;
    return input;
}

template <class G, class M>
static sluice_status compress_as(sluice_stream *stream, uint32_t count, const slc_compress_worker_args *args)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t k = 0; !status && k < count; k++) {
        const slc_compress_out &out = args[k].out;
        if (out.scale_elements)
            status = launch_blocks(stream, "compress", out, args[k].ranks * items_of(out.chunk, out.scale_elements),
                                   input_of<G, M>(&args[k]));
    }
    if (status) return status;
    return launch_whole<worker_input<G, M>>(
        stream, "compress", "compress_scale", count,
        [&](uint32_t k) -> const slc_compress_out & { return args[k].out; }, [&](uint32_t k) { return args[k].ranks; },
        [&](uint32_t k) { return args[k].input.words; }, [&](uint32_t k) { return input_of<G, M>(&args[k]); });
}

sluice_status slc_compress_worker_many_cuda(sluice_stream *stream, uint32_t count, const slc_compress_worker_args *args)
{
    return GPU_BY_TYPES(args->input.gradient_dtype, args->input.momentum_dtype, compress_as, stream, count, args);
}

/* ---- The server ---- */

struct server_input {
    uint32_t ranks;
    float share;
    uint64_t scales;
    const sluice_step_words *words;
    const unsigned char *packets[SLC_COMPRESS_CUDA_MOST];
    __device__ void at(uint64_t, uint64_t number, uint64_t at, uint64_t left, float b[GPU_GRAIN]) const
    {
        for (uint32_t r = 0; r < ranks; r++)
            compress_add_opinion(packets[r], scales, number, share, r == 0, at, left, b);
    }
};

sluice_status slc_compress_server_cuda(sluice_stream *stream, const slc_compress_server_args *args)
{
    const slc_compress_out &out = args->out;
    server_input input = {};
    input.ranks = args->ranks;
    input.share = (float)(1.0 / args->ranks);
    input.scales = out.scales;
    input.words = args->words;
    for (uint32_t r = 0; r < args->ranks; r++) input.packets[r] = (const unsigned char *)args->packets[r];
    if (out.scale_elements)
        return launch_blocks(stream, "compress_server", out, items_of(args->count, out.scale_elements), input);
    return launch_grains(stream, "compress_server", out, items_of(args->count, SLC_COMPRESS_GRAIN), input);
}

sluice_status slc_compress_server_end_cuda(sluice_stream *stream, const slc_compress_out *out,
                                           const sluice_step_words *words)
{
    if (out->scale_elements) return SLUICE_OK; /* each block has written its scale */
    return launch_scale(stream, "compress_server_end", *out, 1, words);
}

/* Packets that arrived lie one after the other from one address on, but this rank's own lies elsewhere. */
struct arrived_input {
    uint32_t ranks, rank;
    float share;
    uint64_t scales, stride;
    const unsigned char *packets, *own;
    const sluice_step_words *words;
    __device__ void at(uint64_t, uint64_t number, uint64_t at, uint64_t left, float b[GPU_GRAIN]) const
    {
        for (uint32_t r = 0; r < ranks; r++)
            compress_add_opinion(r == rank ? own : packets + r * stride, scales, number, share, r == 0, at, left, b);
    }
};

static arrived_input arrived_of(const slc_compress_arrived_args &a)
{
    arrived_input input = {};
    input.ranks = a.ranks, input.rank = a.rank;
    input.share = (float)(1.0 / a.ranks);
    input.scales = a.out.scales, input.stride = a.stride;
    input.packets = (const unsigned char *)a.packets, input.own = (const unsigned char *)a.own;
    input.words = a.words;
    return input;
}

sluice_status slc_compress_server_many_cuda(sluice_stream *stream, uint32_t count,
                                            const slc_compress_arrived_args *args)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t k = 0; !status && k < count; k++) {
        const slc_compress_out &out = args[k].out;
        if (out.scale_elements)
            status = launch_blocks(stream, "compress_server", out, items_of(out.chunk, out.scale_elements),
                                   arrived_of(args[k]));
    }
    if (status) return status;
    return launch_whole<arrived_input>(
        stream, "compress_server", "compress_server_end", count,
        [&](uint32_t k) -> const slc_compress_out & { return args[k].out; }, [](uint32_t) { return 1u; },
        [&](uint32_t k) { return args[k].words; }, [&](uint32_t k) { return arrived_of(args[k]); });
}

/* ---- Plain errors ---- */

struct fold_elements {
    float *sum;
    const float *scale;
    uint64_t chunk, scale_elements, scales;
    __device__ void operator()(uint64_t i, uint64_t left) const
    {
        const uint64_t number = i / chunk, block = scale_elements ? i % chunk / scale_elements : 0;
        const float last = scale[number * scales + block];
        const bool lost = compress_failed(last);
        float x[GPU_EACH];
        gpu_load8(sum + i, true, left, 0.0f, x);
        for (int e = 0; e < GPU_EACH; e++) x[e] = compress_error(x[e], last, lost);
        gpu_store8(sum + i, true, left, x);
    }
};

sluice_status slc_compress_fold_cuda(sluice_stream *stream, const slc_compress_out *out, uint32_t chunks)
{
    const fold_elements elements = {out->residue.sum, out->residue.scale, out->chunk, out->scale_elements, out->scales};
    return gpu_launch_each(stream, "compress_fold", chunks * out->chunk, elements);
}

/* ---- Looking at packets ---- */

struct look_shared {
    uint32_t failed;
};

/* A tensor whose packets are looked at: there are `ranks` of them, with `scales` scales each. */
struct looked_at {
    const unsigned char *packets;
    uint64_t stride, scales;
    const sluice_step_words *words;
    sluice_step_words *told;
    uint32_t *bad;
    int64_t *cleared;
    uint32_t number, ranks, cleared_count;
};

/* Looks at the packets of each tensor, with one block a tensor. */
static __global__ void __launch_bounds__(GPU_THREADS) look_at(gpu_many<looked_at> many)
{
    SLC_SHARED(look_shared, s);
    const looked_at t = many.at[gpu_place_in(many).functor];
    if (!threadIdx.x) s.failed = 0;
    for (unsigned i = threadIdx.x; i < t.cleared_count; i += GPU_THREADS) t.cleared[i] = 0;
    __syncthreads();
    const bool skip = slc_compress_skips(t.words);
    bool failed = false;
    for (uint64_t i = threadIdx.x; !skip && i < t.ranks * t.scales; i += GPU_THREADS)
        failed = failed || compress_failed(compress_get_scale(t.packets + i / t.scales * t.stride, i % t.scales));
    if (failed) atomicOr(&s.failed, 1u);
    __syncthreads();
    if (threadIdx.x) return;
    if (t.told) {
        t.told->gradient_factor = t.words ? t.words->gradient_factor : 1;
        t.told->skip = skip ? t.words->skip : s.failed ? SLC_EXCHANGE_FAILED : 0;
    }
    if (s.failed && t.bad) atomicMin(t.bad, t.number);
}

sluice_status slc_compress_look_many_cuda(sluice_stream *stream, uint32_t count, const slc_compress_looked *args)
{
    return gpu_start_many<looked_at>(
        stream, "compress_look", count, [](uint32_t) { return (uint64_t)1; }, one_block,
        [&](uint32_t k) {
            const slc_compress_look_args &a = args[k].look;
            return looked_at{(const unsigned char *)a.packets,
                             a.stride,
                             args[k].scales,
                             a.words,
                             a.told,
                             a.bad,
                             a.cleared,
                             a.number,
                             a.shape->count ? a.shape->ranks : 0,
                             a.cleared_count};
        },
        [&](uint32_t all, const gpu_many<looked_at> &many) {
            GPU_START(look_at, dim3(all), dim3(GPU_THREADS), sizeof(look_shared), slc_cuda_stream(stream), many);
        });
}

/* ---- Updates under a frozen variance ---- */

template <class M> struct frozen_elements {
    slc_adamw_factors factors;
    float *value;
    const float *exp_avg_sq;
    M *momentum;
    gpu_bf16 *rounded;
    bool mask, aligned;
    const sluice_step_words *words;

    /* Updates eight elements with the momentum m, which is not yet masked or rounded. */
    __device__ void update(const slc_adamw_factors &f, uint64_t i, uint64_t left, float m[GPU_EACH]) const
    {
        float v[GPU_EACH], w[GPU_EACH];
        gpu_load8(exp_avg_sq + i, aligned, left, 0.0f, v);
        gpu_load8(value + i, aligned, left, 0.0f, w);
        for (int e = 0; e < GPU_EACH; e++) {
            if (mask && v[e] == 0.0f) m[e] = 0.0f;
            m[e] = gpu_widen(gpu_round<M>(m[e]));
            const float move = f.correction * m[e] / (sqrtf(v[e]) * f.rescale + f.epsilon);
            w[e] = w[e] - f.decay * w[e] - move;
        }
        gpu_store8(momentum + i, aligned, left, m);
        gpu_store8(value + i, aligned, left, w);
        if (rounded) gpu_store8(rounded + i, aligned, left, w);
    }
};

template <class M>
static frozen_elements<M> elements_of(const slc_adamw_factors &factors, const slc_frozen_range &range,
                                      const sluice_step_words *words)
{
    frozen_elements<M> e = {};
    e.factors = factors;
    if (range.no_decay) e.factors.decay = 0.0f;
    e.value = range.value;
    e.exp_avg_sq = range.exp_avg_sq;
    e.momentum = (M *)range.momentum;
    e.rounded = (gpu_bf16 *)range.rounded;
    e.mask = range.mask;
    e.aligned = gpu_aligned(range.value) && gpu_aligned(range.exp_avg_sq) && gpu_aligned(range.momentum) &&
                gpu_aligned(range.rounded);
    e.words = words;
    return e;
}

template <class M> struct apply_elements {
    frozen_elements<M> to;
    slc_compress_packets packets;
    uint64_t first;
    bool *finite;
    __device__ void operator()(uint64_t i, uint64_t left) const
    {
        float m[GPU_EACH];
        if (slc_compress_skips(to.words)) return;
        if (gpu_decode8(packets, first + i, finite, m)) to.update(to.factors, first + i, left, m);
    }
};

template <class M>
static sluice_status apply_as(sluice_stream *stream, uint32_t count, const slc_compress_apply_args *args)
{
    return gpu_launch_many<apply_elements<M>>(
        stream, "compress_apply", count, [&](uint32_t k) { return args[k].count; },
        [&](uint32_t k) {
            const slc_compress_apply_args &a = args[k];
            return apply_elements<M>{elements_of<M>(a.factors, a.range, a.words), a.packets, a.first, a.finite};
        });
}

sluice_status slc_compress_apply_many_cuda(sluice_stream *stream, uint32_t count, const slc_compress_apply_args *args)
{
    return GPU_BY_TYPE(args->range.momentum_dtype, apply_as, stream, count, args);
}

template <class M, class G> struct update_elements {
    frozen_elements<M> to;
    const G *gradient;
    bool gradient_aligned;
    __device__ void operator()(uint64_t i, uint64_t left) const
    {
        float m[GPU_EACH], g[GPU_EACH];
        slc_adamw_factors f = to.factors;
        if (!slc_adamw_heed_words(to.words, &f)) return;
        gpu_load8(gradient + i, gradient_aligned, left, 0.0f, g);
        gpu_load8(to.momentum + i, to.aligned, left, 0.0f, m);
        for (int e = 0; e < GPU_EACH; e++) m[e] = f.beta1 * m[e] + f.rest1 * (f.gradient_factor * g[e]);
        to.update(f, i, left, m);
    }
};

template <class M, class G>
static sluice_status update_as(sluice_stream *stream, uint32_t count, const slc_frozen_args *args)
{
    return gpu_launch_many<update_elements<M, G>>(
        stream, "frozen_update", count, [&](uint32_t k) { return args[k].range.count; },
        [&](uint32_t k) {
            const slc_frozen_args &a = args[k];
            return update_elements<M, G>{elements_of<M>(a.factors, a.range, a.words), (const G *)a.gradient,
                                         gpu_aligned(a.gradient)};
        });
}

sluice_status slc_frozen_update_many_cuda(sluice_stream *stream, uint32_t count, const slc_frozen_args *args)
{
    return GPU_BY_TYPES(args->range.momentum_dtype, args->gradient_dtype, update_as, stream, count, args);
}
