/* Checks that sweeps into one folder agree on the machine and on all settings that they do not take as lists. Only then
 * can their cells stand in one table. */
#pragma once

#include "bench/train/options/options.h"

#include <jansson.h>

/* The options that all cells of a sweep share, by name. NULL without memory. */
json_t *slc_agreement_settings(const slc_training_options *options);

/* Checks that the settings of the folder's results equal these. Errors: ARGUMENT, whose line names the first that
 * differs. */
sluice_status slc_agreement_check_settings(const char *folder, const json_t *there, const json_t *here);

/* Checks that the results are of this machine and build. `there`: their environment; NULL: they have none yet. Errors:
 * as above. */
sluice_status slc_agreement_check_machine(const char *folder, const json_t *there, const json_t *here);
