/* Settings of the kernels, listed for help and docs; isa.c reads them. */
#ifndef SLC_KERNELS_SETTINGS_H
#define SLC_KERNELS_SETTINGS_H

#include "lib/base/settings.h"

extern const slc_settings slc_kernels_settings;

#endif
