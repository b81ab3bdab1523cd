/* Rings of records. */
#include "lib/engine/measure/recording.h"

#include "lib/base/status.h"
#include "lib/engine/runtime.h"

#include <stdlib.h>

sluice_status slc_recording_create(slc_recording **out)
{
    slc_recording *recording = calloc(1, sizeof *recording);
    if (!recording) return slc_error(SLUICE_ERR_MEMORY, "recording");
    for (int lane = 0; lane < SLC_RECORD_LANES; lane++) {
        recording->records[lane] = calloc(SLC_RECORDS, sizeof **recording->records);
        if (recording->records[lane]) continue;
        slc_recording_destroy(recording);
        return slc_error(SLUICE_ERR_MEMORY, "recording of %d records", SLC_RECORDS);
    }
    *out = recording;
    return SLUICE_OK;
}

void slc_recording_destroy(slc_recording *recording)
{
    if (!recording) return;
    for (int lane = 0; lane < SLC_RECORD_LANES; lane++) free(recording->records[lane]);
    free(recording);
}

size_t slc_recording_read(const slc_recording *recording, slc_record_lane lane, slc_record *out)
{
    uint64_t written = recording->written[lane], count = written < SLC_RECORDS ? written : SLC_RECORDS;
    for (uint64_t i = 0; i < count; i++) out[i] = recording->records[lane][(written - count + i) % SLC_RECORDS];
    return (size_t)count;
}

sluice_status sluice_runtime_record(sluice_runtime *rt)
{
    sluice_status status = slc_runtime_require_mode(rt, SLC_IDLE, "record");
    if (status || rt->recording) return status;
    return slc_recording_create(&rt->recording);
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
    return (slc_recorded){rt->recording, &rt->job, rt->current.plan, rt->current.number};
}
