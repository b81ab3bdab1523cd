/* Settings of communication: the rows are in settings.c. */
#pragma once

#include "lib/base/settings.h"

extern const slc_settings slc_comm_settings;
