/* The settings of all parts: every SLUICE_ variable that has a meaning. */
#ifndef SLC_SLUICE_SETTINGS_H
#define SLC_SLUICE_SETTINGS_H

#include "lib/base/settings.h"

extern const slc_settings *const slc_all_settings[];
extern const size_t slc_all_settings_count;

#endif
