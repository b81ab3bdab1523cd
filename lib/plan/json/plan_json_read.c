/* Reads a plan from JSON. Nothing is used before its range is checked, and counts are those of the text's own arrays.
 * The validator, which runs at the end, says whether the plan is any good.
 * plan_json_test.c covers this file. */
#include "lib/plan/profile.h"

#include "lib/base/file/json_file.h"
#include "lib/plan/json/plan_json_parts.h"

#include "lib/base/status.h"
#include "lib/plan/strategy_names.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *schedule;
    uint32_t version;
    uint64_t arena_bytes, lower_bound;
    json_t *forecast, *job, *strategies, *recompute, *buffers, *resident, *train, *evaluate;
} plan_row;

typedef struct {
    json_t *items, *claims;
} program_row;

typedef struct {
    slc_json_place top;
    const slc_job *job;
    plan_row row;
    slc_plan *plan;
} reader;

static const slc_json_field plan_fields[] = {
    FIELD(plan_row, version, "version", SLC_JSON_COUNT, false), /* absent in the plan of a stage */
    FIELD(plan_row, schedule, "schedule", SLC_JSON_NAME, true),
    FIELD(plan_row, forecast, "forecast", SLC_JSON_OBJECT, false), /* for people only */
    FIELD(plan_row, job, "job", SLC_JSON_OBJECT, true),
    FIELD(plan_row, strategies, "strategies", SLC_JSON_OBJECT, true),
    FIELD(plan_row, recompute, "recompute", SLC_JSON_ARRAY, true),
    FIELD(plan_row, arena_bytes, "arena_bytes", SLC_JSON_SIZE, true),
    FIELD(plan_row, lower_bound, "lower_bound_bytes", SLC_JSON_SIZE, true),
    FIELD(plan_row, buffers, "buffers", SLC_JSON_ARRAY, true),
    FIELD(plan_row, resident, "resident", SLC_JSON_ARRAY, true),
    FIELD(plan_row, train, "train", SLC_JSON_OBJECT, true),
    FIELD(plan_row, evaluate, "evaluate", SLC_JSON_OBJECT, true),
};

static const slc_json_field program_fields[] = {
    FIELD(program_row, items, "items", SLC_JSON_ARRAY, true),
    FIELD(program_row, claims, "claims", SLC_JSON_ARRAY, true),
};

/* ---- Rows of numbers ---- */

/* The cells of one row, read in order; after a fault nothing more is read. The last `more` cells may be absent. */
typedef struct {
    slc_json_place at;
    const json_t *row;
    size_t next;
    sluice_status status;
} cells;

static cells cells_begin(const slc_json_place *list, const json_t *rows, size_t index, size_t length, size_t more,
                         const char *columns)
{
    cells c = {.at = {list, NULL, index}, .row = json_array_get(rows, index)};
    size_t there = json_array_size(c.row);
    if (!json_is_array(c.row) || there < length || there > length + more)
        c.status = slc_json_fault(&c.at, "give [%s]", columns);
    return c;
}

static const json_t *next_cell(cells *c)
{
    return json_array_get(c->row, c->next++);
}

static void refuse_cell(cells *c, const json_t *cell, const char *expected, uint64_t most)
{
    char shown[SLC_JSON_SHOWN_BYTES] = "nothing";
    slc_json_place place = {&c->at, NULL, c->next - 1};
    if (cell) slc_json_show(cell, shown);
    c->status = slc_json_fault(&place, "%s; give %s%llu", shown, expected, (unsigned long long)most);
}

/* Reads a whole number from 0 to `most`. */
static uint64_t cell_number(cells *c, uint64_t most)
{
    if (c->status) return 0;
    const json_t *cell = next_cell(c);
    json_int_t value = json_is_integer(cell) ? json_integer_value(cell) : -1;
    if (value >= 0 && (uint64_t)value <= most) return (uint64_t)value;
    refuse_cell(c, cell, "a whole number from 0 to ", most);
    return 0;
}

/* Reads the index of one of `count` things. */
static uint32_t cell_index(cells *c, uint32_t count)
{
    if (!count && !c->status) refuse_cell(c, next_cell(c), "none: of these there are ", 0);
    return count ? (uint32_t)cell_number(c, count - 1) : 0;
}

static uint32_t cell_unit(cells *c, const slc_job *job)
{
    if (c->status) return SLC_NONE;
    if (!json_is_null(json_array_get(c->row, c->next))) return cell_index(c, job->unit_count);
    c->next++;
    return SLC_NONE;
}

static int cell_kind(cells *c, const char *(*name_of)(int), int count)
{
    if (c->status) return 0;
    const json_t *cell = next_cell(c);
    for (int k = 0; json_is_string(cell) && k < count; k++)
        if (!strcmp(json_string_value(cell), name_of(k))) return k;
    refuse_cell(c, cell, "one of the kinds in docs/formats.md: there are ", (uint64_t)count);
    return 0;
}

static const char *item_kind(int kind)
{
    return slc_item_kind_name((slc_item_kind)kind);
}

static const char *buffer_kind(int kind)
{
    return slc_buffer_kind_name((slc_buffer_kind)kind);
}

/* Allocates as many elements as the array has; counts must fit into 31 bits. */
static sluice_status room_for(const slc_json_place *at, const json_t *array, size_t size, void *out, uint32_t *count)
{
    size_t length = json_array_size(array);
    if (length >= INT32_MAX) return slc_json_fault(at, "%zu are too many", length);
    void *room = calloc(length + 1, size);
    if (!room) return slc_error(SLUICE_ERR_MEMORY, "%zu elements of a plan", length);
    *(void **)out = room;
    *count = (uint32_t)length;
    return SLUICE_OK;
}

/* ---- Choices ---- */

static sluice_status read_strategies(const reader *r)
{
    slc_json_place at = {&r->top, "strategies", 0};
    const slc_job *job = r->job;
    for (uint32_t u = 0; u < job->unit_count; u++) {
        slc_json_place place = {&at, job->units[u].name, 0};
        const json_t *value = json_object_get(r->row.strategies, job->units[u].name);
        const char *name = json_string_value(value);
        if (!value) return slc_json_fault(&place, "is missing; give one of " SLC_STRATEGY_NAMES(", "));
        if (!name || !slc_strategy_parse(name, &r->plan->strategies[u])) {
            char shown[SLC_JSON_SHOWN_BYTES];
            slc_json_show(value, shown);
            return slc_json_fault(&place, "%s is no strategy; give one of " SLC_STRATEGY_NAMES(", "), shown);
        }
    }
    if (json_object_size(r->row.strategies) != job->unit_count)
        return slc_json_fault(&at, "there are %zu of them, the job has %u units", json_object_size(r->row.strategies),
                              job->unit_count);
    return SLUICE_OK;
}

/* Reads which layers recompute. They must be named in forward order. */
static sluice_status read_recompute(const reader *r)
{
    slc_json_place list = {&r->top, "recompute", 0};
    const slc_job *job = r->job;
    uint32_t layer = 0;
    for (size_t i = 0; i < json_array_size(r->row.recompute); i++) {
        slc_json_place at = {&list, NULL, i};
        const char *name;
        sluice_status status = slc_json_value(&at, json_array_get(r->row.recompute, i), SLC_JSON_NAME, &name);
        if (status) return status;
        while (layer < job->layer_count && strcmp(job->layers[layer], name)) layer++;
        if (layer == job->layer_count)
            return slc_json_fault(&at, "\"%s\" is no layer, or named again or too late; keep the forward order", name);
        if (!job->can_recompute || !job->can_recompute[layer])
            return slc_json_fault(&at, "layer \"%s\" cannot run its forward again", name);
        r->plan->recompute[layer++] = true;
    }
    return SLUICE_OK;
}

static sluice_status read_choices(reader *r)
{
    slc_plan *plan = r->plan;
    plan->unit_count = r->job->unit_count;
    plan->layer_count = r->job->layer_count;
    plan->arena_bytes = r->row.arena_bytes;
    plan->lower_bound = r->row.lower_bound;
    plan->schedule = plan->owned_schedule = strdup(r->row.schedule);
    plan->strategies = calloc((size_t)plan->unit_count + 1, sizeof *plan->strategies);
    plan->recompute = calloc((size_t)plan->layer_count + 1, sizeof *plan->recompute);
    if (!plan->owned_schedule || !plan->strategies || !plan->recompute) return slc_error(SLUICE_ERR_MEMORY, "plan");
    sluice_status status = read_strategies(r);
    return status ? status : read_recompute(r);
}

/* ---- Buffers ---- */

/* The bound on buffer indices for this kind: the number of windows (or more), states, local arrays, activations or
 * workspaces. */
static uint32_t indices_of(const slc_job *job, slc_buffer_kind kind)
{
    switch (kind) {
    case SLC_BUFFER_GATHERED: return 3 * slc_job_slots(job);
    case SLC_BUFFER_STATE: return job->states;
    case SLC_BUFFER_LOCAL: return job->local_arrays;
    case SLC_BUFFER_ACTIVATION: return job->activation_count;
    case SLC_BUFFER_WORKSPACE: return job->workspace_count;
    default: return 1;
    }
}

static sluice_status read_buffers(reader *r)
{
    slc_json_place list = {&r->top, "buffers", 0};
    slc_plan *plan = r->plan;
    sluice_status status = room_for(&list, r->row.buffers, sizeof *plan->buffers, &plan->buffers, &plan->buffer_count);
    for (uint32_t b = 0; !status && b < plan->buffer_count; b++) {
        cells c = cells_begin(&list, r->row.buffers, b, 5, 0, "kind, unit, index, bytes, offset");
        slc_buffer *buffer = &plan->buffers[b];
        buffer->kind = (slc_buffer_kind)cell_kind(&c, buffer_kind, SLC_BUFFER_KINDS);
        buffer->unit = cell_unit(&c, r->job);
        buffer->index = cell_index(&c, indices_of(r->job, buffer->kind));
        buffer->bytes = cell_number(&c, plan->arena_bytes);
        buffer->offset = cell_number(&c, plan->arena_bytes - buffer->bytes);
        status = c.status;
    }
    return status;
}

static sluice_status read_resident(reader *r)
{
    slc_json_place list = {&r->top, "resident", 0};
    slc_plan *plan = r->plan;
    sluice_status status = room_for(&list, r->row.resident, sizeof *plan->statics, &plan->statics, &plan->static_count);
    cells c = {.at = list, .row = r->row.resident, .status = status};
    for (uint32_t s = 0; !c.status && s < plan->static_count; s++) {
        uint32_t buffer = cell_index(&c, plan->buffer_count);
        plan->statics[s].buffer = buffer;
        plan->statics[s].end_byte = c.status ? 0 : plan->buffers[buffer].bytes;
    }
    return c.status;
}

/* ---- Programs ---- */

enum { WAITS = 8 }; /* index of the waits' cell in an item's row */

static sluice_status read_after(const slc_json_place *row, const json_t *list, const slc_program *program, uint32_t i,
                                slc_item *item)
{
    slc_json_place at = {row, NULL, WAITS};
    sluice_status status = slc_json_value(&at, list, SLC_JSON_ARRAY, &list);
    if (!status && json_array_size(list) > 2 * (size_t)program->item_count)
        status = slc_json_fault(&at, "waits for more than there is");
    if (!status) status = room_for(&at, list, sizeof *item->after, &item->after, &item->after_count);
    for (uint32_t a = 0; !status && a < item->after_count; a++) {
        const json_t *cell = json_array_get(list, a);
        json_int_t number = json_is_integer(cell) ? json_integer_value(cell) : INT64_MAX;
        slc_json_place place = {&at, NULL, a};
        if (number >= (json_int_t)i || number < -(json_int_t)program->item_count)
            status = slc_json_fault(&place, "give the number of an earlier item, or -1 minus that of one of the pass "
                                            "before");
        else
            item->after[a] = (slc_after){(uint32_t)(number < 0 ? -1 - number : number), number < 0};
    }
    return status;
}

/* Returns the bound on an item's index: windows are fewer than slots; a slot of a stage has the number of its task, and
 * a message that of its channel. */
static uint32_t index_limit(const slc_job *job)
{
    const uint32_t slots = slc_job_slots(job);
    return job->stage_slots ? slots * job->micro_batches + SLC_STAGE_CHANNELS_MAX : slots;
}

static sluice_status read_item(const reader *r, const slc_json_place *list, const json_t *items,
                               const slc_program *program, uint32_t i)
{
    cells c = cells_begin(list, items, i, WAITS + 1, 1,
                          "kind, late, micro-batch, slot, unit, index, first block, blocks, [waits], on compute");
    const slc_job *job = r->job;
    slc_item *item = &program->items[i];
    item->kind = (slc_item_kind)cell_kind(&c, item_kind, SLC_ITEM_KINDS);
    item->late = cell_index(&c, 2);
    item->micro_batch = cell_index(&c, job->micro_batches);
    item->slot = cell_index(&c, slc_job_slots(job));
    item->unit = cell_unit(&c, job);
    uint64_t blocks = item->unit == SLC_NONE ? 0 : slc_unit_blocks(&job->units[item->unit]);
    item->index = cell_index(&c, index_limit(job));
    item->first_block = cell_number(&c, blocks);
    item->block_count = cell_number(&c, blocks - item->first_block);
    sluice_status status = c.status ? c.status : read_after(&c.at, next_cell(&c), program, i, item);
    if (!status && c.next < json_array_size(c.row)) item->on_compute = cell_index(&c, 2);
    return status ? status : c.status;
}

static sluice_status read_claims(const reader *r, const slc_json_place *at, const json_t *claims, slc_program *program)
{
    slc_json_place list = {at, "claims", 0};
    sluice_status status = room_for(&list, claims, sizeof *program->claims, &program->claims, &program->claim_count);
    for (uint32_t i = 0; !status && i < program->claim_count; i++) {
        cells c = cells_begin(&list, claims, i, 5, 0, "buffer, first byte, end byte, from item, to item");
        slc_claim *claim = &program->claims[i];
        claim->buffer = cell_index(&c, r->plan->buffer_count);
        uint64_t bytes = c.status ? 0 : r->plan->buffers[claim->buffer].bytes;
        claim->first_byte = cell_number(&c, bytes);
        claim->end_byte = cell_number(&c, bytes);
        claim->from = cell_index(&c, program->item_count);
        claim->to = cell_index(&c, program->item_count);
        status = c.status;
        if (!status && claim->end_byte < claim->first_byte)
            status =
                slc_json_fault(&c.at, "ends at byte %llu, before its first one", (unsigned long long)claim->end_byte);
        if (!status && i && claim->from < program->claims[i - 1].from)
            status = slc_json_fault(&c.at, "begins before the claim before it; sort them by the items that claim");
    }
    return status;
}

static sluice_status read_program(const reader *r, const char *key, const json_t *object, slc_program *program)
{
    slc_json_place at = {&r->top, key, 0}, list = {&at, "items", 0};
    program_row row;
    sluice_status status = SLC_JSON_MEMBERS(&at, object, program_fields, &row);
    if (!status) status = room_for(&list, row.items, sizeof *program->items, &program->items, &program->item_count);
    for (uint32_t i = 0; !status && i < program->item_count; i++) status = read_item(r, &list, row.items, program, i);
    return status ? status : read_claims(r, &at, row.claims, program);
}

/* ---- All together ---- */

static sluice_status read_all(reader *r, const json_t *document)
{
    slc_json_place job = {&r->top, "job", 0};
    sluice_status status = SLC_JSON_MEMBERS(&r->top, document, plan_fields, &r->row);
    if (!status) status = slc_plan_job_check(&job, r->job, r->row.job);
    if (!status) status = read_choices(r);
    if (!status) status = read_buffers(r);
    if (!status) status = read_resident(r);
    if (!status) status = read_program(r, "train", r->row.train, &r->plan->train);
    if (!status) status = read_program(r, "evaluate", r->row.evaluate, &r->plan->evaluate);
    return status ? status : slc_plan_validate(r->job, r->plan);
}

sluice_status slc_plan_json_get(const slc_json_place *top, const slc_job *job, const json_t *object, slc_plan **out)
{
    reader r = {.top = *top, .job = job, .plan = calloc(1, sizeof *r.plan)};
    sluice_status status = r.plan ? read_all(&r, object) : slc_error(SLUICE_ERR_MEMORY, "plan");
    if (status) {
        slc_plan_destroy(r.plan);
        return status;
    }
    *out = r.plan;
    return SLUICE_OK;
}

sluice_status slc_plan_from_json(const slc_job *job, const char *text, size_t length, slc_plan **out)
{
    const slc_json_place top = {0}, stages = {&top, "stages", 0};
    json_t *document;
    sluice_status status = slc_json_parse(text, length, SLC_PLAN_VERSION, SLC_PLAN_VERSION_STAGES, &document);
    if (status) return status;
    if (json_integer_value(json_object_get(document, "version")) == SLC_PLAN_VERSION_STAGES)
        status = slc_json_fault(&stages,
                                "a plan of a pipeline's stages; sluice sim and trace read it, and sluice train with "
                                "--pipeline P");
    else
        status = slc_plan_json_get(&top, job, document, out);
    json_decref(document);
    return status;
}

/* Returns the bytes of the base block, in fp32. Units of rows do not tell it: they are one block each, whatever the
 * others have. */
static uint64_t block_of_units(const json_t *units)
{
    size_t i;
    json_t *unit;
    json_array_foreach (units, i, unit)
        if (!json_object_get(unit, "rows"))
            return 4 * (uint64_t)json_integer_value(json_object_get(unit, "block_elements"));
    return 0;
}

uint64_t slc_plan_block_bytes(const char *path)
{
    char *text;
    size_t length;
    json_t *document;
    if (slc_json_file_read(path, &text, &length)) return 0;
    uint64_t bytes = 0;
    if (!slc_json_parse(text, length, SLC_PLAN_VERSION, SLC_PLAN_VERSION, &document)) {
        bytes = block_of_units(json_object_get(json_object_get(document, "job"), "units"));
        json_decref(document);
    }
    free(text);
    return bytes;
}

sluice_status slc_plan_read(const slc_job *job, const char *path, slc_plan **out)
{
    char *text;
    size_t length;
    sluice_status status = slc_json_file_read(path, &text, &length);
    if (status) return status;
    status = slc_error_context(slc_plan_from_json(job, text, length, out), "plan %s", path);
    free(text);
    return status;
}
