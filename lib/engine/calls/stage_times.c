/* tests/engine/pipeline_test.c covers this file. */
#include "lib/base/numbers/floats.h"
#include "lib/base/sized.h"
#include "lib/base/status.h"
#include "lib/engine/measure/measure.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/drain.h"

#include <sluice/plan.h>

static sluice_status measure_stages(sluice_runtime *rt, sluice_stage_times *out)
{
    slc_link_line line = {0};
    sluice_status status = slc_measure_updates(rt, &out->update_s);
    if (!status) status = slc_measure_channels(rt, &line);
    out->message_latency_s = line.latency_s;
    out->message_bytes_per_s = line.bytes_per_s;
    return status;
}

sluice_status sluice_runtime_stage_times(sluice_runtime *rt, sluice_stage_times *times)
{
    SLC_HOLD_FLOATS;
    sluice_stage_times made = {0};
    sluice_status status = slc_runtime_require_mode(rt, SLC_IDLE, "stage_times");
    if (!status && !times) status = slc_error(SLUICE_ERR_ARGUMENT, "stage_times: no place for the result");
    if (!status) status = slc_sized_check("sluice_stage_times", NULL, times, sizeof *times);
    if (!status) status = slc_comm_meet(rt->comm, "stage_times", NULL);
    if (!status) status = slc_runtime_drain(rt);
    if (status) return status;
    if (slc_is_stage(&rt->stage)) status = measure_stages(rt, &made);
    if (status) return slc_runtime_fail(rt, status);
    slc_sized_write(&made, sizeof made, times);
    return SLUICE_OK;
}
