/* Settings of the devices, listed for help and docs; cuda.c reads them. */
#pragma once

#include "lib/base/settings.h"

extern const slc_settings slc_device_settings;
