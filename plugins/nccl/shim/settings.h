/* Settings of the NCCL shim: the rows are in settings.c. They are read at a process's first call of NCCL. */
#ifndef SLC_SHIM_SETTINGS_H
#define SLC_SHIM_SETTINGS_H

#include "lib/base/settings.h"

extern const slc_settings slc_shim_settings;

#endif
