/* A bound for packing. */
#pragma once

#include "lib/memory/pack_buffer.h"

#include <stddef.h>

/* Returns the largest sum of live bytes at any time: no packing can be smaller. If memory runs out it returns 0, which
 * is a bound too. */
uint64_t slc_pack_lower_bound(const slc_pack_buffer *buffers, size_t count);
