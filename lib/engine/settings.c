/* The table of the engine's settings. */
#include "lib/engine/settings.h"

static const slc_setting rows[] = {
    {"SLUICE_PLAN_FUSE", "auto", SLC_SETTING_TEXT,
     "small units of neighbouring layers become one: auto (where it pays), off, or up to a size as 64KiB"},
    {"SLUICE_CHECKPOINT_KEEP", "2", SLC_SETTING_COUNT,
     "checkpoints that stay in a folder; the oldest go when a new one is whole; 0: none goes"},
};

const slc_settings slc_engine_settings = {"engine", rows, sizeof rows / sizeof *rows};
