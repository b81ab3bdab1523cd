/* The table of the NCCL shim's settings, one row for each. shim_test.c covers this file. */
#include "plugins/nccl/shim/settings.h"

static const slc_setting rows[] = {
    {"SLUICE_SHIM_NCCL", "", SLC_SETTING_TEXT,
     "path of the NCCL library that calls are passed on to; empty: the one that the process has loaded"},
    {"SLUICE_SHIM_DIR", "", SLC_SETTING_TEXT,
     "folder for records, which are then always kept; empty: /dev/shm/sluice-UID"},
    {"SLUICE_SHIM_KEEP", "off", SLC_SETTING_SWITCH, "a record stays after a clean exit too"},
    {"SLUICE_SHIM_ENTRIES", "65536", SLC_SETTING_COUNT,
     "latest calls that a record holds, rounded up to a power of two; 64 bytes each"},
    {"SLUICE_SHIM_DONE", "off", SLC_SETTING_SWITCH, "streams write into the record which operation they have finished"},
    {"SLUICE_SHIM_TIME", "off", SLC_SETTING_SWITCH, "events on the streams measure when each operation runs"},
    {"SLUICE_SHIM_FUSE", "0", SLC_SETTING_TEXT,
     "all-reduces of at most so many bytes are sent as one where they are in one group; 0: off"},
    {"SLUICE_SHIM_COMPRESS", "0", SLC_SETTING_TEXT,
     "float all-reduces of more than so many bytes are sent as one bit an element; 0: off"},
    {"SLUICE_SHIM_COMPRESS_AFTER", "0", SLC_SETTING_COUNT,
     "all-reduces of a communicator that are sent whole before the first one is compressed"},
    {"SLUICE_SHIM_STAGING", "64MiB", SLC_SETTING_TEXT,
     "device memory of each GPU that fusing and compressing take for all communicators of a process"},
    {"SLUICE_TEST_NCCL_TESTS", "", SLC_SETTING_TEXT, "tests: a folder with the programs of nccl-tests"},
};
const slc_settings slc_shim_settings = {"NCCL shim", rows, sizeof rows / sizeof *rows};
