/* The failure of a runtime, and what every public call asks first. Private to lib/engine. */
#pragma once

#include "lib/engine/state.h"

/* Makes every later call return `status` with this thread's error line; returns it. The runtime takes part in nothing
 * any more, so the other ranks are told at once, unless they know (slc_runtime_alike). */
sluice_status slc_runtime_fail(sluice_runtime *rt, sluice_status status);
/* Notes that every rank finds the failure `status` in this call, as in data that they have exchanged; returns it. */
sluice_status slc_runtime_alike(sluice_runtime *rt, sluice_status status);
/* Shares the data and the status of rank 0 as sluice_world_share does; its failure is alike on every rank. */
sluice_status slc_runtime_share(sluice_runtime *rt, sluice_status status, void *data, size_t bytes);
/* Returns the failure of an earlier call, or of the world; SLUICE_OK if there is neither. */
sluice_status slc_runtime_healthy(sluice_runtime *rt);

/* Every public call begins with one of these. They note that the call was made. Errors: an earlier failure; ARGUMENT
 * (no runtime); ORDER. */
sluice_status slc_runtime_require(sluice_runtime *rt, bool committed, const char *call);
/* require_of: for a call on `object`, which the error names and heartbeats tell. Both names are kept by pointer. */
sluice_status slc_runtime_require_of(sluice_runtime *rt, bool committed, const char *call, const char *object);
/* require_mode: for a call that is allowed after commit in one mode only. */
sluice_status slc_runtime_require_mode(sluice_runtime *rt, slc_mode mode, const char *call);
/* UNSUPPORTED in a pipeline, for a call that does not know stages yet. */
sluice_status slc_runtime_require_no_stages(const sluice_runtime *rt, const char *call);
