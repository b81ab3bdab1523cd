/* The factors of dropout.h inside a kernel of the GPU. */
#pragma once

#include "lib/kernels/dropout/dropout.h"
#include "lib/kernels/gpu.cuh"

/* A rule as kernels take it. limit 0: no dropout. */
struct gpu_dropout {
    uint64_t seed, first;
    uint32_t limit; /* elements whose 16 bits are below it are dropped */
    float scale;    /* of those that are kept */
};

static inline gpu_dropout gpu_dropout_of(const slc_dropout *rule)
{
    gpu_dropout d = {0, 0, 0, 1.0f};
    if (!rule || rule->probability == 0) return d;
    d.seed = rule->seed, d.first = rule->first;
    d.limit = (uint32_t)((double)rule->probability * 0x1p16 + 0.5);
    d.scale = 0x1p16f / (float)(65536 - d.limit);
    return d;
}

/* Returns 0, or what a kept element is multiplied by. The rule is not the identity. */
static __device__ __forceinline__ float gpu_dropout_factor(const gpu_dropout &rule, uint64_t element)
{
    const uint64_t index = rule.first + element, block = index / 128 * 16 + index % 16;
    uint32_t c[4] = {(uint32_t)block, (uint32_t)(block >> 32), 0, 0};
    uint32_t low = (uint32_t)rule.seed, high = (uint32_t)(rule.seed >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t p = (uint64_t)0xd2511f53u * c[0], q = (uint64_t)0xcd9e8d57u * c[2];
        c[0] = (uint32_t)(q >> 32) ^ c[1] ^ low, c[1] = (uint32_t)q;
        c[2] = (uint32_t)(p >> 32) ^ c[3] ^ high, c[3] = (uint32_t)p;
        low += 0x9e3779b9u, high += 0xbb67ae85u;
    }
    const uint32_t word = index / 32 % 4, bits = word < 2 ? (word ? c[1] : c[0]) : (word == 2 ? c[2] : c[3]);
    return (index / 16 % 2 ? bits >> 16 : bits & 0xffff) >= rule.limit ? rule.scale : 0.0f;
}
