/* Packets on lanes: sixteen signs to bits and back, and the way that pass 2 takes through the packets of all chunks. */
#pragma once

#include "lib/kernels/compress/compress_cpu.h"
#include "lib/kernels/lanes.h"

/* Copies the scale, because a packet need not be aligned. */
static inline float packet_scale(const void *packet, uint64_t block)
{
    float scale;
    memcpy(&scale, (const char *)packet + block * sizeof scale, sizeof scale);
    return scale;
}

static inline const uint8_t *packet_bits(const void *packet, uint64_t scales)
{
    return (const uint8_t *)packet + scales * sizeof(float);
}

/* Writes the bits of `count` elements, a multiple of 8, most significant bit first in each byte, from lanes_below_zero
 * of each sixteen, whose bytes lie in the same order (little endian). */
static inline void put_signs(uint8_t *bits, uint64_t count, const uint16_t *below_zero)
{
    for (uint64_t byte = 0; byte < count / 8; byte += 8) {
        uint64_t set, left = count / 8 - byte;
        memcpy(&set, below_zero + byte / 2, sizeof set);
        set = ~set;
        set = (set & 0x5555555555555555u) << 1 | (set >> 1 & 0x5555555555555555u);
        set = (set & 0x3333333333333333u) << 2 | (set >> 2 & 0x3333333333333333u);
        set = (set & 0x0f0f0f0f0f0f0f0fu) << 4 | (set >> 4 & 0x0f0f0f0f0f0f0f0fu);
        if (left >= sizeof set)
            memcpy(bits + byte, &set, sizeof set);
        else
            memcpy(bits + byte, &set, left);
    }
}

/* Reads the bits of sixteen elements, or of 8 at a chunk's end (of which a tensor's end may use fewer). */
LANES_INLINE uint32_t get_signs(const uint8_t *bits, uint64_t left)
{
    return left > 8 ? (uint32_t)bits[0] | (uint32_t)bits[1] << 8 : bits[0];
}

#if !defined(__AVX512F__)
LANES_INLINE lanes_part part_with_sign(lanes_words minus, lanes_part size)
{
    return (lanes_part)((minus & 0x80000000u) ^ (lanes_words)size);
}
#endif

/* size if the bit is set, else -size; size >= 0 */
LANES_INLINE lanes with_signs(uint32_t bits, float size)
{
    static const uint32_t place[LANES] = {0x80,   0x40,   0x20,   0x10,   0x8,   0x4,   0x2,   0x1,
                                          0x8000, 0x4000, 0x2000, 0x1000, 0x800, 0x400, 0x200, 0x100};
    lanes r;
#if defined(__AVX512F__)
    __mmask16 plus = _mm512_test_epi32_mask(_mm512_set1_epi32((int)bits), _mm512_loadu_si512(place));
    r.part[0] = _mm512_mask_blend_ps(plus, part_set(-size), part_set(size));
#else
#pragma GCC unroll 4
    for (int i = 0; i < LANES_PARTS; i++) {
        lanes_words places;
        memcpy(&places, place + i * LANES_WIDTH, sizeof places);
        r.part[i] = part_with_sign((lanes_words)((places & bits) == 0), part_set(size));
    }
#endif
    return r;
}

/* a - size sgn(a) */
LANES_INLINE lanes without_sign(lanes a, float size)
{
#if defined(__AVX512F__)
    __mmask16 minus = (__mmask16)lanes_below_zero(a);
    LANES_EACH(a.part[i] - _mm512_mask_blend_ps(minus, part_set(size), part_set(-size)));
#else
    LANES_EACH(a.part[i] - part_with_sign((lanes_words)(a.part[i] < part_set(0.0f)), part_set(size)));
#endif
}

/* Returns a, but 0 if v is 0: this masks elements that never had a gradient. */
LANES_INLINE lanes where_positive(lanes v, lanes a)
{
    LANES_EACH(part_choose((lanes_bits)(v.part[i] == part_set(0.0f)), part_set(0.0f), a.part[i]));
}

/* Elements from..to-1 of a tensor, all under one scale. */
typedef struct {
    const uint8_t *bits; /* those of element `from` and after */
    float scale;
    uint64_t from, to;
} packets_run;

/* Returns the run that begins at element `at`, a multiple of 16, and ends before `end` or where its scale does. */
LANES_INLINE packets_run packets_run_at(const slc_compress_packets *p, uint64_t at, uint64_t end)
{
    uint64_t chunk = at / p->chunk, offset = at % p->chunk, block = 0, to = at + p->chunk - offset;
    if (p->scale_elements) {
        block = offset / p->scale_elements;
        uint64_t block_end = at + p->scale_elements - offset % p->scale_elements;
        if (block_end < to) to = block_end;
    }
    const char *packet = p->packets + chunk * p->stride;
    return (packets_run){packet_bits(packet, p->scales) + offset / 8, packet_scale(packet, block), at,
                         to < end ? to : end};
}

/* Notes that a scale is not finite. Any thread. */
static inline void packets_failed(bool *finite)
{
    if (finite) __atomic_store_n(finite, false, __ATOMIC_RELAXED);
}

enum { PACKETS_SLACK = 8 + LANES };

/* Decodes elements first..first+count-1, each divided by `divisor` and rounded once, into a buffer of count +
 * PACKETS_SLACK; returns where in it they begin. */
LANES_INLINE const float *packets_decode(const slc_compress_packets *p, uint64_t first, uint64_t count, double divisor,
                                         float *buffer)
{
    const uint64_t from = first / 8 * 8, end = first + count;
    for (uint64_t at = from; at < end;) {
        packets_run run = packets_run_at(p, at, end);
        const float size = (float)((double)run.scale / divisor);
        for (; at < run.to; at += LANES, run.bits += 2)
            lanes_store(buffer + (at - from), with_signs(get_signs(run.bits, run.to - at), size));
        at = run.to;
    }
    return buffer + (first - from);
}
