/* Blocks that steps leave out, and the factors of those that they keep. */
#pragma once

#include "lib/model/state.h"

/* Can blocks of such a model be left out, and their branches be scaled? UNSUPPORTED says why not. */
sluice_status slc_kept_blocks_check_family(const sluice_model_config *config);
/* Can the step that runs leave out the blocks that it does? UNSUPPORTED says why not. */
sluice_status slc_kept_blocks_check(const sluice_model *m);
