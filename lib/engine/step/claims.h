/* The memory that items of a pass claim. Private to lib/engine. */
#pragma once

#include "lib/engine/step/pass_state.h"

/* Makes the claims that begin at an item, or releases those that end there. */
sluice_status slc_pass_claims(sluice_runtime *rt, slc_pass *pass, uint32_t item, bool begin);
