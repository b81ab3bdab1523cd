/* Numbers drawn from a seed: the same ones on every rank and machine. */
#pragma once

#include "tests/support/seed.h"

/* Mixes all bits of x (the finalizer of MurmurHash3), and the number that changes all seeds. */
static inline uint64_t mix(uint64_t x)
{
    x = test_seed(x);
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdu;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

/* The next number below `bound` of the sequence that *state began. */
static inline uint64_t draw(uint64_t *state, uint64_t bound)
{
    return mix(*state += 0x9e3779b97f4a7c15u) % bound;
}

/* A number from -1 to 1 that a and b decide. */
static inline float noise(uint64_t a, uint64_t b)
{
    return (float)((int64_t)(mix(a * 1000003u + b) % 20001u) - 10000) * 1e-4f;
}
