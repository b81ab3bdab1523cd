#include "lib/engine/checkpoint/checkpoint.h"

#include "lib/base/status.h"
#include "lib/engine/model/buffers.h"
#include "lib/engine/step/pass.h"

#include <stdio.h>
#include <stdlib.h>

sluice_status slc_checkpoint_enter(sluice_runtime *rt, const char *dir, const char *call)
{
    sluice_status status = slc_runtime_require(rt, true, call);
    if (status) return status;
    if (!dir || !*dir) return slc_error(SLUICE_ERR_ARGUMENT, "%s: a folder is needed", call);
    if (rt->mode != SLC_IDLE) return slc_error(SLUICE_ERR_ORDER, "%s: must be called between steps", call);
    status = slc_comm_meet(rt->comm, call, NULL);
    if (!status) status = slc_runtime_drain(rt);
    if (status) return status;
    slc_comm_work(rt->comm, "at work");
    return slc_runtime_fail(rt, slc_staging_claim(rt, true));
}

sluice_status slc_checkpoint_leave(sluice_runtime *rt)
{
    slc_comm_work(rt->comm, NULL);
    return slc_runtime_fail(rt, slc_staging_claim(rt, false));
}

typedef struct {
    int status;
    char line[2044]; /* a path comes first, the reason last */
} outcome;

sluice_status slc_checkpoint_agree(sluice_runtime *rt, sluice_status mine)
{
    outcome own = {.status = mine}, *all = calloc((size_t)rt->size, sizeof *all);
    if (!all) mine = slc_error(SLUICE_ERR_MEMORY, "outcomes of %d ranks", rt->size);
    if (mine) snprintf(own.line, sizeof own.line, "%s", sluice_last_error());
    own.status = mine;
    /* A rank without memory for the others' outcomes cannot go on with them. */
    if (!all) return slc_runtime_fail(rt, mine);
    sluice_status status = sluice_world_all_gather(rt->world, &own, sizeof own, all);
    for (int r = 0; !status && r < rt->size; r++) {
        all[r].line[sizeof all[r].line - 1] = 0;
        if (all[r].status) status = slc_runtime_alike(rt, slc_error((sluice_status)all[r].status, "%s", all[r].line));
    }
    free(all);
    return status;
}
