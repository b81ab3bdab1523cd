/* The seeds of random tests. They are fixed, so that a test does the same each time. With SLUICE_TEST_SEED=draw a
 * number is drawn that changes what all of them give, and printed; SLUICE_TEST_SEED=NUMBER repeats what that run did.
 * Whoever makes random numbers of a seed makes them of test_seed(seed), so that tests keep their own small seeds. */
#ifndef SLC_TESTS_SEED_H
#define SLC_TESTS_SEED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Puts a number into the environment if one is to be drawn. It must have been called before a test forks, or starts a
 * program, so that all processes have the same number. */
static inline void test_seed_draw(void)
{
    const char *text = getenv("SLUICE_TEST_SEED");
    uint32_t drawn;
    char number[16];
    if (!text || strcmp(text, "draw")) return;
    if (getrandom(&drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn) abort();
    snprintf(number, sizeof number, "%u", drawn | 1);
    setenv("SLUICE_TEST_SEED", number, 1);
    printf("seeds are drawn: SLUICE_TEST_SEED=%s repeats this run\n", number);
    fflush(stdout);
}

/* Returns `seed`, or in its place another that SLUICE_TEST_SEED makes of it. */
static inline uint64_t test_seed(uint64_t seed)
{
    static uint64_t number;
    static bool known;
    if (!known) {
        test_seed_draw();
        const char *text = getenv("SLUICE_TEST_SEED");
        number = text ? strtoull(text, NULL, 10) : 0;
        known = true;
    }
    return seed + number * 0x9e3779b97f4a7c15u;
}

#endif
