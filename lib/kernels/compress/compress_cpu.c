/* Memory sets the pace: every pass touches each array once. The squares of CHUNK grains are summed first, then added to
 * bins (norm_cpu.c). Chunks begin at multiples of 8 elements, so their bits begin at whole bytes.
 * compress_test.c covers this file. */
#include "lib/kernels/compress/compress_cpu.h"

#include "lib/base/integer.h"
#include "lib/kernels/adamw/moments.h"
#include "lib/kernels/compress/packets_cpu.h"
#include "lib/kernels/norm/norm_bins.h"
#include "lib/kernels/norm/norm_grain.h"

#include <math.h>

enum { CHUNK = 64, TILE = CHUNK * LANES };

/* ---- Sums and errors ---- */

/* Returns the error of the last exchange; a failed exchange's error is lost. Elements beyond `left` have none. */
LANES_INLINE lanes load_error(const float *sum, uint64_t left, float scale, bool lost)
{
    if (lost) return lanes_set(0.0f);
    lanes error = without_sign(lanes_load_some(sum, left, 0.0f), scale);
    return left < LANES ? lanes_first(error, left, 0.0f) : error;
}

/* Signs and sums of squares of CHUNK grains, which go to bits and bins together. */
typedef struct {
    uint16_t below_zero[CHUNK];
    double squares[CHUNK];
} kept_grains;

LANES_INLINE void keep(kept_grains *kept, uint64_t grain, float *sum, uint64_t left, lanes a)
{
    lanes_store_some(sum, left, a);
    kept->below_zero[grain] = (uint16_t)lanes_below_zero(a);
    kept->squares[grain] = grain_sum_lanes(a);
}

/* Adds four sums at a time, counted from the beginning of a chunk or block, because bins take longer than the
 * squares. */
static void add_to_bins(int64_t *bins, const double *sums, uint32_t count)
{
    const uint32_t four = SLC_COMPRESS_GRAIN / LANES;
    for (uint32_t i = 0; i < count; i += four) {
        double sum = sums[i];
        for (uint32_t j = i + 1; j < i + four && j < count; j++) sum += sums[j];
        norm_bins_add(bins, sum);
    }
}

/* ---- Items ---- */

/* Works on elements from..to-1 of a chunk, all under one scale, which was `last` in the previous exchange. Adds to
 * bins. */
typedef void run_kernel(const void *args, uint64_t chunk, uint64_t from, uint64_t to, float last, int64_t *bins);

static void each_grain(const slc_compress_out *out, uint64_t first, uint64_t last, run_kernel *run, const void *args)
{
    const uint64_t grain = SLC_COMPRESS_GRAIN, grains = (out->chunk + grain - 1) / grain;
    int64_t bins[SLC_NORM_BINS] = {0};
    while (first < last) {
        uint64_t chunk = first / grains, begin = first % grains, end = slc_least(grains, begin + last - first);
        run(args, chunk, begin * grain, slc_least(end * grain, out->chunk), out->residue.scale[chunk], bins);
        first += end - begin;
    }
    norm_bins_join(out->bins, bins);
}

static void each_block(const slc_compress_out *out, uint64_t first, uint64_t last, run_kernel *run, const void *args)
{
    for (; first < last; first++) {
        uint64_t chunk = first / out->scales, from = first % out->scales * out->scale_elements;
        uint64_t to = slc_least(from + out->scale_elements, out->chunk);
        int64_t bins[SLC_NORM_BINS] = {0};
        float *scale = &out->residue.scale[first];
        run(args, chunk, from, to, *scale, bins);
        *scale = slc_compress_scale(bins, to - from);
    }
}

static void each_item(const slc_compress_out *out, uint64_t first, uint64_t last, run_kernel *run, const void *args)
{
    first += out->first_item, last += out->first_item;
    if (out->scale_elements)
        each_block(out, first, last, run, args);
    else
        each_grain(out, first, last, run, args);
}

static uint8_t *bits_of(const slc_compress_out *out, uint64_t chunk)
{
    return (uint8_t *)out->packets + chunk * out->stride + out->scales * sizeof(float);
}

/* ---- The worker ---- */

typedef struct {
    float gradient_factor, factor, rest, decay, rescale, epsilon;
} mixture;

LANES_INLINE lanes moves_at(const slc_compress_moves *moves, const mixture *mix, uint64_t at, uint64_t left)
{
    lanes u = lanes_set(0.0f), v = lanes_load_some(moves->exp_avg_sq + at, left, 0.0f);
    if (moves->accumulator) u = lanes_load_some(moves->accumulator + at, left, 0.0f);
    if (moves->value)
        u = lanes_sub(u, lanes_mul(lanes_set(mix->decay), lanes_load_some(moves->value + at, left, 0.0f)));
    return lanes_mul(u, lanes_add(lanes_mul(lanes_sqrt(v), lanes_set(mix->rescale)), lanes_set(mix->epsilon)));
}

LANES_INLINE lanes input_at(const slc_compress_input *in, const mixture *mix, sluice_dtype gradient,
                            sluice_dtype momentum, uint64_t at, uint64_t left)
{
    lanes g = lanes_mul(lanes_set(mix->gradient_factor), lanes_load_some_as(gradient, in->gradient, at, left, 0.0f));
    lanes x = lanes_mul(lanes_set(mix->rest), g);
    if (in->momentum)
        x = lanes_add(lanes_mul(lanes_set(mix->factor), lanes_load_some_as(momentum, in->momentum, at, left, 0.0f)), x);
    return in->moves.exp_avg_sq ? lanes_add(x, moves_at(&in->moves, mix, at, left)) : x;
}

LANES_INLINE void worker_run_of(sluice_dtype gradient, sluice_dtype momentum, const slc_compress_worker_args *args,
                                uint64_t chunk, uint64_t from, uint64_t to, float last, int64_t *bins)
{
    const slc_compress_input in = args->input;
    const mixture mix = {(float)in.gradient_factor, (float)in.factor,        (float)in.rest,
                         (float)in.moves.decay,     (float)in.moves.rescale, (float)in.moves.epsilon};
    const bool lost = !isfinite(last);
    const uint64_t base = chunk * args->out.chunk;
    const uint64_t inside = base < args->count ? slc_least(to, args->count - base) : 0; /* the rest is padding */
    float *sum = args->out.residue.sum + base;
    uint8_t *bits = bits_of(&args->out, chunk);
    for (uint64_t at = from; at < to;) {
        const uint64_t begin = at;
        kept_grains kept;
        uint32_t grains = 0;
        for (; grains < CHUNK && at + LANES <= inside; at += LANES) {
            lanes x = input_at(&in, &mix, gradient, momentum, base + at, LANES);
            keep(&kept, grains++, sum + at, LANES, lanes_add(x, load_error(sum + at, LANES, last, lost)));
        }
        if (grains < CHUNK && at < to) {
            uint64_t left = slc_least(to - at, LANES), filled = at < inside ? slc_least(left, inside - at) : 0;
            lanes x = filled ? input_at(&in, &mix, gradient, momentum, base + at, filled) : lanes_set(0.0f);
            keep(&kept, grains++, sum + at, left, lanes_add(x, load_error(sum + at, left, last, lost)));
            at += left;
        }
        put_signs(bits + begin / 8, at - begin, kept.below_zero);
        add_to_bins(bins, kept.squares, grains);
    }
}

static void worker_run(const void *context, uint64_t chunk, uint64_t from, uint64_t to, float last, int64_t *bins)
{
    const slc_compress_worker_args *args = context;
    LANES_BY_TYPES(args->input.gradient_dtype, args->input.momentum_dtype, worker_run_of, args, chunk, from, to, last,
                   bins);
}

void SLC_ISA(slc_compress_worker_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_compress_worker_args *args = context;
    each_item(&args->out, first, last, worker_run, args);
}

/* ---- The server ---- */

/* One rank's packet: its signs from an element on, and their size as a share of the average. */
typedef struct {
    const uint8_t *signs;
    float size;
} opinion;

static opinion opinion_of(const slc_compress_server_args *args, uint32_t rank, uint64_t at, uint64_t scale_at)
{
    const float share = (float)(1.0 / args->ranks);
    return (opinion){packet_bits(args->packets[rank], args->out.scales) + at / 8,
                     packet_scale(args->packets[rank], scale_at) * share};
}

LANES_INLINE lanes opinion_at(const opinion *o, uint64_t at, uint64_t left)
{
    return with_signs(get_signs(o->signs + at / 8, left), o->size);
}

/* sum (+)= opinion for `count` elements, a multiple of 8. */
LANES_INLINE void add_opinion(float *sum, uint64_t count, const opinion *o, bool first)
{
    for (uint64_t at = 0; at < count; at += LANES) {
        lanes term = opinion_at(o, at, count - at);
        lanes_store(sum + at, first ? term : lanes_add(lanes_load(sum + at), term));
    }
}

/* Adds up the opinions of all ranks but the last on a tile. Only a chunk's last tile is not whole. */
static void add_most(float *sum, uint64_t count, const slc_compress_server_args *args, uint64_t begin,
                     uint64_t scale_at)
{
    for (uint32_t r = 0; r + 1 < args->ranks; r++) {
        const opinion o = opinion_of(args, r, begin, scale_at);
        if (count < TILE)
            add_opinion(sum, count, &o, r == 0);
        else if (r == 0)
            add_opinion(sum, TILE, &o, true);
        else
            add_opinion(sum, TILE, &o, false);
    }
}

static void server_run(const void *context, uint64_t chunk, uint64_t from, uint64_t to, float last, int64_t *bins)
{
    const slc_compress_server_args *args = context;
    const slc_compress_out *out = &args->out;
    const uint64_t scale_at = out->scale_elements ? from / out->scale_elements : 0;
    const bool lost = !isfinite(last), alone = args->ranks == 1;
    uint8_t *bits = bits_of(out, chunk);
    for (uint64_t begin = from; begin < to; begin += TILE) {
        float most[TILE], *sum = out->residue.sum + begin;
        kept_grains kept;
        const uint64_t count = slc_least(to - begin, TILE), whole = count / LANES * LANES, left = count - whole;
        const opinion final = opinion_of(args, args->ranks - 1, begin, scale_at);
        add_most(most, count, args, begin, scale_at);
        for (uint64_t i = 0; i < whole; i += LANES) {
            lanes average = opinion_at(&final, i, LANES);
            if (!alone) average = lanes_add(lanes_load(most + i), average);
            keep(&kept, i / LANES, sum + i, LANES, lanes_add(average, load_error(sum + i, LANES, last, lost)));
        }
        if (left) {
            lanes average = opinion_at(&final, whole, left);
            if (!alone) average = lanes_add(lanes_load(most + whole), average);
            lanes a = lanes_add(average, load_error(sum + whole, left, last, lost));
            keep(&kept, whole / LANES, sum + whole, left, lanes_first(a, left, 0.0f));
        }
        put_signs(bits + begin / 8, count, kept.below_zero);
        add_to_bins(bins, kept.squares, (uint32_t)((count + LANES - 1) / LANES));
    }
}

void SLC_ISA(slc_compress_server_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_compress_server_args *args = context;
    each_item(&args->out, first, last, server_run, args);
}

/* ---- Plain errors ---- */

static void fold_run(const void *context, uint64_t chunk, uint64_t from, uint64_t to, float last, int64_t *bins)
{
    (void)bins;
    const slc_compress_out *out = context;
    float *sum = out->residue.sum + chunk * out->chunk;
    const bool lost = !isfinite(last);
    for (uint64_t at = from; at < to; at += LANES)
        lanes_store_some(sum + at, to - at, load_error(sum + at, slc_least(to - at, LANES), last, lost));
}

void SLC_ISA(slc_compress_fold_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    each_item(context, first, last, fold_run, context);
}

/* ---- Updates under a frozen variance ---- */

/* Updates elements at..at+left-1 with the momentum m, which is not yet masked or rounded. */
LANES_INLINE void update_some(const slc_adamw_factors *f, const slc_frozen_range *r, sluice_dtype momentum, uint64_t at,
                              uint64_t left, lanes m)
{
    lanes v = lanes_load_some(r->exp_avg_sq + at, left, 0.0f), w = lanes_load_some(r->value + at, left, 0.0f);
    if (r->mask) m = where_positive(v, m);
    if (momentum == SLUICE_BF16) m = lanes_round_bf16(m);
    w = lanes_sub(lanes_sub(w, lanes_mul(lanes_set(f->decay), w)), moments_move(f, m, v));
    lanes_store_some_as(momentum, r->momentum, at, left, m);
    lanes_store_some(r->value + at, left, w);
    if (r->rounded) lanes_store_some_as(SLUICE_BF16, r->rounded, at, left, w);
}

LANES_INLINE void apply_run(const slc_adamw_factors *f, const slc_frozen_range *r, sluice_dtype momentum,
                            const packets_run *run)
{
    const uint8_t *bits = run->bits;
    uint64_t at = run->from;
    for (; at + LANES <= run->to; at += LANES, bits += 2)
        update_some(f, r, momentum, at, LANES, with_signs(get_signs(bits, LANES), run->scale));
    if (at < run->to)
        update_some(f, r, momentum, at, run->to - at, with_signs(get_signs(bits, run->to - at), run->scale));
}

void SLC_ISA(slc_compress_apply_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_compress_apply_args *args = context;
    const slc_frozen_range range = args->range;
    slc_adamw_factors factors = args->factors;
    if (range.no_decay) factors.decay = 0.0f;
    for (uint64_t at = args->first + first, end = args->first + last; at < end;) {
        const packets_run run = packets_run_at(&args->packets, at, end);
        if (!isfinite(run.scale))
            packets_failed(args->finite);
        else if (range.momentum_dtype == SLUICE_BF16)
            apply_run(&factors, &range, SLUICE_BF16, &run);
        else
            apply_run(&factors, &range, SLUICE_FP32, &run);
        at = run.to;
    }
}

LANES_INLINE void frozen_update(sluice_dtype momentum, sluice_dtype gradient_dtype, const slc_adamw_factors *f,
                                const slc_frozen_range *r, const void *gradient, uint64_t first, uint64_t last)
{
    for (uint64_t at = first; at < last; at += LANES) {
        uint64_t left = slc_least(last - at, LANES);
        lanes g =
            lanes_mul(lanes_set(f->gradient_factor), lanes_load_some_as(gradient_dtype, gradient, at, left, 0.0f));
        lanes m = lanes_load_some_as(momentum, r->momentum, at, left, 0.0f);
        m = lanes_add(lanes_mul(lanes_set(f->beta1), m), lanes_mul(lanes_set(f->rest1), g));
        update_some(f, r, momentum, at, left, m);
    }
}

void SLC_ISA(slc_frozen_range_update)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_frozen_args *args = context;
    const slc_frozen_range range = args->range;
    slc_adamw_factors factors = args->factors;
    if (range.no_decay) factors.decay = 0.0f;
    LANES_BY_TYPES(range.momentum_dtype, args->gradient_dtype, frozen_update, &factors, &range, args->gradient, first,
                   last);
}
