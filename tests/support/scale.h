/* The number of rounds that a long test does: its own number times SLUICE_TEST_SCALE, which `./dev test` lowers where a
 * sanitizer makes each round slow. */
#ifndef SLC_TESTS_SCALE_H
#define SLC_TESTS_SCALE_H

#include <stdint.h>
#include <stdlib.h>

static inline uint32_t test_rounds(uint32_t rounds)
{
    const char *text = getenv("SLUICE_TEST_SCALE");
    double scale = text && *text ? strtod(text, NULL) : 1.0;
    double scaled = scale > 0 ? rounds * scale : rounds;
    return scaled < 1 ? 1 : (uint32_t)scaled;
}

#endif
