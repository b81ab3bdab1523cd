/* A random legal order of a step's slots and operations: each operation is cut in random runs of blocks (under onebit
 * it moves whole units), and each run is put at a random moment between what it needs and what needs it. A moment after
 * the end of the step makes the run late; nothing of a parameter that is split by its uses is late up to its update. */
#pragma once

#include "sched/scheduler.h"

/* Appends to *order, an empty one, what in->seed decides. The caller gives it to slc_plan_from_order, then to
 * slc_order_fini. */
void random_order_make(const slc_scheduling *in, slc_order *order);
