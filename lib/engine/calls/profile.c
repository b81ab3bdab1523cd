/* The profile of the job that runs: as a file, made from what the steps so far took; and as the text from which the
 * plan in force was made, next to that plan's text. tests/calls/every_call_test.c covers this file. */
#include "lib/base/numbers/floats.h"
#include "lib/base/status.h"
#include "lib/engine/measure/measure.h"
#include "lib/engine/model/job_profile.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/drain.h"

#include <sluice/plan.h>
#include <stdio.h>
#include <stdlib.h>

/* `how`: where the times come from. */
static sluice_status make_profile(const sluice_runtime *rt, const slc_times *times, const char *how, const char *model,
                                  slc_profile **out)
{
    char source[160];
    snprintf(source, sizeof source, "%s %d rank%s, %s, %s", how, rt->size, rt->size == 1 ? "" : "s",
             sluice_world_path(rt->world), sluice_world_transport(rt->world));
    return slc_job_profile(rt, times, model, source, out);
}

static sluice_status write_here(const sluice_runtime *rt, const slc_times *times, const char *path, const char *model)
{
    slc_profile *profile;
    sluice_status status = make_profile(rt, times, "measured on", model, &profile);
    if (status) return status;
    status = slc_profile_write(profile, path);
    slc_profile_destroy(profile);
    return status;
}

sluice_status sluice_runtime_profile_write(sluice_runtime *rt, const char *path, const char *model)
{
    SLC_HOLD_FLOATS;
    slc_times times;
    sluice_status status = slc_runtime_require(rt, true, "profile_write");
    if (!status) status = slc_runtime_require_no_stages(rt, "profile_write");
    if (!status && (!path || !model)) status = slc_error(SLUICE_ERR_ARGUMENT, "profile_write: path and model");
    if (!status && rt->mode != SLC_IDLE)
        status = slc_error(SLUICE_ERR_ORDER, "profile_write: must be called between steps");
    if (!status) status = slc_comm_meet(rt->comm, "profile_write", NULL);
    if (!status) status = slc_runtime_drain(rt);
    if (status) return status;
    status = slc_engine_measure(rt, &times);
    if (status) return slc_runtime_fail(rt, status);
    /* Rank 0's result is everybody's; training goes on if a file cannot be written. */
    double failed = 0;
    if (rt->rank == 0) status = write_here(rt, &times, path, model);
    failed = status != SLUICE_OK;
    slc_times_fini(&times);
    sluice_status agreed = sluice_world_all_reduce(rt->world, &failed, 1);
    if (agreed) return slc_runtime_fail(rt, agreed);
    if (!status && failed > 0) status = slc_error(SLUICE_ERR_IO, "rank 0 could not write the profile \"%s\"", path);
    return status;
}

/* ---- The profile that the plan in force was made from ---- */

static sluice_status planned_profile(const sluice_runtime *rt, const char *model, slc_profile **out)
{
    slc_times estimated = {0};
    sluice_status status = rt->current.measured ? SLUICE_OK : slc_times_estimate(&rt->job, &estimated);
    if (!status)
        status = make_profile(rt, rt->current.measured ? &rt->current.times : &estimated,
                              rt->current.measured ? "measured on" : "estimated from sizes for", model, out);
    slc_times_fini(&estimated);
    return status;
}

sluice_status sluice_runtime_plan_json(sluice_runtime *rt, const char *model, char **plan, char **profile)
{
    if (!rt || !model || !plan || !profile)
        return slc_error(SLUICE_ERR_ARGUMENT, "runtime_plan_json: a runtime, a model and both results are needed");
    *plan = *profile = NULL;
    if (!rt->committed) return slc_error(SLUICE_ERR_ORDER, "runtime_plan_json: before commit");
    sluice_status whole = slc_runtime_require_no_stages(rt, "runtime_plan_json");
    if (whole) return whole;
    slc_plan_forecast forecast = rt->current.forecast;
    slc_profile *made;
    if (*rt->current.member) forecast.why = rt->current.member;
    sluice_status status = planned_profile(rt, model, &made);
    if (status) return status;
    status = slc_profile_to_json(made, profile);
    slc_profile_destroy(made);
    if (!status) status = slc_plan_to_json(&rt->job, rt->current.plan, &forecast, plan);
    if (!status) return SLUICE_OK;
    free(*profile);
    *profile = NULL;
    return status;
}
