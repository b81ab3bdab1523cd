/* Blocks that steps leave out, and the factors of those that they keep. */
#pragma once

#include "lib/model/state.h"

/* Can the model's branches be scaled? UNSUPPORTED says why not. */
sluice_status slc_scaled_branches_check(const sluice_runtime *rt, const sluice_model_config *config);
/* Can the step that runs leave out the blocks that it does? UNSUPPORTED says why not. */
sluice_status slc_kept_blocks_check(const sluice_model *m);
