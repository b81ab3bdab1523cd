/* Settings of the engine, for help and docs. */
#ifndef SLC_ENGINE_SETTINGS_H
#define SLC_ENGINE_SETTINGS_H

#include "lib/base/settings.h"

extern const slc_settings slc_engine_settings;

#endif
