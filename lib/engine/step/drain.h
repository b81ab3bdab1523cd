/* Finishes what the last step has left undone. Private to lib/engine. */
#pragma once

#include <sluice/runtime.h>
#include <stdbool.h>

/* Between steps: does as sluice_runtime_sync, for calls that need everything applied. */
sluice_status slc_runtime_drain(sluice_runtime *rt);
/* Is the agreement of a step late? Then the next step's end, or a drain, tells its verdict. */
bool slc_agrees_late(const sluice_runtime *rt);
