/* The first half of commit: from registration to the job that would be planned. Nothing is laid out.
 * tests/command/plan/estimate_test.sh covers this file. */
#include "lib/base/status.h"
#include "lib/engine/making/job.h"
#include "lib/engine/engine.h"
#include "lib/engine/model/job_profile.h"
#include "lib/engine/runtime.h"

sluice_status slc_engine_survey(sluice_runtime *rt, const char *model, const char *source, slc_profile **out)
{
    slc_times times = {0};
    sluice_status status = slc_runtime_require(rt, false, "survey");
    if (status) return status;
    if (!rt->model.layer_count || !rt->model.param_count)
        return slc_error(SLUICE_ERR_ARGUMENT, "survey: there is no layer or no parameter; register the model first");
    status = slc_engine_make_job(rt);
    if (!status) status = slc_times_estimate(&rt->job, &times);
    if (!status) status = slc_job_profile(rt, &times, model, source, out);
    slc_times_fini(&times);
    return slc_runtime_fail(rt, status);
}
