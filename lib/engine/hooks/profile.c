/* Writes a profile of the job that runs, from measured times. */
#include "lib/base/status.h"
#include "lib/engine/measure/measure.h"
#include "lib/engine/model/job_profile.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/pass.h"

#include <stdio.h>

static sluice_status write_here(const sluice_runtime *rt, const slc_times *times, const char *path, const char *model)
{
    char source[160];
    snprintf(source, sizeof source, "measured on %d rank%s, %s, %s", rt->size, rt->size == 1 ? "" : "s",
             sluice_world_path(rt->world), sluice_world_transport(rt->world));
    slc_profile *profile;
    sluice_status status = slc_job_profile(rt, times, model, source, &profile);
    if (status) return status;
    status = slc_profile_write(profile, path);
    slc_profile_destroy(profile);
    return status;
}

sluice_status sluice_runtime_profile_write(sluice_runtime *rt, const char *path, const char *model)
{
    slc_times times;
    sluice_status status = slc_runtime_require(rt, true, "profile_write");
    if (!status && (!path || !model)) status = slc_error(SLUICE_ERR_ARGUMENT, "profile_write: path and model");
    if (!status && rt->mode != SLC_IDLE)
        status = slc_error(SLUICE_ERR_ORDER, "profile_write: must be called between steps");
    if (!status) status = slc_comm_meet(rt->comm, "profile_write", NULL);
    if (!status) status = slc_runtime_drain(rt);
    if (status) return status;
    status = slc_engine_measure(rt, &times);
    if (status) return slc_runtime_fail(rt, status);
    /* Rank 0's result is everybody's; training goes on where a file cannot be written. */
    double failed = 0;
    if (rt->rank == 0) status = write_here(rt, &times, path, model);
    failed = status != SLUICE_OK;
    slc_times_fini(&times);
    sluice_status agreed = sluice_world_all_reduce(rt->world, &failed, 1);
    if (agreed) return slc_runtime_fail(rt, agreed);
    if (!status && failed > 0) status = slc_error(SLUICE_ERR_IO, "rank 0 could not write the profile \"%s\"", path);
    return status;
}
