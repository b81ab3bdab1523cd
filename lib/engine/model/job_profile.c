/* Makes a profile of a runtime's job. tests/calls/every_call_test.c covers this file. */
#include "lib/engine/model/job_profile.h"

#include "lib/base/status.h"
#include "lib/engine/runtime.h"

#include <stdlib.h>

/* Lists where each unit's last parameter ends: from there on another world pads the unit in its own way. */
static uint64_t *list_unpadded(const sluice_runtime *rt)
{
    uint64_t *parameters = calloc((size_t)rt->job.unit_count + 1, sizeof *parameters);
    for (uint32_t u = 0; parameters && u < rt->job.unit_count; u++) {
        const slc_unit_state *unit = &rt->units[u];
        if (!unit->param_count) continue; /* rows follow from their split unit */
        const sluice_param *last = unit->params[unit->param_count - 1];
        parameters[u] = last->first + last->count;
    }
    return parameters;
}

/* Notes the tensors of a compressed exchange in the profile: each parameter is one, unless the optimizer makes one
 * tensor of all. */
static sluice_status note_tensors(const sluice_runtime *rt, slc_profile *profile)
{
    sluice_status status = SLUICE_OK;
    for (uint32_t u = 0; !status && u < rt->job.unit_count; u++) {
        const slc_unit_state *unit = &rt->units[u];
        if (!unit->param_count) continue;
        uint64_t *elements = malloc(((size_t)unit->param_count + 1) * sizeof *elements);
        if (!elements) return slc_error(SLUICE_ERR_MEMORY, "profile of %u parameters", unit->param_count);
        bool one = rt->compression.fuses && rt->job.units[u].trainable;
        for (uint32_t p = 0; p < unit->param_count; p++) elements[p] = unit->params[p]->count;
        for (uint32_t p = 1; one && p < unit->param_count; p++) elements[0] += elements[p];
        status = slc_profile_set_tensors(profile, u, elements, one ? 1 : unit->param_count);
        free(elements);
    }
    return status;
}

sluice_status slc_job_profile(const sluice_runtime *rt, const slc_times *times, const char *model, const char *source,
                              slc_profile **out)
{
    slc_profile *profile;
    uint64_t *parameters = list_unpadded(rt);
    if (!parameters) return slc_error(SLUICE_ERR_MEMORY, "profile of %u units", rt->job.unit_count);
    sluice_status status = slc_profile_create(&rt->job, parameters, times, model, source, &profile);
    free(parameters);
    if (status) return status;
    status = note_tensors(rt, profile);
    if (status)
        slc_profile_destroy(profile);
    else
        *out = profile;
    return status;
}
