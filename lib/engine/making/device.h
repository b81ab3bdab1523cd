/* The device of a runtime, and what it cannot do yet. Private to lib/engine/making. */
#pragma once

#include <sluice/runtime.h>

/* Opens the configured device, and sets config.block_bytes to the device's default if it is 0. Errors: those of
 * slc_device_open; UNSUPPORTED (a world, an optimizer or a setting that the device cannot serve). */
sluice_status slc_engine_open_device(sluice_runtime *rt);
/* Called when rt->optimizer is known. Errors: UNSUPPORTED (it works on host memory alone). */
sluice_status slc_engine_check_optimizer_device(const sluice_runtime *rt);
