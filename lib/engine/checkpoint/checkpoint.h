/* What saving and loading checkpoints share. Private to lib/engine. */
#ifndef SLC_ENGINE_CHECKPOINT_H
#define SLC_ENGINE_CHECKPOINT_H

#include "lib/engine/checkpoint/manifest.h"
#include "lib/engine/runtime.h"

/* Between steps, everything applied; the staging block claimed. _end releases it. */
sluice_status slc_checkpoint_enter(sluice_runtime *rt, const char *dir, const char *call);
sluice_status slc_checkpoint_leave(sluice_runtime *rt);
uint64_t slc_staging_bytes(const sluice_runtime *rt);

/* Collective: `mine` where all ranks had success, else on every rank the status and the line of the first that failed.
 */
sluice_status slc_checkpoint_agree(sluice_runtime *rt, sluice_status mine);

/* Arrays of a parameter: its value, and its states where it is trained. */
static inline uint32_t slc_checkpoint_arrays(const sluice_runtime *rt, const sluice_param *param)
{
    return 1 + (param->frozen ? 0 : rt->optimizer.state_count);
}

/* ---- checkpoint_own.c: what a compressed optimizer has beside its states ---- */

/* Arrays that each rank has for itself, of parameters in onebit units: their names, numbered in files behind the
 * states. Returns how many; 0 under another optimizer. */
uint32_t slc_checkpoint_own_names(const sluice_runtime *rt, const char *names[SLC_MANIFEST_OWN_MAX]);
/* Elements of array `name`; 0: this parameter has none now. *data, if not NULL, is where they lie. */
uint64_t slc_checkpoint_own(const sluice_param *param, const char *name, float **data);
/* All of them as at the start of a compressed phase. */
sluice_status slc_checkpoint_own_reset(sluice_runtime *rt);

/* The optimizer's numbers to a manifest, and from one: names are borrowed; `params`: this runtime's, of each of the
 * manifest's. Checking changes nothing: FORMAT where this optimizer keeps other numbers or does not take these.
 * Loading brings the phase and its plan too and cannot be taken back; collective. */
void slc_checkpoint_progress_save(const sluice_runtime *rt, slc_manifest *out);
sluice_status slc_checkpoint_progress_check(sluice_runtime *rt, const slc_manifest *from, sluice_param *const *params);
sluice_status slc_checkpoint_progress_load(sluice_runtime *rt, const slc_manifest *from, sluice_param *const *params);

#endif
