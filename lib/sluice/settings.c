/* The tables of all parts. A part with settings names its table here. tests/command/info_test.sh covers this file. */
#include "lib/sluice/settings.h"

#include "lib/comm/settings.h"
#include "lib/engine/settings.h"
#include "lib/device/settings.h"
#include "lib/kernels/settings.h"
#include "plugins/nccl/shim/settings.h"

const slc_settings *const slc_all_settings[] = {&slc_base_settings,    &slc_comm_settings,   &slc_engine_settings,
                                                &slc_kernels_settings, &slc_device_settings, &slc_shim_settings};
const size_t slc_all_settings_count = sizeof slc_all_settings / sizeof *slc_all_settings;
