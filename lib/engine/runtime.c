/* The failure of a runtime, and what every public call asks first.
 * tests/calls/engine_contract_test.c covers this file. */
#include "lib/engine/runtime.h"

#include "lib/base/status.h"
#include "lib/engine/step/progress.h"

#include <string.h>

sluice_status slc_runtime_fail(sluice_runtime *rt, sluice_status status)
{
    if (!rt->failure.status && status < 0) {
        status = slc_progress_tell(rt, status);
        rt->failure.status = status;
        rt->failure.line = strdup(sluice_last_error());
        if (!rt->failure.alike && rt->size > 1) slc_comm_fail(rt->comm, status, sluice_last_error());
    }
    return status;
}

sluice_status slc_runtime_alike(sluice_runtime *rt, sluice_status status)
{
    rt->failure.alike = status < 0;
    return status;
}

sluice_status slc_runtime_share(sluice_runtime *rt, sluice_status status, void *data, size_t bytes)
{
    sluice_status shared = sluice_world_share(rt->world, status, data, bytes, 0);
    return shared && !sluice_world_check(rt->world) ? slc_runtime_alike(rt, shared) : shared;
}

sluice_status slc_runtime_healthy(sluice_runtime *rt)
{
    if (rt->failure.status)
        return slc_error(rt->failure.status, "%s", rt->failure.line ? rt->failure.line : "the runtime has failed");
    sluice_status status = sluice_world_check(rt->world);
    /* The communication thread may have been the first to hear of a device's failure. */
    return status && rt->progress.base ? slc_runtime_fail(rt, status) : status;
}

sluice_status slc_runtime_require_of(sluice_runtime *rt, bool committed, const char *call, const char *object)
{
    if (!rt) return slc_error(SLUICE_ERR_ARGUMENT, "%s: no runtime given", call);
    slc_comm_call(rt->comm, call, object);
    sluice_status status = slc_runtime_healthy(rt);
    if (status) return status;
    rt->failure.alike = false;
    if (rt->committed == committed) return SLUICE_OK;
    const char *when = committed ? "before commit; call sluice_runtime_commit first" : "after commit";
    return object ? slc_error(SLUICE_ERR_ORDER, "%s of \"%s\": %s", call, object, when)
                  : slc_error(SLUICE_ERR_ORDER, "%s: %s", call, when);
}

sluice_status slc_runtime_require(sluice_runtime *rt, bool committed, const char *call)
{
    return slc_runtime_require_of(rt, committed, call, NULL);
}

static const char *mode_name(slc_mode mode)
{
    return mode == SLC_IDLE ? "between steps" : mode == SLC_IN_STEP ? "inside a step" : "inside an evaluation";
}

sluice_status slc_runtime_require_mode(sluice_runtime *rt, slc_mode mode, const char *call)
{
    sluice_status status = slc_runtime_require(rt, true, call);
    if (!status && rt->mode != mode)
        status = slc_error(SLUICE_ERR_ORDER, "%s: must be called %s, this is %s", call, mode_name(mode),
                           mode_name(rt->mode));
    return status;
}

sluice_status slc_runtime_require_no_stages(const sluice_runtime *rt, const char *call)
{
    if (!slc_is_stage(&rt->stage)) return SLUICE_OK;
    return slc_error(SLUICE_ERR_UNSUPPORTED, "%s: not in a pipeline yet (config.pipeline is %u)", call,
                     rt->config.pipeline);
}
