/* Parameters that a layer reads by rows. Those that are split have ROWS units, at run time: the table of rows that a
 * layer looks up in a split parameter, its gradient, and the lists that say which rows they are. Private to lib/engine.
 *
 * There are two lists, because a reduction may still read its own while the caller sets the next micro-batch's rows.
 * The table's list is read by gathers and written by slc_look_up_set. The sum's list is read by the reduction and
 * written at the end of backward, when the reduction before it is long over (this micro-batch's gather has waited for
 * it). The gradient buffer begins with a table for the micro-batch that runs, with the same rows as the table of
 * values; if micro-batches add up, the sum of their tables follows. */
#pragma once

#include "lib/comm/comm.h"
#include "lib/engine/rows/lists.h"
#include "lib/engine/step_state.h"
#include "lib/plan/plan.h"

#include <sluice/runtime.h>

typedef struct slc_look_up {
    slc_rows table, sum; /* as collectives know the lists */
    slc_row_list *table_list, *sum_list;
    slc_row_mark *marks;
} slc_look_up;

/* Fills look_up of a ROWS unit that has just been made. Errors: MEMORY. */
sluice_status slc_look_up_create(sluice_runtime *rt, uint32_t unit);
void slc_look_up_destroy(slc_look_up *look_up); /* NULL is allowed */

/* Finds the lists in a plan that has just been placed; they are made anew. */
void slc_look_up_locate(sluice_runtime *rt, uint32_t unit);

/* Sets the rows of the next micro-batch, all of which exist; otherwise as slc_row_list_make. */
bool slc_look_up_set(slc_look_up *look_up, const int32_t *rows, uint64_t count, int32_t *places);

/* These two bracket a backward slot of the look-up's layer: begin zeroes the table's gradient, end hands it to the
 * reduction. */
sluice_status slc_look_up_begin_gradient(sluice_runtime *rt, uint32_t unit);
sluice_status slc_look_up_end_gradient(sluice_runtime *rt, uint32_t unit, uint32_t micro_batch);

/* Gradients of rows that are added to sums of rows: `sum` becomes the list of the rows of both, and `sums`, which has
 * room for them, is laid out anew. */
typedef struct {
    uint64_t elements;  /* of a row */
    sluice_dtype dtype; /* of both: fp32 */
    const slc_row_list *table;
    const void *rows;
    slc_row_list *sum;
    void *sums;
} slc_rows_merge;
sluice_status slc_rows_add_to_sums(sluice_stream *stream, const slc_rows_merge *merge);

/* The operations of a ROWS unit. The caller sets their hooks and waits. */
slc_op slc_look_up_gather(const sluice_runtime *rt, const slc_item *item);
slc_op slc_look_up_reduce(const sluice_runtime *rt, const slc_item *item, const slc_step_state *step);

/* ---- rows.c: whether the rows of such parameters are known yet, split or not ---- */
/* Called when units are made. Errors: MEMORY. */
sluice_status slc_look_ups_commit(sluice_runtime *rt);
/* Called when a step begins, or the next pass of an evaluation: no rows are known. */
void slc_look_ups_forget(sluice_runtime *rt);
/* ORDER unless the rows of a micro-batch that begins are known. */
sluice_status slc_look_ups_check(const sluice_runtime *rt, uint32_t micro_batch);
/* Returns how many of `count` operations may be submitted: those before the first gather whose rows are not known yet.
 */
uint32_t slc_look_ups_known(const sluice_runtime *rt, const slc_program *program, const uint32_t *operations,
                            uint32_t count);
