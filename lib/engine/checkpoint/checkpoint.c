/* tests/checkpoint/checkpoint_test.c covers this file. */
#include "lib/engine/checkpoint/checkpoint.h"

#include "lib/base/error_line.h"
#include "lib/base/status.h"
#include "lib/engine/step/drain.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

sluice_status slc_checkpoint_enter(sluice_runtime *rt, const char *dir, const char *call)
{
    sluice_status status = slc_runtime_require(rt, true, call);
    if (status) return status;
    if (!dir || !*dir) return slc_error(SLUICE_ERR_ARGUMENT, "%s: a folder is needed", call);
    if (rt->mode != SLC_IDLE) return slc_error(SLUICE_ERR_ORDER, "%s: must be called between steps", call);
    if (rt->saving)
        return slc_error(SLUICE_ERR_ORDER, "%s: a save is under way; call sluice_checkpoint_end first", call);
    status = slc_comm_meet(rt->comm, call, NULL);
    if (!status) status = slc_runtime_drain(rt);
    if (!status) slc_comm_work(rt->comm, "at work");
    return status;
}

void slc_checkpoint_leave(sluice_runtime *rt)
{
    slc_comm_work(rt->comm, NULL);
}

typedef struct {
    int status;
    char line[SLC_ERROR_BYTES];
} outcome;

/* Returns the outcomes of all ranks, or NULL without memory: such a rank cannot go on with the others. */
static outcome *gather_outcomes(sluice_runtime *rt, sluice_status mine, sluice_status *status)
{
    outcome own = {.status = mine}, *all = calloc((size_t)rt->size, sizeof *all);
    if (mine) snprintf(own.line, sizeof own.line, "%s", sluice_last_error());
    if (!all) {
        *status = slc_runtime_fail(rt, slc_error(SLUICE_ERR_MEMORY, "outcomes of %d ranks", rt->size));
        return NULL;
    }
    *status = sluice_world_all_gather(rt->world, &own, sizeof own, all);
    for (int r = 0; r < rt->size; r++) all[r].line[sizeof all[r].line - 1] = 0;
    return all;
}

sluice_status slc_checkpoint_agree(sluice_runtime *rt, sluice_status mine)
{
    sluice_status status;
    outcome *all = gather_outcomes(rt, mine, &status);
    for (int r = 0; !status && r < rt->size; r++)
        if (all[r].status) status = slc_runtime_alike(rt, slc_error((sluice_status)all[r].status, "%s", all[r].line));
    free(all);
    return status;
}

static bool is_hidden(const outcome *one)
{
    return one->status == SLUICE_ERR_PATH || one->status == SLUICE_ERR_IO;
}

sluice_status slc_checkpoint_agree_reading(sluice_runtime *rt, sluice_status mine)
{
    sluice_status status;
    outcome *all = gather_outcomes(rt, mine, &status);
    int first = -1, hidden = 0;
    for (int r = rt->size; !status && r-- > 0;) {
        if (all[r].status) first = r;
        hidden += is_hidden(&all[r]);
    }
    if (first >= 0 && is_hidden(&all[first]) && hidden < rt->size)
        status =
            slc_error(SLUICE_ERR_MISMATCH,
                      "rank %d does not see what other ranks do: %s; checkpoints must be on a file system that all "
                      "ranks share",
                      first, all[first].line);
    else if (first >= 0)
        status = slc_error((sluice_status)all[first].status, "%s", all[first].line);
    if (first >= 0) slc_runtime_alike(rt, status);
    free(all);
    return status;
}
