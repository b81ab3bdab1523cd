/* Each rank looks by itself, before it has others to ask. tests/checkpoint/requeue_test.sh covers this file. */
#include "bench/train/checkpoint/go_on.h"

#include "lib/base/status.h"

#include <sluice/checkpoint.h>
#include <stdlib.h>

sluice_status slc_training_go_on(slc_training_options *o)
{
    bool found = false;
    uint64_t step;
    if (!o->go_on) return SLUICE_OK;
    if (o->save || o->resume)
        return slc_error(SLUICE_ERR_ARGUMENT,
                         "--go-on %s: it saves to this folder and resumes what is there; leave --%s out", o->go_on,
                         o->save ? "save" : "resume");
    sluice_status status = slc_error_context(sluice_checkpoint_latest(o->go_on, &found, &step), "--go-on");
    o->save = o->go_on;
    if (found) o->resume = o->go_on;
    return status;
}

sluice_status slc_training_go_on_agree(const slc_training_options *o, sluice_world *world)
{
    const int ranks = sluice_world_size(world);
    const char mine = o->resume != NULL;
    if (!o->go_on) return SLUICE_OK;
    char *all = malloc((size_t)ranks);
    if (!all) return slc_error(SLUICE_ERR_MEMORY, "--go-on: %d ranks", ranks);
    sluice_status status = sluice_world_all_gather(world, &mine, sizeof mine, all);
    for (int r = 1; !status && r < ranks; r++)
        if (all[r] != all[0])
            status =
                slc_error(SLUICE_ERR_MISMATCH,
                          "--go-on %s: rank %d finds a checkpoint there and rank %d finds none; the folder must be "
                          "on a file system that all ranks share",
                          o->go_on, all[0] ? 0 : r, all[0] ? r : 0);
    free(all);
    return status;
}
