/* AVX-512's instructions for bf16, which processors have or lack beside the instruction sets of isa.h. Any thread. */
#pragma once

#include <stdbool.h>

/* Returns true if the set in use has these instructions; false if SLUICE_KERNELS_ISA names a set. */
bool slc_isa_has_bf16(void);
/* Makes later kernels do without them, or use them again, for tests. */
void slc_isa_hold_back_bf16(bool without);
