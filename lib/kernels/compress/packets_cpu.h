/* Packets on lanes: sixteen signs as bits and back, and pass 2's way through the packets of all chunks. */
#ifndef SLC_KERNEL_PACKETS_CPU_H
#define SLC_KERNEL_PACKETS_CPU_H

#include "lib/kernels/compress/compress_cpu.h"
#include "lib/kernels/lanes.h"

/* A packet is not aligned. */
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

/* MSB first in each byte; left: 16, or 8 at a chunk's end (fewer at a tensor's). */
LANES_INLINE void put_signs(uint8_t *bits, uint64_t left, lanes a)
{
    uint32_t set = ~lanes_below_zero(a);
    set = (set & 0x5555) << 1 | (set >> 1 & 0x5555);
    set = (set & 0x3333) << 2 | (set >> 2 & 0x3333);
    set = (set & 0x0f0f) << 4 | (set >> 4 & 0x0f0f);
    bits[0] = (uint8_t)set;
    if (left > 8) bits[1] = (uint8_t)(set >> 8);
}

LANES_INLINE uint32_t get_signs(const uint8_t *bits, uint64_t left)
{
    return left > 8 ? (uint32_t)bits[0] | (uint32_t)bits[1] << 8 : bits[0];
}

LANES_INLINE lanes_part part_with_sign(lanes_words minus, lanes_part size)
{
    return (lanes_part)((minus & 0x80000000u) ^ (lanes_words)size);
}

/* size where the bit is set, -size elsewhere; size >= 0 */
LANES_INLINE lanes with_signs(uint32_t bits, float size)
{
    static const uint32_t place[LANES] = {0x80,   0x40,   0x20,   0x10,   0x8,   0x4,   0x2,   0x1,
                                          0x8000, 0x4000, 0x2000, 0x1000, 0x800, 0x400, 0x200, 0x100};
    lanes r;
#pragma GCC unroll 4
    for (int i = 0; i < LANES_PARTS; i++) {
        lanes_words places;
        memcpy(&places, place + i * LANES_WIDTH, sizeof places);
        r.part[i] = part_with_sign((lanes_words)((places & bits) == 0), part_set(size));
    }
    return r;
}

/* a, but 0 where v is 0: the mask of elements that never had a gradient. */
LANES_INLINE lanes where_positive(lanes v, lanes a)
{
    LANES_EACH(part_choose((lanes_bits)(v.part[i] == part_set(0.0f)), part_set(0.0f), a.part[i]));
}

/* Elements from..to-1 of a tensor, all under one scale. */
typedef struct {
    const uint8_t *bits; /* of element `from` on */
    float scale;
    uint64_t from, to;
} packets_run;

/* The run that begins at element `at`, a multiple of 16, and ends before `end`. */
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

enum { PACKETS_SLACK = 8 + LANES };

/* Elements first..first+count-1, each divided by `divisor` and rounded once, into a buffer of count + PACKETS_SLACK;
 * returns where in it they begin. */
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

#endif
