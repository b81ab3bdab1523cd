/* The resident set of this process without its mappings of peers' segments. */
#ifndef SLC_ENGINE_RSS_H
#define SLC_ENGINE_RSS_H

#include "lib/device/device.h"

#include <stdint.h>

/* `own`: this rank's segment, NULL before there is one. */
uint64_t slc_rss_bytes(const slc_segment *own); /* 0: the system does not say */

#endif
