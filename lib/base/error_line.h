/* The length of an error's line. */
#pragma once

/* Bytes of an error's line, with the 0 that ends it. A longer line loses its end. Whatever keeps a line, or tells it to
 * another rank, has room for this many bytes, because a path comes first in a line and the reason last. */
enum { SLC_ERROR_BYTES = 2048 };
