/* Says how much a long test does: its own number of rounds times SLUICE_TEST_SCALE, which `./dev test` lowers if a
 * sanitizer makes each round slow; and whether only the smallest cases are wanted. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* True if a test does only the fewest and smallest cases that reach each branch: under sanitizers, which change no
 * result (other builds run the many cases), and in `./dev test --quick`. */
static inline bool test_brief(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#else
    return getenv("SLUICE_TEST_BRIEF") != NULL;
#endif
}

static inline double test_scale(void)
{
    const char *text = getenv("SLUICE_TEST_SCALE");
    double scale = text && *text ? strtod(text, NULL) : 1.0;
    return scale > 0 ? scale : 1.0;
}

static inline uint32_t test_rounds(uint32_t rounds)
{
    double scaled = rounds * test_scale();
    return scaled < 1 ? 1 : (uint32_t)scaled;
}

/* True if a test that does a share of a list of cases, times the scale, does case `number`: case 0 always, the others
 * evenly over the list (multiples of the golden ratio), so that each value of each thing that the number stands for has
 * its turn. */
static inline bool test_takes(uint32_t number, double share)
{
    const double turns = number * 0.6180339887498949;
    return turns - (double)(uint64_t)turns < share * test_scale();
}
