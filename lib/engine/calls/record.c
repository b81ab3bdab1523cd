/* Beginning to record. tests/engine/pipeline_test.c covers this file. */
#include "lib/engine/measure/recording.h"
#include "lib/engine/runtime.h"
#include "lib/engine/step/messages.h"

#include <sluice/trace.h>

sluice_status sluice_runtime_record(sluice_runtime *rt)
{
    sluice_status status = slc_runtime_require_mode(rt, SLC_IDLE, "record");
    if (status || rt->recording) return status;
    /* The last sends of a stage may still be ending, on this or on another thread, and look for a recording there. */
    if (slc_is_stage(&rt->stage)) status = slc_runtime_fail(rt, slc_stage_messages_finish(rt));
    return status ? status : slc_recording_create(&rt->recording);
}
