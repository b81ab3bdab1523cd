/* The error line of a plan that does not fit: the request, what it needs, the smallest budget that works and with which
 * flags, and what takes the memory at the fullest moment. planner_test.c covers this file. */
#include "sched/search/fullest.h"
#include "sched/planner/parts.h"

#include "lib/base/status.h"
#include "lib/memory/category.h"
#include "lib/plan/request.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The largest consumers ---- */

typedef struct {
    slc_memory_category category;
    uint64_t bytes, largest_bytes;
    const char *largest; /* the unit or layer that takes most of it; NULL: it belongs to none */
} consumer;

typedef struct {
    const slc_job *job;
    const slc_plan *plan;
    uint64_t *by_owner; /* [category][unit or layer] */
    uint32_t owners;
} account;

static uint32_t owner_of(const account *a, const slc_buffer *buffer)
{
    if (buffer->kind == SLC_BUFFER_ACTIVATION)
        return slc_slot_layer(a->job, a->job->activations[buffer->index].first_slot);
    if (buffer->kind == SLC_BUFFER_WORKSPACE) return slc_slot_layer(a->job, a->job->workspaces[buffer->index].slot);
    return buffer->unit == SLC_NONE ? 0 : buffer->unit;
}

static void charge(account *a, const slc_claim *claim)
{
    const slc_buffer *buffer = &a->plan->buffers[claim->buffer];
    a->by_owner[slc_memory_category_of(buffer->kind) * a->owners + owner_of(a, buffer)] +=
        claim->end_byte - claim->first_byte;
}

/* *evaluates: the fullest moment is one of an evaluation pass. */
static sluice_status charge_fullest(account *a, bool *evaluates)
{
    const slc_program *train = &a->plan->train, *evaluate = &a->plan->evaluate;
    uint32_t at_train, at_evaluate;
    uint64_t in_train, in_evaluate;
    sluice_status status = slc_fullest_item(train, &at_train, &in_train);
    if (!status) status = slc_fullest_item(evaluate, &at_evaluate, &in_evaluate);
    if (status) return status;
    *evaluates = in_evaluate > in_train;
    const slc_program *program = *evaluates ? evaluate : train;
    uint32_t item = *evaluates ? at_evaluate : at_train;
    for (uint32_t s = 0; s < a->plan->static_count; s++) charge(a, &a->plan->statics[s]);
    for (uint32_t c = 0; c < program->claim_count; c++)
        if (slc_claim_alive(program, &program->claims[c], item)) charge(a, &program->claims[c]);
    return SLUICE_OK;
}

static consumer summarize(const account *a, slc_memory_category k)
{
    consumer sum = {.category = k};
    for (uint32_t o = 0; o < a->owners; o++) {
        uint64_t bytes = a->by_owner[k * a->owners + o];
        sum.bytes += bytes;
        if (bytes <= sum.largest_bytes || k == SLC_MEMORY_COMMUNICATION) continue;
        sum.largest_bytes = bytes;
        sum.largest =
            k == SLC_MEMORY_ACTIVATIONS || k == SLC_MEMORY_WORKSPACES ? a->job->layers[o] : a->job->units[o].name;
    }
    if (k == SLC_MEMORY_RESERVED) sum.bytes = a->job->reserved_bytes;
    return sum;
}

static int by_bytes(const void *x, const void *y)
{
    const consumer *a = x, *b = y;
    if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
    return (int)a->category - (int)b->category;
}

static sluice_status find_consumers(const slc_job *job, const slc_plan *plan, consumer out[SLC_MEMORY_CATEGORIES],
                                    bool *evaluates)
{
    account a = {.job = job, .plan = plan};
    a.owners = job->unit_count > job->layer_count ? job->unit_count : job->layer_count;
    if (!a.owners) a.owners = 1;
    a.by_owner = calloc((size_t)SLC_MEMORY_CATEGORIES * a.owners, sizeof *a.by_owner);
    if (!a.by_owner) return slc_error(SLUICE_ERR_MEMORY, "plan: no memory for the account of its memory");
    sluice_status status = charge_fullest(&a, evaluates);
    for (int k = 0; k < SLC_MEMORY_CATEGORIES; k++) out[k] = summarize(&a, (slc_memory_category)k);
    qsort(out, SLC_MEMORY_CATEGORIES, sizeof *out, by_bytes);
    free(a.by_owner);
    return status;
}

/* ---- The error line ---- */

static void write_consumers(const consumer *consumers, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < 3 && consumers[i].bytes && used < size; i++) {
        const consumer *c = &consumers[i];
        used += (size_t)snprintf(out + used, size - used, "%s%s %" PRIu64 " bytes", i ? ", " : "",
                                 slc_memory_category_name(c->category), c->bytes);
        if (c->largest && used < size)
            used +=
                (size_t)snprintf(out + used, size - used, " (most: %.64s, %" PRIu64 ")", c->largest, c->largest_bytes);
    }
}

/* True if strategies and schedules differ in what a rank keeps. They do not on one rank that trains nothing. */
static bool strategies_differ(const slc_job *job)
{
    bool trains = false;
    for (uint32_t u = 0; u < job->unit_count; u++) trains |= job->units[u].trainable;
    return trains || job->world > 1;
}

sluice_status slc_budget_error(const slc_job *job, const slc_plan_request *request, const slc_times *times,
                               uint64_t budget_bytes, const slc_plan *plan, slc_work *work, const slc_smallest *known)
{
    slc_smallest best = {0};
    consumer consumers[SLC_MEMORY_CATEGORIES];
    bool evaluates = false;
    sluice_status status = SLUICE_OK;
    if (known)
        best = *known;
    else
        status = slc_smallest_budget(job, request, times, 0, work, &best);
    if (!status) status = find_consumers(job, plan, consumers, &evaluates);
    if (status) return status;

    char largest[640], of_dp[64] = "";
    write_consumers(consumers, largest, sizeof largest);
    if (request->budget_of_dp > 0)
        snprintf(of_dp, sizeof of_dp, ", %g%% of the least that dp works in", 100 * request->budget_of_dp);
    const char *smallest = best.cut ? "the search for less was cut short by its effort, but at most this is needed"
                                    : "the smallest that works";
    const char *where = evaluates ? " of an evaluation pass, which needs more than a step" : "";
    uint64_t need = plan->arena_bytes + job->reserved_bytes, least = best.budget_bytes;
    if (!strategies_differ(job))
        return slc_error(SLUICE_ERR_BUDGET,
                         "%" PRIu64 " bytes (%.1f MiB) are too few; %s: "
                         "config.budget_bytes = %" PRIu64 " (%.1f MiB); the largest consumers%s: %s",
                         budget_bytes, (double)budget_bytes / 0x1p20,
                         best.cut ? smallest : "the smallest budget that works", least, (double)least / 0x1p20, where,
                         largest);
    return slc_error(SLUICE_ERR_BUDGET,
                     "strategy %.200s with schedule %s needs %" PRIu64 " bytes (%.1f MiB), the budget is %" PRIu64
                     " bytes (%.1f MiB%s); %s: config.budget_bytes = %" PRIu64
                     ", config.strategy = %s, config.schedule = %s; the largest consumers%s: %s",
                     request->strategy, request->schedule, need, (double)need / 0x1p20, budget_bytes,
                     (double)budget_bytes / 0x1p20, of_dp, smallest, least, best.strategy, best.schedule, where,
                     largest);
}
