/* Memory that NCCL knows: registered, in a window, or its own. Calls on it pass unchanged, for it is what NCCL sends
 * without a copy. Private to plugins/nccl_shim. Any thread. */
#ifndef SLC_SHIM_MEMORY_H
#define SLC_SHIM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* As in transforms.h. */
void slc_memory_add(const void *handle, const void *address, size_t bytes);
void slc_memory_drop(const void *handle);

bool slc_memory_is_known(const void *at, size_t bytes);

#endif
