/* Looks at files and settings before any rank is started: no rank is needed to find that one is missing. */
#pragma once

#include "bench/train/options/options.h"

/* Checks that data can be read, that outputs can be opened, and that the settings of the world have values that it
 * understands. It runs on the machine whose ranks will use these paths, with options that have passed
 * slc_training_options_check; slc_training_resume_model has found the checkpoint to resume. Each path is looked at
 * again where it is used. Errors: PATH, IO, those of sluice_world_config_init. */
sluice_status slc_training_paths_check(const slc_training_options *options);
