/* The buffers that a job has under given strategies, and which of them are resident.
 * make_plan_test.c covers this file. */
#include "sched/layout/parts.h"

#include "lib/base/status.h"

#include <stdlib.h>

static void add_buffer(slc_plan *plan, slc_buffer_kind kind, uint32_t unit, uint32_t index, uint64_t bytes,
                       bool is_static)
{
    uint32_t number = plan->buffer_count++;
    plan->buffers[number] = (slc_buffer){.kind = kind, .unit = unit, .index = index, .bytes = bytes};
    if (is_static) plan->statics[plan->static_count++] = (slc_claim){.buffer = number, .end_byte = bytes};
}

static void add_unit(slc_plan *plan, const slc_job *job, uint32_t u)
{
    const slc_unit *unit = &job->units[u];
    slc_buffer_rule rows[SLC_BUFFER_RULES_MAX];
    uint32_t count = slc_buffer_rules(job, unit, plan->strategies[u], rows);
    for (uint32_t r = 0; r < count; r++) {
        uint64_t bytes = slc_buffer_bytes(job, unit, &rows[r]);
        if (rows[r].life != SLC_LIFE_WINDOW) {
            add_buffer(plan, rows[r].kind, u, rows[r].index, bytes, rows[r].life == SLC_LIFE_RESIDENT);
            continue;
        }
        for (uint32_t g = slc_gathered_buffers(job, unit), n = 0; n < g; n++)
            add_buffer(plan, rows[r].kind, u, n, bytes, false);
    }
}

static uint32_t most_buffers(const slc_job *job)
{
    uint32_t count = job->activation_count + job->workspace_count + 3;
    for (uint32_t u = 0; u < job->unit_count; u++)
        count += 8 + job->states + job->local_arrays + slc_gathered_buffers(job, &job->units[u]);
    return count;
}

sluice_status slc_plan_add_buffers(const slc_job *job, slc_plan *plan)
{
    uint32_t capacity = most_buffers(job);
    plan->buffers = calloc(capacity, sizeof *plan->buffers);
    plan->statics = calloc(capacity, sizeof *plan->statics);
    if (!plan->buffers || !plan->statics) return slc_error(SLUICE_ERR_MEMORY, "no memory for %u buffers", capacity);

    for (uint32_t u = 0; u < job->unit_count; u++) add_unit(plan, job, u);
    for (uint32_t a = 0; a < job->activation_count; a++)
        add_buffer(plan, SLC_BUFFER_ACTIVATION, SLC_NONE, a, job->activations[a].bytes, false);
    for (uint32_t w = 0; w < job->workspace_count; w++)
        add_buffer(plan, SLC_BUFFER_WORKSPACE, SLC_NONE, w, job->workspaces[w].bytes, false);
    if (job->scratch_bytes) add_buffer(plan, SLC_BUFFER_SCRATCH, SLC_NONE, 0, job->scratch_bytes, true);
    add_buffer(plan, SLC_BUFFER_AGREEMENT, SLC_NONE, 0, 8 * slc_agreement_words(job), true);
    add_buffer(plan, SLC_BUFFER_STAGING, SLC_NONE, 0, slc_reading_bytes(job), false);
    return SLUICE_OK;
}
