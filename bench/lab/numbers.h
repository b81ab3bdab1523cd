/* Numbers for measurements whose values do not matter. */
#pragma once

#include <sluice/dtype.h>
#include <stdint.h>

/* Fills `x` with `count` numbers from -1 to 1 in this type, which `seed` decides. */
void slc_lab_fill(sluice_dtype dtype, uint64_t count, void *x, uint32_t seed);
