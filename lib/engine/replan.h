/* Making plans and changing them at a step boundary. Private to lib/engine. */
#ifndef SLC_ENGINE_REPLAN_H
#define SLC_ENGINE_REPLAN_H

#include "lib/engine/runtime.h"

/* The plan to start with. For a schedule that wants measured times it is the serial one where that fits, so that the
 * times are measured with nothing beside compute. Collective. Errors: the planner's, the same line on every rank. */
sluice_status slc_engine_first_plan(sluice_runtime *rt);

/* Called when a step has ended: after a warm-up and two measured steps, the one re-plan that such a schedule gets. */
sluice_status slc_engine_after_step(sluice_runtime *rt);

#endif
