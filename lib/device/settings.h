/* Settings of the devices, listed for help and docs; cuda.c reads them. */
#ifndef SLC_DEVICE_SETTINGS_H
#define SLC_DEVICE_SETTINGS_H

#include "lib/base/settings.h"

extern const slc_settings slc_device_settings;

#endif
