/* Profiles: deep copies, and what changes with the world. lib/plan/json/profile_json_test.c covers this file. */
#include "lib/plan/profile.h"

#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/plan/exchange_sizes.h"
#include "lib/plan/roles.h"

#include <stdlib.h>
#include <string.h>

/* ---- Lengths in a world ---- */

void slc_profile_unit_lengths(uint64_t parameters, uint64_t block_bytes, uint32_t world, slc_unit *unit)
{
    uint64_t grain = 16 * (uint64_t)world, block = block_bytes / 4 / grain * grain;
    if (slc_looks_up(unit)) {
        unit->elements = unit->block_elements = slc_round_up(unit->most_rows * unit->row_elements, grain);
        return;
    }
    unit->elements = slc_round_up(parameters ? parameters : 1, grain);
    unit->block_elements = block ? block : grain;
}

static uint64_t scratch_for(uint64_t in_flight, uint32_t world)
{
    return (in_flight + world - 1) / world * (world - 1);
}

static const uint64_t exchange_max = UINT64_C(1) << 60;

static slc_exchange_sizes exchange_in(const slc_profile *profile, uint32_t u, uint32_t world)
{
    const slc_profile_tensors *tensors = &profile->tensors[u];
    const slc_unit *unit = &profile->job.units[u];
    if (!unit->trainable || !(slc_role_of(unit)->strategies >> SLC_ONEBIT & 1)) return (slc_exchange_sizes){0};
    return slc_exchange_of(tensors->elements, tensors->count, world, profile->scratch_in_flight > 0);
}

/* Refuses a unit whose exchange would be too large. The chunks of many small tensors are mostly padding in a large
 * world, so sums of their sizes might overflow. */
static sluice_status check_exchange(const slc_profile *profile, uint32_t u, uint32_t world)
{
    slc_exchange_sizes sizes = exchange_in(profile, u, world);
    if (sizes.worker <= exchange_max && sizes.results <= exchange_max) return SLUICE_OK;
    return slc_error(SLUICE_ERR_ARGUMENT,
                     "unit \"%s\": its %u tensors padded for an exchange of %u ranks are beyond 2^60 bytes",
                     profile->job.units[u].name, profile->tensors[u].count, world);
}

sluice_status slc_profile_set_world(slc_profile *profile, uint32_t world)
{
    if (!world || world > SLC_PROFILE_WORLD_MAX)
        return slc_error(SLUICE_ERR_ARGUMENT, "a world of %u ranks: from 1 to %d can be planned for", world,
                         SLC_PROFILE_WORLD_MAX);
    slc_job *job = &profile->job;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        sluice_status status = check_exchange(profile, u, world);
        if (status) return status;
    }
    for (uint32_t u = 0; u < job->unit_count; u++) {
        slc_profile_unit_lengths(profile->parameters[u], profile->block_bytes[u], world, &job->units[u]);
        job->units[u].exchange = exchange_in(profile, u, world);
    }
    job->scratch_bytes = scratch_for(profile->scratch_in_flight, world);
    job->world = world;
    job->compressed = profile->compressed && world > 1;
    return SLUICE_OK;
}

sluice_status slc_profile_set_compressed(slc_profile *profile, bool compressed)
{
    if (compressed && profile->job.each)
        return slc_error(SLUICE_ERR_ARGUMENT, "onebit needs gradients that are added up over micro-batches; the "
                                              "profile's are reduced in each");
    profile->compressed = compressed;
    profile->job.compressed = compressed && profile->job.world > 1;
    return SLUICE_OK;
}

sluice_status slc_profile_set_tensors(slc_profile *profile, uint32_t unit, const uint64_t *elements, uint32_t count)
{
    slc_profile_tensors *tensors = &profile->tensors[unit];
    uint64_t sum = 0;
    for (uint32_t t = 0; t < count && sum <= profile->parameters[unit]; t++)
        if (__builtin_add_overflow(sum, elements[t], &sum)) sum = UINT64_MAX;
    if (sum > profile->parameters[unit])
        return slc_error(SLUICE_ERR_ARGUMENT, "unit \"%s\": its tensors are longer than its %llu parameters",
                         profile->job.units[unit].name, (unsigned long long)profile->parameters[unit]);
    uint64_t *copy = malloc(((size_t)count + 1) * sizeof *copy);
    if (!copy) return slc_error(SLUICE_ERR_MEMORY, "%u tensors", count);
    if (count) memcpy(copy, elements, count * sizeof *copy);
    free(tensors->elements);
    *tensors = (slc_profile_tensors){copy, count};
    profile->job.units[unit].exchange = exchange_in(profile, unit, profile->job.world);
    return check_exchange(profile, unit, profile->job.world);
}

/* ---- Copies ---- */

void slc_profile_destroy(slc_profile *profile)
{
    if (!profile) return;
    slc_job *job = &profile->job;
    for (uint32_t l = 0; job->layers && l < job->layer_count; l++) free((char *)job->layers[l]);
    for (uint32_t u = 0; job->units && u < job->unit_count; u++) {
        free((char *)job->units[u].name);
        free(job->units[u].uses);
    }
    for (uint32_t a = 0; job->activations && a < job->activation_count; a++) free((char *)job->activations[a].name);
    for (uint32_t a = 0; job->readers && a < job->activation_count; a++) free((slc_reader *)job->readers[a].at);
    free((slc_activation_readers *)job->readers);
    for (uint32_t w = 0; job->workspaces && w < job->workspace_count; w++) free((char *)job->workspaces[w].name);
    free(job->layers);
    free((bool *)job->can_recompute);
    free(job->units);
    free(job->activations);
    free(job->workspaces);
    slc_times_fini(&profile->times);
    for (uint32_t u = 0; profile->tensors && u < job->unit_count; u++) free(profile->tensors[u].elements);
    free(profile->tensors);
    free(profile->parameters);
    free(profile->block_bytes);
    free(profile->model);
    free(profile->source);
    free(profile);
}

static bool copy_layers(const slc_job *from, slc_job *job)
{
    bool *can = calloc((size_t)from->layer_count + 1, sizeof *can);
    job->can_recompute = can;
    job->layers = calloc((size_t)from->layer_count + 1, sizeof *job->layers);
    if (!can || !job->layers) return false;
    for (uint32_t l = 0; l < from->layer_count; l++) {
        can[l] = from->can_recompute && from->can_recompute[l];
        job->layers[l] = strdup(from->layers[l]);
        if (!job->layers[l]) return false;
    }
    return true;
}

static bool copy_units(const slc_job *from, slc_job *job)
{
    job->units = calloc((size_t)from->unit_count + 1, sizeof *job->units);
    if (!job->units) return false;
    for (uint32_t u = 0; u < from->unit_count; u++) {
        const slc_unit *unit = &from->units[u];
        job->units[u] = *unit;
        job->units[u].name = strdup(unit->name);
        job->units[u].uses = malloc(unit->use_count * sizeof *unit->uses + 1);
        if (!job->units[u].name || !job->units[u].uses) return false;
        memcpy(job->units[u].uses, unit->uses, unit->use_count * sizeof *unit->uses);
    }
    return true;
}

static bool copy_readers(const slc_job *from, slc_job *job)
{
    if (!from->readers) return true;
    slc_activation_readers *own = calloc((size_t)from->activation_count + 1, sizeof *own);
    job->readers = own;
    for (uint32_t a = 0; own && a < from->activation_count; a++) {
        const slc_activation_readers *readers = &from->readers[a];
        slc_reader *at = readers->at ? malloc(((size_t)readers->count + 1) * sizeof *at) : NULL;
        if (readers->at && !at) return false;
        if (at) memcpy(at, readers->at, readers->count * sizeof *at);
        own[a] = (slc_activation_readers){at, readers->count};
    }
    return own != NULL;
}

static bool copy_lives(const slc_job *from, slc_job *job)
{
    job->activations = calloc((size_t)from->activation_count + 1, sizeof *job->activations);
    job->workspaces = calloc((size_t)from->workspace_count + 1, sizeof *job->workspaces);
    if (!job->activations || !job->workspaces) return false;
    for (uint32_t a = 0; a < from->activation_count; a++) {
        job->activations[a] = from->activations[a];
        job->activations[a].name = strdup(from->activations[a].name);
        if (!job->activations[a].name) return false;
    }
    for (uint32_t w = 0; w < from->workspace_count; w++) {
        job->workspaces[w] = from->workspaces[w];
        job->workspaces[w].name = strdup(from->workspaces[w].name);
        if (!job->workspaces[w].name) return false;
    }
    return true;
}

static sluice_status copy_all(slc_profile *profile, const slc_job *job, const slc_times *times, const char *model,
                              const char *source)
{
    slc_job *mine = &profile->job;
    *mine = *job;
    mine->layers = NULL;
    mine->can_recompute = NULL;
    mine->units = NULL;
    mine->activations = NULL;
    mine->readers = NULL;
    mine->workspaces = NULL;
    mine->exact = false;
    profile->compressed = job->compressed;
    profile->model = strdup(model ? model : "");
    profile->source = strdup(source ? source : "");
    if (!profile->model || !profile->source || !copy_layers(job, mine) || !copy_units(job, mine) ||
        !copy_lives(job, mine) || !copy_readers(job, mine))
        return slc_error(SLUICE_ERR_MEMORY, "profile of %u layers", job->layer_count);
    return slc_times_copy(job, times, &profile->times);
}

/* ---- What planning for other worlds needs ---- */

static sluice_status note_lengths(slc_profile *profile, const uint64_t *parameters)
{
    const slc_job *job = &profile->job;
    profile->parameters = malloc(((size_t)job->unit_count + 1) * sizeof *profile->parameters);
    profile->block_bytes = malloc(((size_t)job->unit_count + 1) * sizeof *profile->block_bytes);
    profile->tensors = calloc((size_t)job->unit_count + 1, sizeof *profile->tensors);
    if (!profile->parameters || !profile->block_bytes || !profile->tensors)
        return slc_error(SLUICE_ERR_MEMORY, "profile of %u units", job->unit_count);
    for (uint32_t u = 0; u < job->unit_count; u++) {
        const slc_unit *unit = &job->units[u];
        bool rows = slc_looks_up(unit);
        slc_unit made = *unit;
        profile->parameters[u] = rows         ? unit->most_rows * unit->row_elements
                                 : parameters ? parameters[u]
                                              : unit->elements;
        profile->block_bytes[u] = rows ? 0 : 4 * unit->block_elements;
        slc_profile_unit_lengths(profile->parameters[u], profile->block_bytes[u], job->world, &made);
        if (made.elements != unit->elements || made.block_elements != unit->block_elements)
            return slc_error(
                SLUICE_ERR_ARGUMENT,
                "unit \"%s\": %llu parameters in blocks of %llu bytes are %llu elements padded for %u ranks "
                "in blocks of %llu, the job has %llu in blocks of %llu",
                unit->name, (unsigned long long)profile->parameters[u], (unsigned long long)profile->block_bytes[u],
                (unsigned long long)made.elements, job->world, (unsigned long long)made.block_elements,
                (unsigned long long)unit->elements, (unsigned long long)unit->block_elements);
    }
    return SLUICE_OK;
}

static sluice_status note_scratch(slc_profile *profile)
{
    const slc_job *job = &profile->job;
    uint32_t peers = job->world - 1;
    if (!job->scratch_bytes) return SLUICE_OK;
    if (!peers || job->scratch_bytes % peers)
        return slc_error(SLUICE_ERR_ARGUMENT, "scratch of %llu bytes for messages from %u peers: give each the same",
                         (unsigned long long)job->scratch_bytes, peers);
    profile->scratch_in_flight = job->scratch_bytes / peers * job->world;
    return SLUICE_OK;
}

sluice_status slc_profile_create(const slc_job *job, const uint64_t *parameters, const slc_times *times,
                                 const char *model, const char *source, slc_profile **out)
{
    slc_profile *profile = calloc(1, sizeof *profile);
    if (!profile) return slc_error(SLUICE_ERR_MEMORY, "profile");
    sluice_status status = copy_all(profile, job, times, model, source);
    if (!status) status = note_lengths(profile, parameters);
    if (!status) status = note_scratch(profile);
    for (uint32_t u = 0; !status && u < job->unit_count; u++)
        status = slc_profile_set_tensors(profile, u, &profile->parameters[u], 1);
    if (status) {
        slc_profile_destroy(profile);
        return status;
    }
    *out = profile;
    return SLUICE_OK;
}
