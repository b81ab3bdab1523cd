/* LAMB as an optimizer that the engine can run: the kernel's two phases wrapped in sluice_optimizer's struct. */
#pragma once

#include "lib/device/device.h"
#include "lib/optim/adam.h"

#include <sluice/optimizer.h>

/* Fills `out` (states exp_avg, exp_avg_sq; norms of the values and of the update). An update that brings no
 * stream runs on `stream`, which must outlive it. The caller ends it with slc_adam_destroy. Errors: ARGUMENT (a setting
 * out of its range), MEMORY. */
sluice_status slc_lamb_create(const sluice_lamb *settings, sluice_stream *stream, sluice_optimizer *out);
