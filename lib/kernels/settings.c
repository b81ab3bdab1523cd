/* The table of the kernels' settings. */
#include "lib/kernels/settings.h"

static const slc_setting rows[] = {
    {"SLUICE_KERNELS_ISA", "", SLC_SETTING_TEXT,
     "instruction set of the host kernels: baseline, avx2 or avx512; empty: the best there is"},
};
const slc_settings slc_kernels_settings = {"kernels", rows, sizeof rows / sizeof *rows};
