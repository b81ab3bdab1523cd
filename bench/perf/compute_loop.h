/* The computation of a rank while its communication is measured: products of square matrices on the calling thread,
 * each about as long as the block of a small layer. */
#pragma once

#include "lib/device/device.h"

#include <sluice/status.h>

typedef struct slc_compute_loop slc_compute_loop;

/* The caller closes it before the device. Errors: UNSUPPORTED (a build without oneDNN), MEMORY. */
sluice_status slc_compute_loop_open(slc_device *device, slc_compute_loop **out);
sluice_status slc_compute_loop_step(slc_compute_loop *loop); /* one product */
void slc_compute_loop_close(slc_compute_loop *loop);         /* NULL is allowed */

double slc_compute_loop_step_flop(void); /* floating-point operations of a step */
