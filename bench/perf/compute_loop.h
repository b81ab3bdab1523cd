/* The computation of a rank while its communication is measured: products of square matrices, each about as long as the
 * block of a small layer. On the host they run on the calling thread; on a GPU they are queued. */
#pragma once

#include "lib/device/device.h"

#include <sluice/status.h>

typedef struct slc_compute_loop slc_compute_loop;

/* The caller closes it before the device. On a GPU no rank may be waited for meanwhile, because kernels are launched
 * for the first time. Errors: UNSUPPORTED (a build without oneDNN; a GPU without cublasLt), MEMORY, those of the
 * device. */
sluice_status slc_compute_loop_open(slc_device *device, slc_compute_loop **out);
sluice_status slc_compute_loop_step(slc_compute_loop *loop); /* one product */
void slc_compute_loop_close(slc_compute_loop *loop);         /* NULL is allowed */

/* slc_compute_loop_begin is called before steps and slc_compute_loop_end after them. On a GPU steps are queued, and
 * slc_compute_loop_end waits for them. Errors: MEMORY, those of the device. */
sluice_status slc_compute_loop_begin(slc_compute_loop *loop);
sluice_status slc_compute_loop_end(slc_compute_loop *loop);
/* Called after slc_compute_loop_end: slc_compute_loop_between counts the steps between two events of the device, and
 * slc_compute_loop_step_s returns the seconds of a step. */
sluice_status slc_compute_loop_between(const slc_compute_loop *loop, const slc_event *from, const slc_event *to,
                                       double *steps);
double slc_compute_loop_step_s(const slc_compute_loop *loop);

double slc_compute_loop_step_flop(const slc_compute_loop *loop); /* floating-point operations of a step */
