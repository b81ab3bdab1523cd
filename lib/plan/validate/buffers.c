/* The validator's check of buffers: which must exist under a plan's strategies, how large they are, which are
 * resident. validate_split_test.c and tests/plan/validate_test.c cover this file. */
#include "lib/plan/validate/parts.h"

#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/plan/strategy_table.h"

#include <stdlib.h>

/* ---- The index ---- */

static uint32_t most(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t *cell_of(const slc_buffer_index *index, slc_buffer_kind kind, uint32_t unit, uint32_t number)
{
    uint32_t key = unit == SLC_NONE ? number : unit;
    if ((unsigned)kind >= SLC_BUFFER_KINDS || key >= index->keys) return NULL;
    return &index->first[(size_t)kind * index->keys + key];
}

static bool is_whole(const slc_plan *plan, const slc_claim *claim)
{
    return claim->buffer < plan->buffer_count && !claim->first_byte &&
           claim->end_byte == plan->buffers[claim->buffer].bytes;
}

sluice_status slc_buffer_index_init(slc_buffer_index *index, const slc_job *job, const slc_plan *plan)
{
    uint32_t keys = most(job->unit_count, most(job->activation_count, job->workspace_count)) + 1;
    size_t cells = (size_t)SLC_BUFFER_KINDS * keys, buffers = (size_t)plan->buffer_count + 1;
    *index = (slc_buffer_index){.plan = plan,
                                .keys = keys,
                                .first = malloc(cells * sizeof *index->first),
                                .next = malloc(buffers * sizeof *index->next),
                                .resident = calloc(buffers, sizeof *index->resident)};
    if (!index->first || !index->next || !index->resident) {
        slc_buffer_index_fini(index);
        return slc_error(SLUICE_ERR_MEMORY, "validator");
    }
    for (size_t c = 0; c < cells; c++) index->first[c] = SLC_NONE;
    for (uint32_t b = plan->buffer_count; b-- > 0;) {
        const slc_buffer *buffer = &plan->buffers[b];
        uint32_t *cell = cell_of(index, buffer->kind, buffer->unit, buffer->index);
        index->next[b] = cell ? *cell : SLC_NONE;
        if (cell) *cell = b;
    }
    for (uint32_t s = 0; s < plan->static_count; s++)
        if (is_whole(plan, &plan->statics[s])) index->resident[plan->statics[s].buffer] = true;
    return SLUICE_OK;
}

void slc_buffer_index_fini(slc_buffer_index *index)
{
    free(index->resident);
    free(index->next);
    free(index->first);
}

uint32_t slc_buffer_index_find(const slc_buffer_index *index, slc_buffer_kind kind, uint32_t unit, uint32_t number)
{
    const uint32_t *cell = cell_of(index, kind, unit, number);
    uint32_t b = cell ? *cell : SLC_NONE;
    while (b != SLC_NONE && (index->plan->buffers[b].unit != unit || index->plan->buffers[b].index != number))
        b = index->next[b];
    return b;
}

/* ---- Which there must be ---- */

typedef struct {
    const slc_job *job;
    const slc_buffer_index *index;
    bool *expected; /* [buffers of the plan] the job needs it */
} inventory;

static sluice_status expect(inventory *i, slc_buffer_kind kind, uint32_t unit, uint32_t number, uint64_t bytes,
                            bool resident)
{
    const slc_plan *plan = i->index->plan;
    const char *name = slc_buffer_kind_name(kind), *whose = unit == SLC_NONE ? "the job" : i->job->units[unit].name;
    uint32_t found = slc_buffer_index_find(i->index, kind, unit, number);
    if (found == SLC_NONE || plan->buffers[found].bytes < bytes)
        return slc_error(SLUICE_ERR_FORMAT, "invalid plan: %s %u of %s: %llu bytes are needed, the plan has %llu", name,
                         number, whose, (unsigned long long)bytes,
                         found == SLC_NONE ? 0 : (unsigned long long)plan->buffers[found].bytes);
    if (resident && !i->index->resident[found])
        return slc_error(SLUICE_ERR_FORMAT, "invalid plan: %s %u of %s must be in memory for good", name, number,
                         whose);
    i->expected[found] = true;
    return SLUICE_OK;
}

/* The rows of the strategy table, with a gathered buffer for each window of the first micro-batch, of the last one and
 * of those between. */
static sluice_status expect_unit(inventory *i, uint32_t u)
{
    const slc_unit *unit = &i->job->units[u];
    slc_buffer_rule rows[SLC_BUFFER_RULES_MAX];
    uint32_t count = slc_buffer_rules(i->job, unit, i->index->plan->strategies[u], rows);
    sluice_status status = SLUICE_OK;
    for (uint32_t r = 0; !status && r < count; r++) {
        uint64_t bytes = slc_buffer_bytes(i->job, unit, &rows[r]);
        bool resident = rows[r].life == SLC_LIFE_RESIDENT;
        if (rows[r].life == SLC_LIFE_WINDOW)
            for (uint32_t n = 0; !status && n < slc_gathered_buffers(i->job, unit); n++)
                status = expect(i, rows[r].kind, u, n, bytes, resident);
        else
            status = expect(i, rows[r].kind, u, rows[r].index, bytes, resident);
    }
    return status;
}

static sluice_status expect_all(inventory *i)
{
    const slc_job *job = i->job;
    sluice_status status = expect(i, SLC_BUFFER_AGREEMENT, SLC_NONE, 0, 8 * slc_agreement_words(job), true);
    if (!status && job->scratch_bytes) status = expect(i, SLC_BUFFER_SCRATCH, SLC_NONE, 0, job->scratch_bytes, true);
    for (uint32_t u = 0; !status && u < job->unit_count; u++) status = expect_unit(i, u);
    if (!status) status = expect(i, SLC_BUFFER_STAGING, SLC_NONE, 0, slc_reading_bytes(job), false);
    for (uint32_t a = 0; !status && a < job->activation_count; a++)
        status = expect(i, SLC_BUFFER_ACTIVATION, SLC_NONE, a, job->activations[a].bytes, false);
    for (uint32_t w = 0; !status && w < job->workspace_count; w++)
        status = expect(i, SLC_BUFFER_WORKSPACE, SLC_NONE, w, job->workspaces[w].bytes, false);
    return status;
}

/* Refuses buffers that were not expected: a second one of its kind, or one that these strategies do not have. */
static sluice_status refuse_others(const inventory *i)
{
    const slc_plan *plan = i->index->plan;
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        const slc_buffer *buffer = &plan->buffers[b];
        if (!i->expected[b] && (buffer->kind != SLC_BUFFER_SCRATCH || buffer->bytes))
            return slc_error(SLUICE_ERR_FORMAT,
                             "invalid plan: buffer %u (%s %u, unit %d) is there twice or has no use in it", b,
                             slc_buffer_kind_name(buffer->kind), buffer->index, (int)buffer->unit);
    }
    return SLUICE_OK;
}

static sluice_status check_inventory(const slc_job *job, const slc_buffer_index *index)
{
    inventory i = {job, index, calloc((size_t)index->plan->buffer_count + 1, sizeof *i.expected)};
    if (!i.expected) return slc_error(SLUICE_ERR_MEMORY, "validator");
    sluice_status status = expect_all(&i);
    if (!status) status = refuse_others(&i);
    free(i.expected);
    return status;
}

/* ---- Where they lie ---- */

static int by_offset(const void *a, const void *b)
{
    const slc_buffer *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static sluice_status check_apart(const slc_plan *plan, slc_buffer *buffers, uint32_t count)
{
    if (count) qsort(buffers, count, sizeof *buffers, by_offset);
    uint64_t end = 0;
    for (uint32_t b = 0; b < count; b++) {
        if (buffers[b].offset > plan->arena_bytes || buffers[b].bytes > plan->arena_bytes - buffers[b].offset)
            return slc_error(SLUICE_ERR_FORMAT, "invalid plan: %s lies beyond the arena",
                             slc_buffer_kind_name(buffers[b].kind));
        if (!buffers[b].bytes) continue;
        if (b && buffers[b].offset < end)
            return slc_error(SLUICE_ERR_FORMAT, "invalid plan: %s of unit %d lies over another resident buffer",
                             slc_buffer_kind_name(buffers[b].kind), (int)buffers[b].unit);
        end = buffers[b].offset + buffers[b].bytes;
    }
    return SLUICE_OK;
}

/* Checks the arena, which is what a rank allocates: it must end where the last buffer does. */
static sluice_status check_arena(const slc_plan *plan)
{
    uint64_t end = 0;
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        const slc_buffer *buffer = &plan->buffers[b];
        if (buffer->offset <= plan->arena_bytes && buffer->bytes <= plan->arena_bytes - buffer->offset)
            end = slc_most(end, buffer->offset + buffer->bytes);
    }
    if (plan->arena_bytes - end < 64) return SLUICE_OK;
    return slc_error(SLUICE_ERR_FORMAT, "invalid plan: arena_bytes is %llu, but the last buffer ends at %llu",
                     (unsigned long long)plan->arena_bytes, (unsigned long long)end);
}

/* Checks that resident buffers lie apart. The staging buffer is used between steps, so it must lie apart from them too,
 * but may overlap anything else. */
static sluice_status check_residents(const slc_buffer_index *index)
{
    const slc_plan *plan = index->plan;
    for (uint32_t s = 0; s < plan->static_count; s++)
        if (!is_whole(plan, &plan->statics[s]))
            return slc_error(SLUICE_ERR_FORMAT, "invalid plan: resident claim %u is not of one whole buffer", s);
    slc_buffer *buffers = calloc((size_t)plan->static_count + 1, sizeof *buffers);
    if (!buffers) return slc_error(SLUICE_ERR_MEMORY, "validator");
    uint32_t staging = slc_buffer_index_find(index, SLC_BUFFER_STAGING, SLC_NONE, 0);
    for (uint32_t s = 0; s < plan->static_count; s++) buffers[s] = plan->buffers[plan->statics[s].buffer];
    buffers[plan->static_count] = plan->buffers[staging];
    sluice_status status = check_apart(plan, buffers, plan->static_count + 1);
    free(buffers);
    return status;
}

sluice_status slc_validate_buffers(const slc_job *job, const slc_buffer_index *index)
{
    sluice_status status = check_inventory(job, index);
    if (!status) status = check_residents(index);
    return status ? status : check_arena(index->plan);
}
