/* What saving and loading checkpoints share. Private to lib/engine. */
#ifndef SLC_ENGINE_CHECKPOINT_H
#define SLC_ENGINE_CHECKPOINT_H

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

#endif
