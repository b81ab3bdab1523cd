/* Settings of the kernels, listed for help and docs; isa.c reads them. */
#pragma once

#include "lib/base/settings.h"

extern const slc_settings slc_kernels_settings;
