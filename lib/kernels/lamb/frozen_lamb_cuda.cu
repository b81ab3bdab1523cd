/* All passes are one function of eight elements, which is told where m comes from and what to store and add up: the
 * operations of frozen_lamb_cpu.c, in their order. If sums are wanted, a thread takes a grain of sixteen, and a block
 * adds to bins in shared memory first. */
#include "lib/kernels/lamb/frozen_lamb_cpu.h"

#include "lib/kernels/adamw/adamw_cuda.cuh"
#include "lib/kernels/compress/packets_cuda.cuh"
#include "lib/kernels/norm/norm_cuda.cuh"

enum pass_kind { MEASURE, UPDATE, RECEIVE, MOVE };

struct lamb_pass {
    slc_frozen_lamb_args a;
    bool aligned, gradient_aligned;
};

static lamb_pass pass_of(const slc_frozen_lamb_args &args)
{
    const slc_frozen_lamb_range &r = args.range;
    return {args,
            gpu_aligned(r.value) && gpu_aligned(r.momentum) && gpu_aligned(r.fresh) && gpu_aligned(r.exp_avg_sq) &&
                gpu_aligned(r.fresh_last) && gpu_aligned(r.rounded),
            gpu_aligned(args.gradient)};
}

/* Gives m of elements at..at+7, and for passes that keep it the momentum before. */
template <pass_kind PASS, class G>
static __device__ __forceinline__ void load_momentum(const lamb_pass &p, const slc_adamw_factors &f, uint64_t at,
                                                     uint64_t left, float m[GPU_EACH], float last[GPU_EACH])
{
    gpu_load8(p.a.range.momentum + at, p.aligned, left, 0.0f, last);
    if (PASS == RECEIVE) gpu_decode<GPU_EACH>(p.a.packets, p.a.offset + at, left, p.a.divisor, m);
    if (PASS == MOVE)
        for (int e = 0; e < GPU_EACH; e++) m[e] = last[e];
    if (PASS == RECEIVE || PASS == MOVE) return;
    float g[GPU_EACH];
    gpu_load8((const G *)p.a.gradient + at, p.gradient_aligned, left, 0.0f, g);
    for (int e = 0; e < GPU_EACH; e++) m[e] = f.beta1 * last[e] + f.rest1 * (f.gradient_factor * g[e]);
}

/* Works on the first `left` of elements at..at+7. move and update: the parts of u, for sums. */
template <pass_kind PASS, class G>
static __device__ __forceinline__ void eight(const lamb_pass &p, const slc_adamw_factors &f, float rate, uint64_t at,
                                             uint64_t left, float move[GPU_EACH], float update[GPU_EACH],
                                             float *largest)
{
    const slc_frozen_lamb_range &r = p.a.range;
    float w[GPU_EACH], v[GPU_EACH], m[GPU_EACH], last[GPU_EACH], fresh[GPU_EACH];
    load_momentum<PASS, G>(p, f, at, left, m, last);
    gpu_load8(r.value + at, p.aligned, left, 0.0f, w);
    gpu_load8(r.exp_avg_sq + at, p.aligned, left, 0.0f, v);
    if (PASS != MOVE) gpu_load8(r.fresh_last + at, p.aligned, left, 0.0f, fresh);
    for (unsigned e = 0; e < GPU_EACH; e++) {
        if (PASS != MOVE && r.mask && v[e] == 0.0f) m[e] = 0.0f;
        const float below = sqrtf(v[e]) * f.rescale + f.epsilon;
        move[e] = f.correction * m[e] / below;
        update[e] = move[e] + f.decay * w[e];
        if (PASS != MOVE) {
            const float g = fmaf(-f.beta1, last[e], m[e]) / f.rest1;
            fresh[e] = f.beta2 * fresh[e] + f.rest2 * g * g;
        }
        if (PASS == MEASURE || PASS == RECEIVE) {
            float ratio = below / (sqrtf(fresh[e]) * p.a.fresh_rescale + f.epsilon);
            if (r.mask && !r.counts_masked && v[e] == 0.0f) ratio = 0.0f;
            if (e < left && ratio > *largest) *largest = ratio;
        } else {
            w[e] = w[e] - rate * update[e];
        }
    }
    if (PASS == UPDATE || PASS == RECEIVE) {
        gpu_store8(r.momentum + at, p.aligned, left, m);
        gpu_store8(r.fresh + at, p.aligned, left, fresh);
    }
    if (PASS == MEASURE || PASS == RECEIVE) return;
    gpu_store8(r.value + at, p.aligned, left, w);
    if (r.rounded) gpu_store8((gpu_bf16 *)r.rounded + at, p.aligned, left, w);
}

/* ---- measure, receive ---- */

struct lamb_shared {
    gpu_bins move, update;
};

/* `receive` joins the grains of four neighbours before they go to bins, as the host does. */
template <pass_kind PASS>
static __device__ __forceinline__ void add_grain(gpu_bins *bins, bool any, const float x[GPU_GRAIN])
{
    const double grain = gpu_grain_sum(x);
    if (PASS == MEASURE) {
        if (any) gpu_bins_add(bins, grain);
        return;
    }
    double four = grain;
    for (unsigned i = 1; i < 4; i++) four += __shfl_down_sync(0xffffffffu, grain, i);
    if (threadIdx.x % 4 == 0) gpu_bins_add(bins, four);
}

/* Copies the fresh variance, and changes nothing else. */
static __device__ void begin_fresh(const lamb_pass &p, const gpu_place &place)
{
    const slc_frozen_lamb_range &r = p.a.range;
    const uint64_t step = (uint64_t)place.blocks * GPU_THREADS;
    for (uint64_t i = (uint64_t)place.block * GPU_THREADS + threadIdx.x; i < r.count; i += step)
        r.fresh[i] = r.fresh_last[i];
}

template <pass_kind PASS, class G>
static __global__ void __launch_bounds__(GPU_THREADS) sum_up(gpu_many<lamb_pass> many)
{
    SLC_SHARED(lamb_shared, s);
    const gpu_place place = gpu_place_in(many);
    const lamb_pass p = many.at[place.functor];
    slc_adamw_factors f = p.a.factors;
    float largest = 0.0f;
    if (!slc_adamw_heed_words(p.a.words, &f)) {
        if (PASS == RECEIVE && p.a.words->skip == SLC_EXCHANGE_FAILED) begin_fresh(p, place);
        return;
    }
    gpu_bins_clear(&s.move);
    gpu_bins_clear(&s.update);
    __syncthreads();
    const uint64_t count = p.a.range.count, step = (uint64_t)place.blocks * GPU_THREADS * GPU_GRAIN;
    for (uint64_t tile = (uint64_t)place.block * GPU_THREADS * GPU_GRAIN; tile < count; tile += step) {
        const uint64_t at = tile + (uint64_t)threadIdx.x * GPU_GRAIN;
        float move[GPU_GRAIN] = {}, update[GPU_GRAIN] = {};
        for (int half = 0; half < GPU_GRAIN; half += GPU_EACH)
            if (at + half < count)
                eight<PASS, G>(p, f, 0.0f, at + half, count - at - half, move + half, update + half, &largest);
        add_grain<PASS>(&s.move, at < count, move);
        add_grain<PASS>(&s.update, at < count, update);
    }
    __syncthreads();
    gpu_bins_join(p.a.sums.move, s.move);
    gpu_bins_join(p.a.sums.update, s.update);
    largest = gpu_warp_largest(largest);
    if (threadIdx.x % GPU_LANES == 0 && largest > 0.0f)
        atomicMax((unsigned long long *)p.a.sums.ratio, (unsigned long long)__double_as_longlong((double)largest));
}

template <pass_kind PASS, class G>
static sluice_status launch_sums(sluice_stream *stream, const char *name, uint32_t count,
                                 const slc_frozen_lamb_args *args)
{
    return gpu_start_many<lamb_pass>(
        stream, name, count, [&](uint32_t k) { return args[k].range.count; },
        [&](uint64_t items) { return gpu_blocks(stream, items, GPU_THREADS * GPU_GRAIN); },
        [&](uint32_t k) { return pass_of(args[k]); },
        [&](uint32_t all, const gpu_many<lamb_pass> &many) {
            GPU_START((sum_up<PASS, G>), dim3(all), dim3(GPU_THREADS), sizeof(lamb_shared), slc_cuda_stream(stream),
                      many);
        });
}

template <class G>
static sluice_status measure_as(sluice_stream *stream, uint32_t count, const slc_frozen_lamb_args *args)
{
    return launch_sums<MEASURE, G>(stream, "frozen_lamb_measure", count, args);
}

sluice_status slc_frozen_lamb_measure_many_cuda(sluice_stream *stream, uint32_t count, const slc_frozen_lamb_args *args)
{
    return GPU_BY_TYPE(args->gradient_dtype, measure_as, stream, count, args);
}

sluice_status slc_frozen_lamb_receive_many_cuda(sluice_stream *stream, uint32_t count, const slc_frozen_lamb_args *args)
{
    return launch_sums<RECEIVE, float>(stream, "frozen_lamb_receive", count, args);
}

/* ---- update, move ---- */

template <pass_kind PASS, class G> struct move_elements {
    lamb_pass p;
    __device__ void operator()(uint64_t i, uint64_t left) const
    {
        slc_adamw_factors f = p.a.factors;
        float move[GPU_EACH], update[GPU_EACH], largest = 0.0f;
        if (!slc_adamw_heed_words(p.a.words, &f)) return;
        const float rate = (float)(p.a.learning_rate * *p.a.coefficient);
        eight<PASS, G>(p, f, rate, i, left, move, update, &largest);
    }
};

template <pass_kind PASS, class G>
static sluice_status launch_moves(sluice_stream *stream, const char *name, uint32_t count,
                                  const slc_frozen_lamb_args *args)
{
    return gpu_launch_many<move_elements<PASS, G>>(
        stream, name, count, [&](uint32_t k) { return args[k].range.count; },
        [&](uint32_t k) { return move_elements<PASS, G>{pass_of(args[k])}; });
}

template <class G>
static sluice_status update_as(sluice_stream *stream, uint32_t count, const slc_frozen_lamb_args *args)
{
    return launch_moves<UPDATE, G>(stream, "frozen_lamb_update", count, args);
}

sluice_status slc_frozen_lamb_update_many_cuda(sluice_stream *stream, uint32_t count, const slc_frozen_lamb_args *args)
{
    return GPU_BY_TYPE(args->gradient_dtype, update_as, stream, count, args);
}

sluice_status slc_frozen_lamb_move_many_cuda(sluice_stream *stream, uint32_t count, const slc_frozen_lamb_args *args)
{
    return launch_moves<MOVE, float>(stream, "frozen_lamb_move", count, args);
}
