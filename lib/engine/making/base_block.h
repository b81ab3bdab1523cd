/* The base block of a job if the program leaves it open. Private to lib/engine/making. */
#pragma once

#include <sluice/runtime.h>

/* The block that the device takes by itself; commit may choose another one. */
uint64_t slc_engine_default_block(const sluice_runtime *rt);

/* Called at commit, before there are units; collective. On several GPUs the block becomes that of the plan which the
 * job is given, or follows the link, from 16 to 64 MiB. If a budget is given, it stays the default, so that what fits
 * does not depend on a measurement. */
sluice_status slc_engine_choose_block(sluice_runtime *rt);
