/* A trial of the engine: the model of engine_model.h runs some steps on some ranks, and everything that a program can
 * see must be equal to the oracle of engine_oracle.h to the bit. */
#ifndef SLC_TESTS_ENGINE_TRIAL_H
#define SLC_TESTS_ENGINE_TRIAL_H

#include <sluice/runtime.h>
#include <stdbool.h>
#include <stdint.h>

enum { LAYERS_MAX = 5, STEPS = 4, STEPS_RANDOM = 8, STEPS_A_WORLD = 40, STEPS_A_PLAN = 8 };

typedef struct {
    uint64_t seed;
    int ranks;
    uint32_t layers, micro_batches;
    const char *schedule, *strategy;
    sluice_recompute recompute;
    bool random;             /* strategies and order are drawn from the seed */
    uint32_t changing_steps; /* > 0: the number of steps; plans of all schedules follow each other */
    bool each, direct, delays;
    bool bf16_wire, mixed_update; /* mixed_update: the model's own optimizer reads bf16 and rounds by itself */
    bool lamb;                    /* LAMB in place of the model's own optimizer */
    bool look_ups, split;         /* some tied parameters are looked up by rows; split: and split by their uses */
    uint64_t bf16_layers;         /* bit l: layer l computes in bf16 */
    double clip;
    uint64_t block;
    const char *updates;      /* SLUICE_PLAN_UPDATES; NULL: the model's own optimizer takes one thread at a time */
    uint32_t threads, larger; /* parameters are `larger` + 1 times as large as usual */
} trial;

/* A trial that the seed decides: strategies, precision, ranks, accumulation, lanes of updates. */
trial random_trial(uint64_t seed);

/* The same, but most tied parameters are looked up by rows, and are split in three trials of four. */
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

#endif
