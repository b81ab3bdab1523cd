/* An optimizer that updates nothing, on any device. It keeps the reduced gradient, before clipping and of a skipped
 * step too, as its only state, "gradient", if it can be read. */
#pragma once

#include <sluice/optimizer.h>

extern const sluice_optimizer slc_gradient_keeper;
