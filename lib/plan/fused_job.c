/* Puts units of one group together into one unit. */
#include "lib/plan/fused_job.h"

#include "lib/base/status.h"
#include "lib/plan/exchange_sizes.h"
#include "lib/plan/roles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *slc_fused_name(const char *first, const char *last)
{
    size_t bytes = strlen(first) + strlen(last) + sizeof "..";
    char *name = malloc(bytes);
    if (name) snprintf(name, bytes, "%s..%s", first, last);
    return name;
}

void slc_fused_uses_close(slc_unit *unit)
{
    uint32_t first = unit->use_count, last = 0;
    for (uint32_t n = 0; n < unit->use_count; n++)
        if (unit->uses[n].backward_value) {
            if (first == unit->use_count) first = n;
            last = n;
        }
    for (uint32_t n = first; n < last; n++) unit->uses[n].backward_value = true;
}

bool slc_units_join(const slc_unit *unit, const slc_unit *after)
{
    return slc_role_of(unit)->fuses && slc_role_of(after)->fuses && unit->trainable && after->trainable &&
           unit->dtype == after->dtype && unit->block_elements == after->block_elements && unit->use_count == 1 &&
           after->use_count == 1 && unit->uses[0].layer + 1 == after->uses[0].layer;
}

/* The next unit of u's group. Other units (frozen, tied) may be between two units of a group. */
static uint32_t next_of_group(const slc_job *job, const uint32_t *group, uint32_t u)
{
    uint32_t next = u + 1;
    while (next < job->unit_count && group[next] != group[u]) next++;
    return next;
}

/* Counts the units of the group from u on and checks that they may be one. */
static sluice_status count_parts(const slc_job *job, const uint32_t *group, uint32_t u, uint32_t *count)
{
    *count = 1;
    for (uint32_t at = u, next; (next = next_of_group(job, group, at)) < job->unit_count; at = next, ++*count)
        if (!slc_units_join(&job->units[at], &job->units[next]))
            return slc_error(SLUICE_ERR_ARGUMENT,
                             "units \"%s\" and \"%s\" cannot be one: of neighbouring layers, "
                             "trainable, of one type and one length of blocks is what can",
                             job->units[at].name, job->units[next].name);
    return SLUICE_OK;
}

static sluice_status make_unit(const slc_job *job, const uint32_t *group, uint32_t u, slc_unit *out)
{
    uint32_t count, last = u;
    sluice_status status = count_parts(job, group, u, &count);
    if (status) return status;
    const slc_unit *from = &job->units[u];
    *out = *from;
    out->uses = malloc((count > 1 ? count : from->use_count) * sizeof *out->uses);
    out->name = NULL;
    if (!out->uses) return slc_error(SLUICE_ERR_MEMORY, "unit \"%s\"", from->name);
    memcpy(out->uses, from->uses, (count > 1 ? 1 : from->use_count) * sizeof *out->uses);
    for (uint32_t n = 1; n < count; n++) {
        last = next_of_group(job, group, last);
        out->uses[n] = job->units[last].uses[0];
        out->elements += job->units[last].elements;
        out->exchange = slc_exchange_join(&out->exchange, &job->units[last].exchange, job->world);
    }
    if (count > 1) {
        out->use_count = count;
        out->fused = true;
        slc_fused_uses_close(out);
    }
    out->name = count > 1 ? slc_fused_name(from->name, job->units[last].name) : strdup(from->name);
    return out->name ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "unit \"%s\"", from->name);
}

sluice_status slc_fused_job_init(const slc_job *job, const uint32_t *group, slc_fused_job *out)
{
    *out = (slc_fused_job){.job = *job};
    out->job.unit_count = 0;
    out->job.units = calloc((size_t)job->unit_count + 1, sizeof *out->job.units);
    out->unit_of = calloc((size_t)job->unit_count + 1, sizeof *out->unit_of);
    out->first_of = calloc((size_t)job->unit_count + 1, sizeof *out->first_of);
    sluice_status status = SLUICE_OK;
    if (!out->job.units || !out->unit_of || !out->first_of)
        status = slc_error(SLUICE_ERR_MEMORY, "%u units", job->unit_count);
    for (uint32_t u = 0; !status && u < job->unit_count; u++) {
        if (group[u] > u || group[group[u]] != group[u]) {
            status = slc_error(SLUICE_ERR_ARGUMENT, "unit \"%s\" is in group %u, which is none", job->units[u].name,
                               group[u]);
        } else if (group[u] < u) {
            out->unit_of[u] = out->unit_of[group[u]];
        } else {
            out->first_of[out->job.unit_count] = u;
            out->unit_of[u] = out->job.unit_count++;
            status = make_unit(job, group, u, &out->job.units[out->unit_of[u]]);
        }
    }
    for (uint32_t u = 0; !status && u < out->job.unit_count; u++)
        out->job.units[u].partner = out->unit_of[out->job.units[u].partner];
    if (status) slc_fused_job_fini(out);
    return status;
}

void slc_fused_job_fini(slc_fused_job *fused)
{
    for (uint32_t u = 0; fused->job.units && u < fused->job.unit_count; u++) {
        free((char *)fused->job.units[u].name);
        free(fused->job.units[u].uses);
    }
    free(fused->job.units);
    free(fused->unit_of);
    free(fused->first_of);
    *fused = (slc_fused_job){0};
}
