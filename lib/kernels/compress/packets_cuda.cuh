/* The way that pass 2 takes through the packets of all chunks, in a kernel of the GPU. */
#pragma once

#include "lib/kernels/compress/compress_cpu.h"
#include "lib/kernels/compress/compress_cuda.cuh"

/* Gives elements first..first+7 of a tensor, with `first` a multiple of 8: all are under one scale. If that is not
 * finite, gives nothing, clears *finite unless it is NULL, and returns false. */
static __device__ __forceinline__ bool gpu_decode8(const slc_compress_packets &p, uint64_t first, bool *finite,
                                                   float out[GPU_EACH])
{
    const uint64_t at = first % p.chunk, number = p.scale_elements ? at / p.scale_elements : 0;
    const unsigned char *packet = (const unsigned char *)p.packets + first / p.chunk * p.stride;
    const float size = compress_get_scale(packet, number);
    if (compress_failed(size)) {
        if (finite) gpu_clear_flag(finite);
        return false;
    }
    const unsigned signs = compress_packet_bits(packet, p.scales)[at / 8];
    for (unsigned e = 0; e < GPU_EACH; e++) out[e] = signs & (0x80u >> e) ? size : -size;
    return true;
}

/* A place among all elements of a tensor, from which it goes on one by one. */
struct gpu_packet_place {
    uint64_t at, end; /* within the chunk; `end`: the first element under another scale */
    uint64_t chunk;
    float size;
    const unsigned char *bits;
};

static __device__ __forceinline__ void gpu_packet_open(const slc_compress_packets &p, double divisor,
                                                       gpu_packet_place *place)
{
    const unsigned char *packet = (const unsigned char *)p.packets + place->chunk * p.stride;
    const uint64_t number = p.scale_elements ? place->at / p.scale_elements : 0;
    place->size = (float)((double)compress_get_scale(packet, number) / divisor);
    place->bits = compress_packet_bits(packet, p.scales);
    place->end = p.chunk;
    if (p.scale_elements && (number + 1) * p.scale_elements < p.chunk) place->end = (number + 1) * p.scale_elements;
}

/* Gives `left` elements from `first` on, but at most COUNT, each scale divided by `divisor` and rounded once. The rest
 * is 0. */
template <int COUNT>
static __device__ __forceinline__ void gpu_decode(const slc_compress_packets &p, uint64_t first, uint64_t left,
                                                  double divisor, float *out)
{
    gpu_packet_place place = {first % p.chunk, 0, first / p.chunk, 0.0f, NULL};
    gpu_packet_open(p, divisor, &place);
    for (unsigned e = 0; e < COUNT; e++) {
        out[e] = 0.0f;
        if (e >= left) continue;
        if (place.at == place.end) {
            if (place.at == p.chunk) place.at = 0, place.chunk++;
            gpu_packet_open(p, divisor, &place);
        }
        out[e] = place.bits[place.at / 8] & (0x80u >> place.at % 8) ? place.size : -place.size;
        place.at++;
    }
}
