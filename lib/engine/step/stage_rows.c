/* tests/engine/pipeline_test.c covers this file. */
#include "lib/engine/step/stage_rows.h"

#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/engine/model/buffers.h"
#include "lib/engine/rows/look_up.h"
#include "lib/engine/runtime.h"
#include "lib/plan/roles.h"

#include <stdlib.h>

/* ---- Making ---- */

void slc_stage_rows_reserve(sluice_runtime *rt)
{
    for (uint32_t p = 0; p < rt->model.param_count; p++) {
        const sluice_param *param = rt->model.params[p];
        if (!param->row_elements) continue;
        rt->model.reserved_bytes += slc_row_list_bytes(param->most_rows) * rt->config.micro_batches +
                                    slc_row_marks_bytes(param->count / param->row_elements);
    }
}

static uint32_t find_channel(const sluice_runtime *rt, uint32_t which)
{
    const uint32_t number = 2 * (rt->stage.stages * rt->stage.now->cut.chunks - 1) + which;
    for (uint32_t c = 0; c < rt->job.channel_count; c++)
        if (rt->job.channels[c].number == number) return c;
    return SLC_NONE;
}

/* Finds the ROWS unit of the whole job; its partner has the table's parameter alone. */
static bool find_table(sluice_runtime *rt)
{
    const slc_stage *stage = &rt->stage;
    for (uint32_t u = 0; u < stage->whole.unit_count && !rt->stage.rows.whole; u++) {
        const slc_unit *unit = &stage->whole.units[u];
        if (!slc_looks_up(unit)) continue;
        rt->stage.rows.whole = unit;
        rt->stage.rows.param = stage->whole_units[unit->partner].params[0];
    }
    return rt->stage.rows.whole;
}

sluice_status slc_stage_rows_create(sluice_runtime *rt)
{
    slc_stage_rows *rows = &rt->stage.rows;
    if (!find_table(rt)) return SLUICE_OK;
    const sluice_param *param = rows->param;
    rows->looks_up = param->layer != SLC_NONE;
    rows->holds = param->unit != SLC_NONE;
    rows->unit = param->unit;
    rows->row_elements = param->row_elements;
    rows->row_count = param->count / param->row_elements;
    rows->most_rows = param->most_rows;
    rows->dtype = param->dtype;
    rows->gradient_dtype = slc_gradient_dtype(&rt->job, rows->whole);
    rows->places = slc_table_places_of(&rt->job, rows->whole);
    for (uint32_t which = 0; which < 2; which++) rows->channels[which] = find_channel(rt, which);
    rows->marks = calloc(1, slc_row_marks_bytes(rows->row_count));
    rows->lists = calloc(rt->config.micro_batches, slc_row_list_bytes(rows->most_rows));
    rows->none = calloc(1, sizeof *rows->none);
    rows->table = (slc_unit_state){.dtype = rows->dtype, .gradient_dtype = rows->gradient_dtype, .look_up = rows->none};
    return rows->marks && rows->lists && rows->none ? SLUICE_OK
                                                    : slc_error(SLUICE_ERR_MEMORY, "rows of \"%s\"", param->name);
}

void slc_stage_rows_locate(sluice_runtime *rt)
{
    slc_stage_rows *rows = &rt->stage.rows;
    if (!rows->holds) return;
    rows->memory = slc_engine_buffer(rt, SLC_BUFFER_SCRATCH, SLC_NONE, 0);
    rows->memory += slc_round_up(rt->stage.whole.scratch_bytes, 64);
    const uint64_t most = slc_reduced_rows(&rt->job, rows->whole);
    rows->sum = (slc_rows){rows->row_elements, rows->row_count, most, rows->memory + rows->places.lists};
    rows->sum_list =
        (slc_row_list *)(void *)(rows->memory + rows->places.lists + (uint64_t)rt->replica * slc_row_list_bytes(most));
    rows->sum_list->count = 0;
}

void slc_stage_rows_destroy(sluice_runtime *rt)
{
    slc_stage_rows *rows = &rt->stage.rows;
    free(rows->marks);
    free(rows->lists);
    free(rows->none);
    *rows = (slc_stage_rows){0};
}

/* ---- Lists ---- */

static slc_row_list *list_of(const slc_stage_rows *rows, uint32_t micro_batch)
{
    return (slc_row_list *)(void *)(rows->lists + micro_batch * slc_row_list_bytes(rows->most_rows));
}

bool slc_stage_rows_set(sluice_runtime *rt, const int32_t *numbers, uint64_t count, int32_t *places)
{
    const slc_stage_rows *rows = &rt->stage.rows;
    return slc_row_list_make(rows->marks, rows->row_count, numbers, count, rows->most_rows,
                             list_of(rows, rows->param->rows_set), places);
}

/* ---- Messages ---- */

bool slc_stage_rows_are(const sluice_runtime *rt, const slc_item *message)
{
    const slc_stage_rows *rows = &rt->stage.rows;
    return rows->param &&
           (message->index == rows->channels[SLC_ROWS] || message->index == rows->channels[SLC_ROW_GRADIENTS]);
}

bool slc_stage_rows_known(const sluice_runtime *rt, const slc_item *message)
{
    return !slc_stage_rows_are(rt, message) || rt->stage.rows.param->rows_set > message->micro_batch;
}

static bool are_gradients(const sluice_runtime *rt, const slc_item *message)
{
    return message->index == rt->stage.rows.channels[SLC_ROW_GRADIENTS];
}

/* Returns the place of a micro-batch's rows, or of their gradients, in the stage that looks them up. */
static void *place_of(const sluice_runtime *rt, uint32_t which, uint32_t micro_batch)
{
    const slc_stage *stage = &rt->stage;
    const uint32_t channel = stage->rows.channels[which];
    for (uint32_t i = 0; i < stage->carried_count[channel]; i++) {
        const uint32_t activation = stage->carried[channel][i];
        if (slc_turn_has(&rt->job.turns[activation], micro_batch)) return stage->places[activation];
    }
    return NULL;
}

/* Returns the place, in the holder's scratch, of rows that it sends, or of gradients that have come. */
static void *holder_place(const sluice_runtime *rt, uint32_t which)
{
    const slc_stage_rows *rows = &rt->stage.rows;
    return rows->memory + (which == SLC_ROWS ? 0 : rows->places.gradients);
}

void slc_stage_rows_fill(const sluice_runtime *rt, const slc_item *message, slc_channel_transfer *transfer)
{
    const slc_stage_rows *rows = &rt->stage.rows;
    const uint32_t which = are_gradients(rt, message) ? SLC_ROW_GRADIENTS : SLC_ROWS;
    const sluice_dtype dtype = which == SLC_ROWS ? rows->dtype : rows->gradient_dtype;
    transfer->bytes = list_of(rows, message->micro_batch)->count * rows->row_elements * sluice_dtype_bytes(dtype);
    transfer->data = rows->holds ? holder_place(rt, which) : place_of(rt, which, message->micro_batch);
    transfer->what = rows->param->name;
}

sluice_status slc_stage_rows_begin(sluice_runtime *rt, const slc_item *message)
{
    const slc_stage_rows *rows = &rt->stage.rows;
    if (!rows->holds || are_gradients(rt, message)) return SLUICE_OK;
    const slc_row_list *list = list_of(rows, message->micro_batch);
    const uint64_t bytes = rows->row_elements * sluice_dtype_bytes(rows->dtype);
    const unsigned char *values = rt->units[rows->unit].value;
    unsigned char *to = holder_place(rt, SLC_ROWS);
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < list->count; i++)
        status = slc_copy(&rt->updates, to + i * bytes, values + list->rows[i] * bytes, bytes);
    return status;
}

sluice_status slc_stage_rows_end(sluice_runtime *rt, const slc_item *message)
{
    const slc_stage_rows *rows = &rt->stage.rows;
    if (!rows->holds || !are_gradients(rt, message)) return SLUICE_OK;
    if (!message->micro_batch) rows->sum_list->count = 0;
    const slc_rows_merge merge = {.elements = rows->row_elements,
                                  .dtype = rows->gradient_dtype,
                                  .table = list_of(rows, message->micro_batch),
                                  .rows = holder_place(rt, SLC_ROW_GRADIENTS),
                                  .sum = rows->sum_list,
                                  .sums = rows->memory + rows->places.sums};
    return slc_rows_add_to_sums(&rt->updates, &merge);
}

/* ---- Slots ---- */

sluice_status slc_stage_rows_open(sluice_runtime *rt, const sluice_layer *layer, const slc_item *slot, bool gradients)
{
    slc_stage_rows *rows = &rt->stage.rows;
    if (!rows->param || !rows->looks_up || layer->index != rows->param->layer) return SLUICE_OK;
    if (!gradients) {
        rows->table.now = place_of(rt, SLC_ROWS, slot->micro_batch);
        return SLUICE_OK;
    }
    rows->table.gradient_now = place_of(rt, SLC_ROW_GRADIENTS, slot->micro_batch);
    return slc_fill_zero(&rt->compute, rows->table.gradient_now,
                         list_of(rows, slot->micro_batch)->count * rows->row_elements *
                             sluice_dtype_bytes(rows->gradient_dtype));
}

void slc_stage_rows_close(sluice_runtime *rt)
{
    rt->stage.rows.table.now = NULL;
    rt->stage.rows.table.gradient_now = NULL;
}

/* ---- The reduction ---- */

uint32_t slc_stage_rows_table(const sluice_runtime *rt)
{
    const slc_stage_rows *rows = &rt->stage.rows;
    return slc_is_stage(&rt->stage) && rows->param && rows->holds && rt->job.units[rows->unit].trainable ? rows->unit
                                                                                                         : SLC_NONE;
}

slc_op slc_stage_rows_reduce(const sluice_runtime *rt, const slc_step_state *step)
{
    const slc_stage_rows *rows = &rt->stage.rows;
    const slc_unit *unit = &rt->job.units[rows->unit];
    const slc_unit_state *table = &rt->units[rows->unit];
    return slc_reduce_rows_op(&rows->sum, rows->gradient_dtype, table->reduced_dtype, unit->elements,
                              unit->block_elements, rows->memory + rows->places.sums,
                              table->reduced ? table->reduced : table->gradient, table->reduced ? SLC_SHARD : SLC_WHOLE,
                              step->scale);
}
