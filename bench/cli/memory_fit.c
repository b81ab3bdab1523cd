/* Compares the memory that is needed with the limits. A limit that the system does not tell refuses nothing. */
#include "bench/cli/memory_fit.h"

#include "lib/base/status.h"
#include "lib/base/text/size_text.h"

#include <stdbool.h>

sluice_status slc_memory_fit(const slc_host_memory *memory, const slc_memory_need *need, const char *what)
{
    char has[320];
    const bool fits = need->bytes <= memory->available_bytes / need->ranks;
    const bool reachable =
        need->mapped_bytes <= memory->address_bytes && need->bytes <= memory->address_bytes - need->mapped_bytes;
    if (fits && reachable) return SLUICE_OK;
    return slc_error(
        SLUICE_ERR_ARGUMENT,
        "%s: needs %u rank%s x %s = %s on this host, but %s; give a smaller size, or start fewer ranks here", what,
        need->ranks, need->ranks == 1 ? "" : "s", slc_size_of(need->bytes).text,
        slc_size_of(need->bytes * need->ranks).text, slc_host_memory_describe(memory, has, sizeof has));
}
