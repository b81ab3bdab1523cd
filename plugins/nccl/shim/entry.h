/* Flags of entries that are written. Private to plugins/nccl/shim. */
#pragma once

#include "plugins/nccl/shim/state.h"

/* Sets flags of an entry (SLC_RECORD_FUSED, …), if the ring still has it. */
void slc_shim_entry_mark(slc_shim_recorder *recorder, uint64_t entry, unsigned flags);

/* Marks an entry as failed; the record will not be removed at the process's end. */
void slc_shim_entry_failed(slc_shim_recorder *recorder, uint64_t entry);
