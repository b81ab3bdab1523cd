/* Plans of random jobs with random times, made in turn by serial, by one_ahead and from random legal orders with late
 * runs of blocks: for tests of code that looks at finished plans. */
#pragma once

#include "lib/plan/times.h"
#include "tests/support/plan/random_job.h"

typedef struct {
    test_job t;
    slc_strategy strategies[TEST_UNITS];
    bool recompute[TEST_LAYERS];
    slc_times times;
    slc_plan *plan;
} drawn_plan;

void drawn_plan_init(drawn_plan *d, uint64_t seed);
void drawn_plan_fini(drawn_plan *d);

/* Makes a plan of a job that was drawn: strategies, layers that recompute and a legal order are drawn too. The caller
 * destroys the plan. */
slc_plan *legal_plan_draw(test_job *t, test_dice *dice);

/* Shows `look` the plans of the seeds below `count`. */
void drawn_plans_look(uint64_t count, void (*look)(drawn_plan *));
