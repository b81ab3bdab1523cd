/* The table of the kernels' settings. tests/command/info_test.sh covers this file. */
#include "lib/kernels/settings.h"

static const slc_setting rows[] = {
    {"SLUICE_KERNELS_ISA", "", SLC_SETTING_TEXT,
     "instruction set of the host kernels: baseline (SSE2; oneDNN takes SSE4.1), avx2 or avx512 (without bf16 and "
     "AMX); "
     "oneDNN is held to it whatever ONEDNN_MAX_CPU_ISA says; empty: the best there is"},
};
const slc_settings slc_kernels_settings = {"kernels", rows, sizeof rows / sizeof *rows};
