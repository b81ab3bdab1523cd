/* The resident set of this process without its mappings of peers' segments. Private to lib/engine. */
#pragma once

#include "lib/device/device.h"

#include <stdint.h>

/* `own` is this rank's segment, NULL before there is one. Returns 0 if the system does not say. */
uint64_t slc_rss_bytes(const slc_segment *own);
