/* Settings of the engine, for help and docs. */
#pragma once

#include "lib/base/settings.h"
#include "lib/plan/request.h"

#include <sluice/runtime.h>

extern const slc_settings slc_engine_settings;

/* Where updates run according to a configuration, or else to the setting. Errors: ARGUMENT (the setting). */
sluice_status slc_engine_updates(sluice_updates choice, slc_updates *out);
