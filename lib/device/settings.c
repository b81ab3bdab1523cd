/* The table of the devices' settings. tests/command/info_test.sh covers this file. */
#include "lib/device/settings.h"

static const slc_setting rows[] = {
    {"SLUICE_CUDA_DEVICE", "", SLC_SETTING_COUNT,
     "number of the GPU; empty: the launcher's local rank modulo the GPUs that there are"},
    {"SLUICE_CUDA_CHECK", "off", SLC_SETTING_SWITCH,
     "wait for the GPU after every kernel, copy and fill, so that an error names what caused it"},
    {"SLUICE_CUDA_LIBRARIES", "", SLC_SETTING_TEXT, "folder of libcublasLt.so, for where the loader finds none"},
    {"SLUICE_EMULATED_SEED", "0", SLC_SETTING_COUNT,
     "tests: seed of the orders and delays of the emulated GPU; 0: ascending order, no delays"},
    {"SLUICE_EMULATED_GUARD", "0", SLC_SETTING_COUNT,
     "tests: 1 takes the emulated GPU's memory out of reach while nothing runs there"},
    {"SLUICE_EMULATED_MEMORY", "1073741824", SLC_SETTING_COUNT, "tests: bytes of memory of the emulated GPU"},
    {"SLUICE_EMULATED_DEVICES", "1", SLC_SETTING_COUNT, "tests: number of emulated GPUs"},
    {"SLUICE_EMULATED_LOADED", "0", SLC_SETTING_COUNT,
     "tests: a kernel's first launch stops the program 1: after a collective has begun, 2: while one is under way"},
    {"SLUICE_EMULATED_CAPABILITY", "90", SLC_SETTING_COUNT, "tests: ten times the emulated GPU's compute capability"},
};
const slc_settings slc_device_settings = {"devices", rows, sizeof rows / sizeof *rows};
