/* The common part of saving and loading checkpoints. Private to lib/engine. */
#pragma once

#include "lib/engine/checkpoint/manifest.h"
#include "lib/engine/runtime.h"

/* enter is called between steps: it applies everything, and until leave the other ranks hear that this one is at work.
 */
sluice_status slc_checkpoint_enter(sluice_runtime *rt, const char *dir, const char *call);
void slc_checkpoint_leave(sluice_runtime *rt);

/* Returns `mine` if all ranks had success, else on every rank the status and the line of the first that failed.
 * Collective. */
sluice_status slc_checkpoint_agree(sluice_runtime *rt, sluice_status mine);
/* Does what slc_checkpoint_agree does, after all ranks have read the same files. If some ranks could not open or read a
 * file that others could, it returns MISMATCH on every rank, and the line names the first rank that could not. */
sluice_status slc_checkpoint_agree_reading(sluice_runtime *rt, sluice_status mine);

/* The number of arrays of a parameter: its value, and its states if it is trained. */
static inline uint32_t slc_checkpoint_arrays(const sluice_runtime *rt, const sluice_param *param)
{
    return 1 + (param->frozen ? 0 : rt->optimizer.state_count);
}

/* ---- own.c: the arrays and numbers of a compressed optimizer next to its states ---- */

/* The names of the arrays that each rank has for itself, of parameters in onebit units; in files their numbers follow
 * those of the states. Returns how many; 0 under another optimizer. */
uint32_t slc_checkpoint_own_names(const sluice_runtime *rt, const char *names[SLC_MANIFEST_OWN_MAX]);
/* Returns the number of elements of array `name`; 0: this parameter has none now. `data`, if not NULL, gets their
 * address. */
uint64_t slc_checkpoint_own(const sluice_param *param, const char *name, float **data);
/* Makes all arrays that each rank has for itself as they are at the start of a compressed phase. */
sluice_status slc_checkpoint_own_reset(sluice_runtime *rt);

/* Writes the optimizer's numbers to a manifest; their names are borrowed. */
void slc_checkpoint_progress_save(const sluice_runtime *rt, slc_manifest *out);
/* Completes a manifest that slc_checkpoint_progress_save has filled: the numbers of each parameter become those of the
 * stage that holds it. Collective. Does nothing where there is no pipeline. A rank without memory fails for all,
 * because the others wait for it. */
sluice_status slc_checkpoint_progress_join(sluice_runtime *rt, slc_manifest *out);
/* Both read the optimizer's numbers from a manifest, in which params[p] is this runtime's parameter for the manifest's
 * p. check changes nothing, and returns FORMAT if this optimizer keeps other numbers or does not take these. load
 * takes the numbers, changes the phase and the plan too, cannot be undone, and is collective. */
sluice_status slc_checkpoint_progress_check(sluice_runtime *rt, const slc_manifest *from, sluice_param *const *params);
sluice_status slc_checkpoint_progress_load(sluice_runtime *rt, const slc_manifest *from, sluice_param *const *params);
