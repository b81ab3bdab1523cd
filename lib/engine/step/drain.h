/* Finishes what the last step has left undone. Private to lib/engine. */
#pragma once

#include <sluice/runtime.h>
#include <stdbool.h>

/* Called between steps: applies everything, as sluice_runtime_sync does, for calls that need that. */
sluice_status slc_runtime_drain(sluice_runtime *rt);
/* Returns true if the agreement of a step is late; then the next step's end, or a drain, tells its verdict. */
bool slc_agrees_late(const sluice_runtime *rt);
