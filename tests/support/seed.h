/* The seeds of random tests. They are fixed, so that a test does the same each time. SLUICE_TEST_SEED=NUMBER changes
 * what all of them give; `./dev test --all` draws such a number for its whole run, and says it. Code that makes random
 * numbers from a seed makes them from test_seed(seed), so that tests keep their own small seeds. */
#pragma once

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t test_seed_number;

static inline void test_seed_learn(void)
{
    const char *text = getenv("SLUICE_TEST_SEED");
    if (text && text[strspn(text, "0123456789")]) {
        fprintf(stderr, "SLUICE_TEST_SEED is \"%s\"; give a number, or nothing\n", text);
        abort();
    }
    test_seed_number = text ? strtoull(text, NULL, 10) : 0;
}

/* Returns `seed`, or in its place another that SLUICE_TEST_SEED makes of it. Any thread. */
static inline uint64_t test_seed(uint64_t seed)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, test_seed_learn);
    return seed + test_seed_number * 0x9e3779b97f4a7c15u;
}
