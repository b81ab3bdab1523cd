/* A trial of the engine: the model of engine_model.h runs some steps on some ranks, and everything that a program can
 * see must be equal to the oracle of engine_oracle.h to the bit. */
#pragma once

#include "tests/support/trial.h"

/* Draws a trial from the seed: strategies, precision, ranks, accumulation, lanes of updates. */
trial random_trial(uint64_t seed);

/* Draws a trial as random_trial does, but most tied parameters are looked up by rows, and are split in three trials of
 * four. */
trial look_up_trial(uint64_t seed);

/* Runs the trial on ranks of its own. A failure prints the trial's settings and fails the test. */
void check_trial(trial t);

/* The command line of a test: "PATTERN MANY FIRST" runs the tests whose name matches, with that many random plans or
 * steps under changing plans, from that seed on. */
typedef struct {
    uint32_t many, first_seed; /* many 0: a test's own number */
} extent;

void read_extent(int argc, char **argv, extent *asked);

/* Checks trials with random plans, as many as were asked for, else `few`; returns how many they were. */
uint32_t check_random_plans(const extent *asked, uint32_t few, trial (*draw_trial)(uint64_t seed));
