/* Arithmetic on whole numbers that C has no function for. */
#pragma once

#include <stdint.h>

static inline uint64_t slc_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t slc_most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The smallest multiple of `grain` that is not below `value`; the sum of both must not overflow. */
static inline uint64_t slc_round_up(uint64_t value, uint64_t grain)
{
    return (value + grain - 1) / grain * grain;
}
