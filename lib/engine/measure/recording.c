/* Rings of records. */
#include "lib/engine/measure/recording.h"

#include "lib/base/status.h"
#include "lib/engine/runtime.h"

#include <stdlib.h>

sluice_status slc_recording_create(slc_recording **out)
{
    slc_recording *recording = calloc(1, sizeof *recording);
    if (!recording) return slc_error(SLUICE_ERR_MEMORY, "recording");
    for (int lane = 0; lane < SLC_MOMENT_LANES; lane++) {
        recording->moments[lane] = calloc(SLC_RECORDING_MOMENTS, sizeof **recording->moments);
        if (recording->moments[lane]) continue;
        slc_recording_destroy(recording);
        return slc_error(SLUICE_ERR_MEMORY, "recording of %d records", SLC_RECORDING_MOMENTS);
    }
    *out = recording;
    return SLUICE_OK;
}

void slc_recording_destroy(slc_recording *recording)
{
    if (!recording) return;
    for (int lane = 0; lane < SLC_MOMENT_LANES; lane++) free(recording->moments[lane]);
    free(recording);
}

size_t slc_recording_read(const slc_recording *recording, slc_moment_lane lane, slc_moment *out)
{
    uint64_t written = recording->written[lane],
             count = written < SLC_RECORDING_MOMENTS ? written : SLC_RECORDING_MOMENTS;
    for (uint64_t i = 0; i < count; i++)
        out[i] = recording->moments[lane][(written - count + i) % SLC_RECORDING_MOMENTS];
    return (size_t)count;
}

sluice_status slc_engine_recorded_check(sluice_runtime *rt, const void *result)
{
    sluice_status status = slc_runtime_require_mode(rt, SLC_IDLE, "trace");
    if (!status && !result) status = slc_error(SLUICE_ERR_ARGUMENT, "trace: no place for the result");
    if (!status && !rt->recording)
        status = slc_error(SLUICE_ERR_ORDER, "trace: nothing is recorded; call sluice_runtime_record before the steps");
    return status;
}

slc_recorded slc_engine_recorded(const sluice_runtime *rt)
{
    return (slc_recorded){.recording = rt->recording,
                          .job = &rt->job,
                          .plan = rt->current.plan,
                          .plan_number = rt->current.number,
                          .stages = rt->stage.stages,
                          .stage = rt->stage.number};
}
