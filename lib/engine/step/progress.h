/* A device that runs ahead tells how far it has come: each slot's end writes its number to pinned memory. A kernel that
 * fails is reported by some later call, so that this number alone says where it was. Private to lib/engine. */
#pragma once

#include "lib/engine/step/pass_state.h"

/* Makes the number's place on a device that runs ahead; elsewhere there is none. Errors: MEMORY. */
sluice_status slc_progress_create(sluice_runtime *rt);
/* The work of the slot that the pass is at is all in the compute stream. */
sluice_status slc_progress_note(sluice_runtime *rt, const slc_pass *pass);
/* Returns `status`. If the device has failed, this thread's error line then names the first slot that has not ended. */
sluice_status slc_progress_tell(sluice_runtime *rt, sluice_status status);
