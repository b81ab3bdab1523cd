/* A split parameter's look-up on this rank. tests/engine/engine_rows_test.c covers this file. */
#include "lib/engine/rows/look_up.h"

#include "lib/base/status.h"
#include "lib/engine/model/buffers.h"
#include "lib/engine/runtime.h"
#include "lib/kernels/reduce/reduce.h"

#include <stdlib.h>
#include <string.h>

sluice_status slc_look_up_create(sluice_runtime *rt, uint32_t u)
{
    rt->units[u].look_up = calloc(1, sizeof *rt->units[u].look_up);
    return rt->units[u].look_up ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "unit \"%s\"", rt->job.units[u].name);
}

void slc_look_up_destroy(slc_look_up *look_up)
{
    free(look_up);
}

/* The lists of all ranks lie one after the other from *lists on, which advances to their end. */
static slc_rows place_lists(const sluice_runtime *rt, const slc_unit *unit, uint64_t most, unsigned char **lists,
                            slc_row_list **own)
{
    uint64_t bytes = slc_row_list_bytes(most);
    slc_rows rows = {unit->row_elements, unit->row_count, most, *lists};
    *own = (slc_row_list *)(void *)(*lists + bytes * (uint64_t)rt->rank);
    *lists += bytes * (uint64_t)rt->size;
    return rows;
}

void slc_look_up_locate(sluice_runtime *rt, uint32_t u)
{
    const slc_unit *unit = &rt->job.units[u];
    slc_look_up *look_up = rt->units[u].look_up;
    unsigned char *lists = slc_engine_buffer(rt, SLC_BUFFER_ROW_LISTS, u, 0);
    look_up->table = place_lists(rt, unit, unit->most_rows, &lists, &look_up->table_list);
    look_up->sum = place_lists(rt, unit, slc_reduced_rows(&rt->job, unit), &lists, &look_up->sum_list);
    look_up->marks = (slc_row_mark *)(void *)lists;
    look_up->table_list->count = look_up->sum_list->count = 0;
    memset(look_up->marks, 0, slc_row_marks_bytes(unit->row_count));
}

bool slc_look_up_set(slc_look_up *look_up, const int32_t *rows, uint64_t count, int32_t *places)
{
    const slc_rows *table = &look_up->table;
    return slc_row_list_make(look_up->marks, table->row_count, rows, count, table->most, look_up->table_list, places);
}

/* ---- Gradients ---- */

static uint64_t row_bytes(const sluice_runtime *rt, uint32_t u)
{
    return sluice_dtype_bytes(rt->units[u].gradient_dtype) * rt->job.units[u].row_elements;
}

/* Returns the rows that the reduction reads: those added up over micro-batches, or else the gradient itself. */
static unsigned char *sum_of(const sluice_runtime *rt, uint32_t u)
{
    uint64_t table = slc_adds_locally(&rt->job) ? rt->job.units[u].most_rows * row_bytes(rt, u) : 0;
    return (unsigned char *)rt->units[u].gradient + table;
}

sluice_status slc_look_up_begin_gradient(sluice_runtime *rt, uint32_t u)
{
    uint64_t rows = rt->units[u].look_up->table_list->count;
    return slc_fill_zero(&rt->compute, rt->units[u].gradient, rows * row_bytes(rt, u));
}

static uint32_t count_joined(const slc_row_list *a, const slc_row_list *b)
{
    uint32_t i = 0, j = 0, count = 0;
    for (; i < a->count && j < b->count; count++) {
        uint32_t row = a->rows[i] < b->rows[j] ? a->rows[i] : b->rows[j];
        i += a->rows[i] == row;
        j += b->rows[j] == row;
    }
    return count + (a->count - i) + (b->count - j);
}

/* Goes from the last row to the first, so that no row is overwritten before it has moved up. */
sluice_status slc_rows_add_to_sums(sluice_stream *stream, const slc_rows_merge *m)
{
    const slc_row_list *table = m->table;
    slc_row_list *sum = m->sum;
    const uint64_t bytes = m->elements * sluice_dtype_bytes(m->dtype);
    const unsigned char *rows = m->rows;
    unsigned char *sums = m->sums;
    uint32_t i = sum->count, j = table->count, at = count_joined(sum, table);
    sluice_status status = SLUICE_OK;
    sum->count = at;
    while (!status && j > 0) {
        uint32_t row = table->rows[j - 1];
        bool there = i > 0 && sum->rows[i - 1] >= row, adds = there && sum->rows[i - 1] == row;
        at--;
        if (there) i--;
        if (there && i < at) {
            sum->rows[at] = sum->rows[i];
            status = slc_copy(stream, sums + at * bytes, sums + i * bytes, bytes);
        }
        if (adds) {
            void *to = sums + at * bytes;
            const void *from = rows + --j * bytes;
            const slc_reduce_args add = {.count = m->elements,
                                         .sources = &from,
                                         .source_count = 1,
                                         .destination_count = 1,
                                         .destinations = &to,
                                         .scale = 1,
                                         .accumulate = true};
            if (!status) status = slc_reduce(stream, &add);
        } else if (!there) {
            sum->rows[at] = row;
            status = slc_copy(stream, sums + at * bytes, rows + --j * bytes, bytes);
        }
    }
    return status;
}

static sluice_status add_table_to_sum(sluice_runtime *rt, uint32_t u)
{
    const slc_look_up *look_up = rt->units[u].look_up;
    const slc_rows_merge merge = {.elements = rt->job.units[u].row_elements,
                                  .dtype = rt->units[u].gradient_dtype,
                                  .table = look_up->table_list,
                                  .rows = rt->units[u].gradient,
                                  .sum = look_up->sum_list,
                                  .sums = sum_of(rt, u)};
    return slc_rows_add_to_sums(&rt->compute, &merge);
}

sluice_status slc_look_up_end_gradient(sluice_runtime *rt, uint32_t u, uint32_t micro_batch)
{
    slc_look_up *look_up = rt->units[u].look_up;
    if (slc_adds_locally(&rt->job)) {
        if (!micro_batch) look_up->sum_list->count = 0;
        return add_table_to_sum(rt, u);
    }
    memcpy(look_up->sum_list, look_up->table_list, sizeof(slc_row_list) + 4 * (size_t)look_up->table_list->count);
    return SLUICE_OK;
}

/* ---- Operations, on blocks of the partner ---- */

slc_op slc_look_up_gather(const sluice_runtime *rt, const slc_item *item)
{
    const slc_unit_state *unit = &rt->units[item->unit];
    uint32_t partner = rt->job.units[item->unit].partner;
    const slc_unit *split = &rt->job.units[partner];
    const slc_unit_state *values = &rt->units[partner];
    return slc_gather_rows_op(
        &unit->look_up->table, values->dtype, split->elements, split->block_elements,
        values->shard ? values->shard : values->value, values->shard ? SLC_SHARD : SLC_WHOLE,
        unit->gathered[slc_gathered_number(&rt->job, &rt->job.units[item->unit], item->micro_batch, item->index)]);
}

slc_op slc_look_up_reduce(const sluice_runtime *rt, const slc_item *item, const slc_step_state *step)
{
    const slc_unit_state *unit = &rt->units[item->unit];
    uint32_t partner = rt->job.units[item->unit].partner;
    const slc_unit *split = &rt->job.units[partner];
    const slc_unit_state *sums = &rt->units[partner];
    return slc_reduce_rows_op(&unit->look_up->sum, unit->gradient_dtype, sums->reduced_dtype, split->elements,
                              split->block_elements, sum_of(rt, item->unit),
                              sums->reduced ? sums->reduced : sums->gradient, sums->reduced ? SLC_SHARD : SLC_WHOLE,
                              step->scale);
}
