/* Blocks that steps leave out, and the factors of those that they keep. */
#pragma once

#include "lib/model/state.h"

/* Checks that blocks of such a model can be left out, and their branches be scaled. Errors: UNSUPPORTED says why not.
 */
sluice_status slc_kept_blocks_check_family(const sluice_model_config *config);
/* Checks that the step that runs can leave out the blocks that it does. Errors: UNSUPPORTED says why not. */
sluice_status slc_kept_blocks_check(const sluice_model *m);
