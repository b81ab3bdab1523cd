/* Maps the kinds of a plan's buffers to categories of the arena.
 * bench/plan/pictures/memory_peak_test.c covers this file. */
#include "lib/memory/category.h"

slc_memory_category slc_memory_category_of(slc_buffer_kind kind)
{
    switch (kind) {
    case SLC_BUFFER_VALUE:
    case SLC_BUFFER_VALUE_SHARD: return SLC_MEMORY_VALUES;
    case SLC_BUFFER_MASTER: return SLC_MEMORY_MASTERS;
    case SLC_BUFFER_GATHERED: return SLC_MEMORY_GATHERED;
    case SLC_BUFFER_GRADIENT: return SLC_MEMORY_GRADIENTS;
    case SLC_BUFFER_REDUCED: return SLC_MEMORY_REDUCED;
    case SLC_BUFFER_WORKER_ERROR:
    case SLC_BUFFER_SERVER_ERROR:
    case SLC_BUFFER_LOCAL:
    case SLC_BUFFER_STATE: return SLC_MEMORY_OPTIMIZER;
    case SLC_BUFFER_ACTIVATION: return SLC_MEMORY_ACTIVATIONS;
    case SLC_BUFFER_WORKSPACE: return SLC_MEMORY_WORKSPACES;
    default: return SLC_MEMORY_COMMUNICATION;
    }
}
