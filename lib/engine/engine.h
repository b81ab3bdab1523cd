/* The engine: what the umbrella needs to make a runtime. Everything else of it is the public hook API. */
#ifndef SLC_ENGINE_H
#define SLC_ENGINE_H

#include "lib/plan/request.h"

#include <sluice/runtime.h>

/* Does as sluice_runtime_create, with the functions that plan. */
sluice_status slc_engine_create(sluice_world *world, const sluice_config *config, slc_planner planner,
                                sluice_runtime **out);

#endif
