/* Settings of the engine, for help and docs. */
#pragma once

#include "lib/base/settings.h"
#include "lib/plan/request.h"

#include <sluice/runtime.h>

extern const slc_settings slc_engine_settings;

/* *out becomes the place where updates run, as the configuration chooses or else the setting SLUICE_PLAN_UPDATES.
 * Errors: ARGUMENT (the setting). */
sluice_status slc_engine_updates(sluice_updates choice, slc_updates *out);
