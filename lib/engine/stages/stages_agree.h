/* The agreement of all stages of a pipeline, at the step's end: their arenas differ, so there is no place where an
 * all-reduce could add their words up. Private to lib/engine. */
#pragma once

#include "lib/engine/step/pass_state.h"

#include <sluice/runtime.h>

/* True if some unit of some stage is onebit in the plans that run. */
bool slc_stages_exchange(const sluice_runtime *rt);

/* Waits until everything of the pass before its agreement is over, adds all ranks' words up, and lets what waits for
 * the agreement go on. Collective. Does nothing where there is no pipeline. */
sluice_status slc_stages_agree(sluice_runtime *rt, slc_pass *pass, slc_step_state *step);
