/* The settings of all parts: every SLUICE_ variable that has a meaning. */
#pragma once

#include "lib/base/settings.h"

extern const slc_settings *const slc_all_settings[];
extern const size_t slc_all_settings_count;
