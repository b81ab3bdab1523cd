/* Settings of the NCCL shim: the rows are in settings.c. They are read at a process's first call of NCCL. */
#pragma once

#include "lib/base/settings.h"

extern const slc_settings slc_shim_settings;
