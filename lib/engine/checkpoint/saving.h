/* A save that is under way while a runtime ends. Private to lib/engine. */
#pragma once

#include "lib/engine/runtime.h"

typedef struct slc_saving slc_saving;

/* Ends a save without its ranks: one whose files are being written is given up, and the next save removes what it has
 * made; a checkpoint that gets its name has it when this returns. Does nothing where none is under way. */
void slc_saving_destroy(sluice_runtime *rt);
