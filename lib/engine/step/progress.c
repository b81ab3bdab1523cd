/* tests/cuda_emulated/failed_step_test.c covers this file. */
#include "lib/engine/step/progress.h"

#include "lib/base/error_line.h"
#include "lib/base/status.h"
#include "lib/engine/state.h"
#include "lib/kernels/progress/progress.h"

#include <stdio.h>
#include <string.h>

/* The bits of a number say whether it is an evaluation, which pass it is, and how many of its slots have ended. */
enum { EVALUATION_BIT = 63, PASS_BIT = 32 };

sluice_status slc_progress_create(sluice_runtime *rt)
{
    if (!slc_device_runs_ahead(rt->device)) return SLUICE_OK;
    sluice_status status = slc_pinned_create(rt->device, sizeof(uint64_t), &rt->progress);
    if (!status) *(uint64_t *)rt->progress.base = 0;
    return status;
}

static uint64_t number_of(const slc_pass *pass, uint32_t ended)
{
    return (uint64_t)pass->evaluate << EVALUATION_BIT | (uint64_t)pass->number << PASS_BIT | ended;
}

sluice_status slc_progress_note(sluice_runtime *rt, const slc_pass *pass)
{
    if (!rt->progress.base) return SLUICE_OK;
    return slc_progress(&rt->compute, rt->progress.base, number_of(pass, rt->at.cursor + 1));
}

/* True if the device has failed; then `line` gets the reason. Every call of a failed device fails, and says why. */
static bool device_has_failed(sluice_runtime *rt, char *line, size_t room)
{
    if (!slc_stream_synchronize(&rt->compute)) return false;
    const size_t length = strlen(line);
    bool said = strstr(line, "device \"") != NULL; /* a library's call may not say why it failed */
    if (!said) snprintf(line + length, room - length, "; %s", sluice_last_error());
    return true;
}

static void name_slot(const sluice_runtime *rt, const slc_pass *pass, uint32_t ended, char *text, size_t room)
{
    if (ended == pass->slot_count) {
        snprintf(text, room, "all slots of the pass had ended, what follows them had not");
        return;
    }
    const slc_item *item = &pass->program->items[pass->slots[ended]];
    snprintf(text, room, "the first slot that has not ended is the %s of layer \"%.100s\", micro-batch %u",
             slc_slot_is_forward(&rt->job, item->slot) ? "forward" : "backward",
             rt->model.layers[slc_slot_layer(&rt->job, item->slot)]->name, item->micro_batch);
}

sluice_status slc_progress_tell(sluice_runtime *rt, sluice_status status)
{
    char line[SLC_ERROR_BYTES], slot[256];
    if (status != SLUICE_ERR_SYSTEM || !rt->progress.base || !rt->train.slot_count) return status;
    snprintf(line, sizeof line, "%s", sluice_last_error());
    if (!device_has_failed(rt, line, sizeof line)) return slc_error(status, "%s", line);
    const uint64_t number = *(const volatile uint64_t *)rt->progress.base;
    const slc_pass *pass = rt->mode == SLC_IN_EVALUATION ? &rt->evaluate : &rt->train;
    const bool drains = !pass->evaluate && pass->kind[0] == SLC_PASS_DRAIN;
    const uint32_t ended = (uint32_t)number;
    if (!pass->number) return slc_error(status, "%s", line); /* no step has begun */
    /* The number may be of the pass before, or of none: then this one's first slot has not ended. */
    bool of_this = number - ended == number_of(pass, 0);
    name_slot(rt, pass, drains ? pass->slot_count : of_this ? ended : 0, slot, sizeof slot);
    if (pass->evaluate) return slc_error(status, "%s; in an evaluation %s", line, slot);
    const slc_step_state *step = &rt->steps[drains ? pass->parity ^ 1 : pass->parity];
    return slc_error(status, "%s; in step %llu %s", line, (unsigned long long)step->step, slot);
}
