/* A plan keeps to its budget, but a budget says nothing of the host: its ranks together may need more than it has, and
 * then the system ends one of them when it touches its memory, without an error.
 * tests/faults/small_host_test.c covers this file. */
#include "lib/engine/making/host_memory.h"

#include "lib/base/host/host_identity.h"
#include "lib/base/log.h"
#include "lib/base/status.h"
#include "lib/base/text/size_text.h"
#include "lib/engine/replan/replan.h"
#include "lib/engine/runtime.h"

#include <stdlib.h>

sluice_status slc_engine_look_at_host(sluice_runtime *rt, slc_host_look *look)
{
    uint64_t *hosts = NULL, mine = slc_host_identify();
    *look = (slc_host_look){.first = true};
    slc_host_memory_read("", &look->memory);
    sluice_status status = slc_engine_gather_numbers(rt, mine, &hosts);
    for (int r = 0; !status && r < rt->size; r++) {
        look->ranks += hosts[r] == mine;
        if (hosts[r] == mine && r < rt->rank) look->first = false;
    }
    free(hosts);
    return status;
}

void slc_engine_warn_of_memory(const sluice_runtime *rt, const slc_host_look *look)
{
    const uint64_t bytes = rt->current.plan->arena_bytes;
    char has[320];
    if (slc_device_runs_ahead(rt->device) || !look->first) return; /* a GPU's memory is taken at once, or refused */
    if (bytes <= look->memory.available_bytes / look->ranks) return;
    slc_log(SLC_LOG_WARN,
            "the plan needs %u rank%s x %s = %s on this host, but %s: the system may end a rank; give a smaller "
            "budget, or start fewer ranks here",
            look->ranks, look->ranks == 1 ? "" : "s", slc_size_of(bytes).text, slc_size_of(bytes * look->ranks).text,
            slc_host_memory_describe(&look->memory, has, sizeof has));
}

sluice_status slc_engine_explain_memory(const sluice_runtime *rt, const slc_host_look *look, sluice_status status)
{
    char has[320];
    if (status != SLUICE_ERR_MEMORY || !rt->current.plan) return status;
    if (slc_device_runs_ahead(rt->device))
        return slc_error(status, "%s; give a smaller config.budget_bytes", sluice_last_error());
    return slc_error(status,
                     "%s; the plan needs %s on each of %u rank%s here, and %s: give a smaller config.budget_bytes, or "
                     "start fewer ranks on this host",
                     sluice_last_error(), slc_size_of(rt->current.plan->arena_bytes).text, look->ranks,
                     look->ranks == 1 ? "" : "s", slc_host_memory_describe(&look->memory, has, sizeof has));
}
