/* Legal orders drawn from a seed, for tests: every operation is cut into random runs of blocks, some of them late, all
 * at random places. The rules of what must come before what are written here once more, independent of planner and
 * validator. */
#pragma once

#include "sched/scheduler.h"
#include "tests/support/plan/random_job.h"

/* True if two operations are of one unit and have a block in common. */
bool runs_share_blocks(const slc_item *a, const slc_item *b);

/* Draws a random legal order; false: it is too large for a pool. */
bool test_order_draw(const slc_job *job, const slc_strategy *strategies, test_dice *dice, slc_order *order);
