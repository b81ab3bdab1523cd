/* The waits of an item of the running pass, as counts that lanes must reach. Private to lib/engine. */
#pragma once

#include "lib/engine/step/pass_state.h"

#include <sluice/runtime.h>

/* *count becomes the global count that a lane must reach for `after` to be over. False: it is over already, because the
 * item does not run. */
bool slc_pass_threshold(const sluice_runtime *rt, const slc_pass *pass, const slc_after *after, uint32_t *count);

/* Lists what an item waits for; `counts` has room for its after_count. Returns how many there are. */
uint32_t slc_pass_counts(sluice_runtime *rt, const slc_pass *pass, uint32_t item, slc_gate_count *counts);
