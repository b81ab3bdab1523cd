/* Jobs drawn from a seed, for tests: small, but with every kind of unit, activation and setting. */
#pragma once

#include "lib/plan/roles.h"

enum { TEST_LAYERS = 8, TEST_UNITS = TEST_LAYERS + 6, TEST_ACTIVATIONS = 5 * TEST_LAYERS };
enum { TEST_WORKSPACES = 2 * TEST_LAYERS, TEST_BLOCKS = 40 };

typedef struct {
    uint64_t seed, drawn;
} test_dice;

/* The next number below `limit`. */
uint32_t test_below(test_dice *dice, uint32_t limit);

/* Number `which` of another sequence, so that a seed still means the job that it meant before somebody drew this. */
uint32_t test_beside(const test_dice *dice, uint64_t which, uint32_t limit);

typedef struct {
    slc_job job;
    const char *layers[TEST_LAYERS];
    slc_unit units[TEST_UNITS];
    slc_use uses[TEST_UNITS][3];
    slc_activation_life activations[TEST_ACTIVATIONS];
    slc_workspace_life workspaces[TEST_WORKSPACES];
    bool can_recompute[TEST_LAYERS];
    char names[TEST_LAYERS + TEST_UNITS][16], row_names[TEST_UNITS][24];
} test_job;

/* A layer that runs its forward again reads its values again. */
void test_recomputable_uses(test_job *t);

/* The job points into *t. */
void test_job_draw(test_job *t, test_dice *dice);

/* Gives all units the strategy asked for, as far as they may have it. */
void test_strategies_all(const slc_job *job, slc_strategy asked, slc_strategy *out);

/* Draws one strategy for all units, or one for each. */
void test_strategies_draw(const slc_job *job, test_dice *dice, slc_strategy *out);

/* Draws which layers recompute, among those that can. */
void test_recompute_draw(const slc_job *job, test_dice *dice, bool *out);
