/* Plans for tests of the validator to damage: some made of runs of blocks, with late items, updates on the compute lane
 * and recomputation, others of whole units. */
#pragma once

#include "tests/support/plan/random_job.h"

/* Draws a plan; one in four has whole units, as a scheduler orders them. */
slc_plan *plan_to_damage(test_job *t, test_dice *dice);
slc_plan *plan_to_damage_of(test_job *t, uint64_t seed);

/* Repeats an operation right after itself. */
void insert_twin(slc_plan *plan, uint32_t twin);
