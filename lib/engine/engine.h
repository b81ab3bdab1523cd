/* The engine: what the umbrella needs to make a runtime. Everything else of it is the public hook API. */
#pragma once

#include "lib/plan/request.h"

#include <sluice/runtime.h>

/* Does as sluice_runtime_create, with the functions that plan. */
sluice_status slc_engine_create(sluice_world *world, const sluice_config *config, slc_planner planner,
                                sluice_runtime **out);

/* Makes the job that commit would make of what was registered, with its layers fused under the configured budget, and
 * copies it into a profile with estimated times, which the caller destroys. No memory is laid out and no plan is made;
 * the runtime can only be destroyed afterwards. Collective. Errors: those of commit before it plans. */
sluice_status slc_engine_survey(sluice_runtime *rt, const char *model, const char *source, slc_profile **out);
