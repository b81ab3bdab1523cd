/* Memory of the host that one process has for itself. */
#pragma once

#include "lib/device/types.h"

/* From now on the device makes segments that no other process can map, on the host in huge pages where the system has
 * them ("madvise" or "always" in /sys/kernel/mm/transparent_hugepage/enabled): these become present, are read and are
 * given back several times faster. Memory of a memfd, which ranks share, has none unless shmem_enabled there says so.
 * Called before the device makes its first segment. */
void slc_device_keep_alone(slc_device *device);
