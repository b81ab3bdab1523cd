/* ROWS units at run time: the table of rows that a layer looks up in a split parameter, its gradient, and the lists
 * that say which rows they are. Private to lib/engine.
 *
 * Two lists, for a reduction may still read its own while the caller sets the next micro-batch's rows: the table's,
 * which gathers read, written by slc_look_up_set; the sum's, which the reduction reads, written at backward's end, when
 * the reduction before it is long over (this micro-batch's gather has waited for it). Gradients: in front a table for
 * the micro-batch that runs, rows as in the table of values; where micro-batches add up, the sum of theirs behind it.
 */
#ifndef SLC_ENGINE_LOOK_UP_H
#define SLC_ENGINE_LOOK_UP_H

#include "lib/engine/rows/lists.h"
#include "lib/engine/runtime.h"

typedef struct slc_look_up {
    slc_rows table, sum; /* as collectives know the lists */
    slc_row_list *table_list, *sum_list;
    slc_row_mark *marks;
} slc_look_up;

/* Of a ROWS unit that has just been made: fills look_up. Errors: MEMORY. */
sluice_status slc_look_up_create(sluice_runtime *rt, uint32_t unit);
void slc_look_up_destroy(slc_look_up *look_up); /* NULL is allowed */

/* Finds the lists in a plan that has just been placed; they are made anew. */
void slc_look_up_locate(sluice_runtime *rt, uint32_t unit);

/* The rows of the micro-batch that comes next, all of them there; as slc_row_list_make. */
bool slc_look_up_set(slc_look_up *look_up, const int32_t *rows, uint64_t count, int32_t *places);

/* Of a backward slot of the look-up's layer: the table's gradient is zero; is what the reduction reads. */
sluice_status slc_look_up_begin_gradient(sluice_runtime *rt, uint32_t unit);
sluice_status slc_look_up_end_gradient(sluice_runtime *rt, uint32_t unit, uint32_t micro_batch);

/* Its operations, their hooks and waits apart. */
slc_op slc_look_up_gather(const sluice_runtime *rt, const slc_item *item);
slc_op slc_look_up_reduce(const sluice_runtime *rt, const slc_item *item, const slc_step_state *step);

#endif
