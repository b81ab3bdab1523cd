/* Helps a user whose latest checkpoint is damaged. Private to bench/train/checkpoint. Local calls. */
#pragma once

#include <sluice/status.h>

/* `status`: why the checkpoint at `resume` (a folder of checkpoints, of which the latest counts, or one of them) could
 * not be read; FORMAT, and PATH and IO if every rank met them, say that it is damaged. If an earlier one stands next
 * to it whose manifest is whole, the error gets its name and the two ways to go on from it. Returns `status`. */
sluice_status slc_training_name_earlier(sluice_status status, const char *resume);
