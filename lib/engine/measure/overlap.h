/* Measures how compute and communication slow each other down. Private to lib/engine/measure. */
#pragma once

#include "lib/engine/measure/trains.h"

/* Readies the compute that runs beside trains, in the lab's memory for it. On a device that runs ahead its kernels are
 * launched for the first time here, so no rank may be waited for meanwhile. */
sluice_status slc_overlap_prepare(slc_measure_lab *lab);

/* Measures kappa and sigma (lib/plan/times.h) of operations of one kind, as long as this link lets them be, next to
 * compute, on the slowest rank. Collective. */
sluice_status slc_overlap_measure(slc_measure_lab *lab, slc_train_kind kind, const slc_link *link, double *kappa,
                                  double *sigma);
