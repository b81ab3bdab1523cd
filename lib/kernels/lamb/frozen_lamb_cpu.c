/* All passes are one function of sixteen elements, which is told where m comes from and what to store and add up.
 * Momenta from packets are decoded a tile ahead, so that sixteen are always the same sixteen of the tensor, whatever
 * the chunks. frozen_lamb_test.c covers this file. */
#include "lib/kernels/lamb/frozen_lamb_cpu.h"

#include "lib/kernels/compress/packets_cpu.h"
#include "lib/kernels/lanes.h"
#include "lib/kernels/norm/norm_bins.h"
#include "lib/kernels/norm/norm_grain.h"

enum { CHUNK = 32, TILE = CHUNK * LANES };

typedef enum { MEASURE, UPDATE, RECEIVE, MOVE } pass_kind;

typedef struct {
    double move[CHUNK], update[CHUNK];
    int64_t move_bins[SLC_NORM_BINS], update_bins[SLC_NORM_BINS];
    lanes ratio;
} sums;

/* Works on elements at..at+left-1, which are number `grain` in their tile. */
LANES_INLINE void some(const slc_frozen_lamb_args *a, pass_kind pass, lanes m, uint64_t at, uint64_t left, int grain,
                       sums *out)
{
    const slc_frozen_lamb_range *r = &a->range;
    lanes w = lanes_load_some(r->value + at, left, 0.0f), v = lanes_load_some(r->exp_avg_sq + at, left, 0.0f);
    if (pass != MOVE && r->mask) m = where_positive(v, m);
    lanes below = lanes_add(lanes_mul(lanes_sqrt(v), lanes_set(a->factors.rescale)), lanes_set(a->factors.epsilon));
    lanes move = lanes_div(lanes_mul(lanes_set(a->factors.correction), m), below);
    lanes u = lanes_add(move, lanes_mul(lanes_set(a->factors.decay), w));
    if (pass != MOVE) {
        lanes last = lanes_load_some(r->momentum + at, left, 0.0f);
        lanes fresh = lanes_load_some(r->fresh_last + at, left, 0.0f);
        lanes g = lanes_div(lanes_fma(lanes_set(-a->factors.beta1), last, m), lanes_set(a->factors.rest1));
        fresh = lanes_add(lanes_mul(lanes_set(a->factors.beta2), fresh),
                          lanes_mul(lanes_mul(lanes_set(a->factors.rest2), g), g));
        if (pass != MEASURE) {
            lanes_store_some(r->momentum + at, left, m);
            lanes_store_some(r->fresh + at, left, fresh);
        }
        if (pass != UPDATE) {
            lanes beside =
                lanes_add(lanes_mul(lanes_sqrt(fresh), lanes_set(a->fresh_rescale)), lanes_set(a->factors.epsilon));
            lanes ratio = lanes_div(below, beside);
            if (r->mask && !r->counts_masked) ratio = where_positive(v, ratio);
            out->ratio = lanes_max(left < LANES ? lanes_first(ratio, left, 0.0f) : ratio, out->ratio);
            out->move[grain] = grain_sum_lanes(move);
            out->update[grain] = grain_sum_lanes(u);
        }
    }
    if (pass == UPDATE || pass == MOVE) {
        w = lanes_sub(w, lanes_mul(lanes_set(a->rate), u));
        lanes_store_some(r->value + at, left, w);
        if (r->rounded) lanes_store_some_as(SLUICE_BF16, r->rounded, at, left, w);
    }
}

/* Returns m of elements at..at+left-1. `received` points at their decoded momenta. */
LANES_INLINE lanes momentum_at(const slc_frozen_lamb_args *a, pass_kind pass, sluice_dtype dtype, const float *received,
                               uint64_t at, uint64_t left)
{
    if (pass == RECEIVE) return lanes_load_some(received, left, 0.0f);
    lanes m = lanes_load_some(a->range.momentum + at, left, 0.0f);
    if (pass == MOVE) return m;
    lanes g = lanes_mul(lanes_set(a->factors.gradient_factor), lanes_load_some_as(dtype, a->gradient, at, left, 0.0f));
    return lanes_add(lanes_mul(lanes_set(a->factors.beta1), m), lanes_mul(lanes_set(a->factors.rest1), g));
}

/* Adds `together` sums at a time, counted from the beginning of the range, because bins take longer than the
 * squares. */
LANES_INLINE void add_to_bins(int64_t *bins, const double *grains, int count, int together)
{
    for (int i = 0; i < count; i += together) {
        double sum = grains[i];
        for (int k = i + 1; k < i + together && k < count; k++) sum += grains[k];
        norm_bins_add(bins, sum);
    }
}

static void join(const slc_frozen_lamb_sums *shared, const sums *own)
{
    norm_bins_join(shared->move, own->move_bins);
    norm_bins_join(shared->update, own->update_bins);
    float ratios[LANES];
    lanes_store(ratios, own->ratio);
    for (int i = 0; i < LANES; i++) {
        double ratio = (double)ratios[i];
        int64_t bits, most = __atomic_load_n(shared->ratio, __ATOMIC_RELAXED);
        memcpy(&bits, &ratio, sizeof bits);
        while (bits > most &&
               !__atomic_compare_exchange_n(shared->ratio, &most, bits, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        }
    }
}

LANES_INLINE void run(sluice_dtype dtype, pass_kind pass, const slc_frozen_lamb_args *a, uint64_t first, uint64_t last)
{
    sums own = {.ratio = lanes_set(0.0f)};
    for (uint64_t tile = first; tile < last; tile += TILE) {
        float buffer[TILE + PACKETS_SLACK];
        const uint64_t end = tile + TILE < last ? tile + TILE : last;
        const float *received = buffer;
        int grains = 0;
        if (pass == RECEIVE) received = packets_decode(&a->packets, a->offset + tile, end - tile, a->divisor, buffer);
        for (uint64_t at = tile; at < end; at += LANES, grains++) {
            const float *here = received + (at - tile);
            /* a case of its own for whole lanes, so that the compiler knows that there is no rest */
            if (at + LANES <= end)
                some(a, pass, momentum_at(a, pass, dtype, here, at, LANES), at, LANES, grains, &own);
            else
                some(a, pass, momentum_at(a, pass, dtype, here, at, end - at), at, end - at, grains, &own);
        }
        if (pass == UPDATE || pass == MOVE) continue;
        add_to_bins(own.move_bins, own.move, grains, pass == RECEIVE ? SLC_FROZEN_LAMB_UNIT / LANES : 1);
        add_to_bins(own.update_bins, own.update, grains, pass == RECEIVE ? SLC_FROZEN_LAMB_UNIT / LANES : 1);
    }
    if (pass == MEASURE || pass == RECEIVE) join(&a->sums, &own);
}

void SLC_ISA(slc_frozen_lamb_measure_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_frozen_lamb_args args = *(const slc_frozen_lamb_args *)context;
    LANES_BY_TYPE(args.gradient_dtype, run, MEASURE, &args, first, last);
}

void SLC_ISA(slc_frozen_lamb_update_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_frozen_lamb_args args = *(const slc_frozen_lamb_args *)context;
    LANES_BY_TYPE(args.gradient_dtype, run, UPDATE, &args, first, last);
}

void SLC_ISA(slc_frozen_lamb_receive_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_frozen_lamb_args args = *(const slc_frozen_lamb_args *)context;
    run(SLUICE_FP32, RECEIVE, &args, first, last);
}

void SLC_ISA(slc_frozen_lamb_move_range)(const void *context, uint32_t part, uint64_t first, uint64_t last)
{
    (void)part;
    const slc_frozen_lamb_args args = *(const slc_frozen_lamb_args *)context;
    run(SLUICE_FP32, MOVE, &args, first, last);
}
