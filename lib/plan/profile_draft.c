/* A draft's arrays belong to it; names and uses of units point into them.
 * lib/plan/json/profile_json_test.c covers this file. */
#include "lib/plan/profile_draft.h"

#include "lib/base/status.h"
#include "lib/plan/roles.h"

#include <stdlib.h>

sluice_status slc_profile_draft_init(slc_profile_draft *draft, uint32_t layers)
{
    const size_t count = layers, units = count + 2;
    *draft = (slc_profile_draft){.job.layer_count = layers};
    slc_job *job = &draft->job;
    job->can_recompute = draft->can_recompute = calloc(count + 1, sizeof *draft->can_recompute);
    job->layers = calloc(count + 1, sizeof *job->layers);
    job->units = calloc(units, sizeof *job->units);
    job->activations = calloc(3 * count + 2, sizeof *job->activations);
    job->workspaces = calloc(2 * count + 1, sizeof *job->workspaces);
    draft->times.slot_s = calloc(2 * count + 1, sizeof *draft->times.slot_s);
    draft->times.recompute_s = calloc(count + 1, sizeof *draft->times.recompute_s);
    draft->names = calloc(2 * count + 1, sizeof *draft->names);
    draft->uses = calloc(units, sizeof *draft->uses);
    draft->parameters = calloc(units, sizeof *draft->parameters);
    draft->block_bytes = calloc(units, sizeof *draft->block_bytes);
    bool all = job->can_recompute && job->layers && job->units && job->activations && job->workspaces &&
               draft->times.slot_s && draft->times.recompute_s && draft->names && draft->uses && draft->parameters &&
               draft->block_bytes;
    return all ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "profile of %u layers", layers);
}

void slc_profile_draft_fini(slc_profile_draft *draft)
{
    free(draft->can_recompute);
    free(draft->job.layers);
    free(draft->job.units);
    free(draft->job.activations);
    free(draft->job.workspaces);
    slc_times_fini(&draft->times);
    free(draft->names);
    free(draft->uses);
    free(draft->parameters);
    free(draft->block_bytes);
    *draft = (slc_profile_draft){0};
}

slc_unit *slc_profile_draft_unit(slc_profile_draft *draft, const char *name, uint64_t parameters, uint64_t block_bytes,
                                 slc_use *uses, uint32_t use_count)
{
    const uint32_t u = draft->job.unit_count++;
    slc_unit *unit = &draft->job.units[u];
    draft->parameters[u] = parameters;
    draft->block_bytes[u] = block_bytes;
    *unit = (slc_unit){.name = name, .trainable = true, .uses = uses, .use_count = use_count};
    slc_profile_unit_lengths(parameters, block_bytes, draft->job.world, unit);
    return unit;
}

void slc_profile_draft_activation(slc_profile_draft *draft, slc_activation_life life)
{
    draft->job.activations[draft->job.activation_count++] = life;
}

sluice_status slc_profile_draft_finish(const slc_profile_draft *draft, const char *model, const char *source,
                                       slc_profile **out)
{
    sluice_status status = slc_profile_create(&draft->job, draft->parameters, &draft->times, model, source, out);
    for (uint32_t u = 0; !status && u < draft->job.unit_count; u++)
        if (!slc_looks_up(&draft->job.units[u])) (*out)->block_bytes[u] = draft->block_bytes[u];
    return status;
}
