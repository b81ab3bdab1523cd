/* SGD with momentum as an optimizer that the engine can run: the kernel wrapped in sluice_optimizer's struct. */
#pragma once

#include "lib/device/device.h"

#include <sluice/optimizer.h>

/* Fills `out` (state momentum_buffer; none if the momentum is 0). An update that brings no stream runs on `stream`,
 * which must outlive it. Its context is one allocation, the caller's to free. Errors: ARGUMENT (a setting out of its
 * range, nesterov without momentum or with dampening), MEMORY. */
sluice_status slc_sgd_create(const sluice_sgd *settings, sluice_stream *stream, sluice_optimizer *out);
