/* Settings of the engine, for help and docs. */
#ifndef SLC_ENGINE_SETTINGS_H
#define SLC_ENGINE_SETTINGS_H

#include "lib/base/settings.h"
#include "lib/plan/request.h"

extern const slc_settings slc_engine_settings;

/* Where updates run according to a configuration (NULL: the setting). Errors: ARGUMENT. */
sluice_status slc_engine_updates(const char *updates, slc_updates *out);

#endif
