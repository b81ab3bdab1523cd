/* Helps a user whose latest checkpoint is damaged. Private to bench/train/checkpoint. Local calls. */
#pragma once

#include <sluice/status.h>

/* `status` is the error of reading the checkpoint at `resume` (a folder of checkpoints, of which the latest counts, or
 * one of them). FORMAT says that it is damaged, and so do PATH and IO if every rank met them. If a checkpoint before it
 * has a whole manifest, the error gets the name of that checkpoint and the two ways to go on from it. Returns
 * `status`. */
sluice_status slc_training_name_earlier(sluice_status status, const char *resume);
