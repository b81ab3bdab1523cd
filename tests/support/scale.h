/* How much a long test does: its own number of rounds times SLUICE_TEST_SCALE, which `./dev test` lowers where a
 * sanitizer makes each round slow; and what only the build can say, whether a sanitizer watches. */
#ifndef SLC_TESTS_SCALE_H
#define SLC_TESTS_SCALE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Sanitizers change no result: a test of results shows under them that each branch keeps to its memory, and leaves to
 * other builds what only more of the same would show. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool test_sanitized __attribute__((unused)) = true;
#else
static const bool test_sanitized __attribute__((unused)) = false;
#endif

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

/* Whether a test does case `number` of a list of which it does a share, times the scale: case 0 always, the others
 * evenly over the list (multiples of the golden ratio), so that each value of what numbers the cases has its turn. */
static inline bool test_takes(uint32_t number, double share)
{
    const double turns = number * 0.6180339887498949;
    return turns - (double)(uint64_t)turns < share * test_scale();
}

#endif
