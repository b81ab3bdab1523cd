/* From registration to a job. Private to lib/engine/making. */
#pragma once

#include <sluice/runtime.h>

sluice_status slc_engine_make_job(sluice_runtime *rt);
void slc_engine_destroy_job(sluice_runtime *rt);

/* ---- units.c ---- */
/* Makes the units, after destroying those that there are, and what follows from them: the job's wire and scratch.
 * last[l] is the last layer whose own trainable parameters lie in layer l's unit, l itself where it begins no group. */
sluice_status slc_units_make(sluice_runtime *rt, const uint32_t *last);
void slc_units_destroy(sluice_runtime *rt);

/* ---- fuse.c: which layers share a unit ---- */
/* Finds the bytes of a fused unit (0: off; SLC_FUSE_AUTO) in a configuration, NULL: the setting. Errors: ARGUMENT. */
sluice_status slc_engine_fuse_bytes(const char *fuse, uint64_t *bytes);
/* Fills `last` (see above) from the planner's answer about the job as it is, with a unit for each layer. Collective,
 * equal on all ranks: rank 0 decides. Errors: MEMORY; the planner's. */
sluice_status slc_engine_fuse_layers(sluice_runtime *rt, uint32_t *last);
