/* Rows of a table between two stages of a pipeline: the stage that holds the table sends the rows of each micro-batch
 * to the one that looks them up, replica r to replica r, and gets their gradients back. Every rank knows which rows
 * these are, because every rank calls sluice_rows_set, for all micro-batches of a step before its first slot. The
 * holder adds gradients up over micro-batches, in their order; when the table's own gradient is reduced, its replicas
 * reduce these sums and add them to it, as a look-up without a pipeline does. Private to lib/engine. */
#pragma once

#include "lib/comm/channels.h"
#include "lib/engine/step/pass_state.h"

#include <sluice/runtime.h>

/* Counts what the lists of micro-batches take in the budget, before the job is made. */
void slc_stage_rows_reserve(sluice_runtime *rt);
/* Finds the table, once the job is the stage's, and makes lists. Errors: MEMORY. */
sluice_status slc_stage_rows_create(sluice_runtime *rt);
void slc_stage_rows_destroy(sluice_runtime *rt);
/* Finds the rows' memory in a plan that has just been placed. */
void slc_stage_rows_locate(sluice_runtime *rt);

/* Sets the rows of the next micro-batch of the step. False: there are too many. */
bool slc_stage_rows_set(sluice_runtime *rt, const int32_t *numbers, uint64_t count, int32_t *places);

/* Returns true if the message is one of rows, or of their gradients. */
bool slc_stage_rows_are(const sluice_runtime *rt, const slc_item *message);
/* False for a message of rows that are not known yet. */
bool slc_stage_rows_known(const sluice_runtime *rt, const slc_item *message);
/* Says what to transfer, and from or to where. */
void slc_stage_rows_fill(const sluice_runtime *rt, const slc_item *message, slc_channel_transfer *transfer);
/* Called when such a message starts, and when it is complete. */
sluice_status slc_stage_rows_begin(sluice_runtime *rt, const slc_item *message);
sluice_status slc_stage_rows_end(sluice_runtime *rt, const slc_item *message);

/* Around a slot: makes the addresses of the look-up's layer valid, or not. */
sluice_status slc_stage_rows_open(sluice_runtime *rt, const sluice_layer *layer, const slc_item *slot, bool gradients);
void slc_stage_rows_close(sluice_runtime *rt);

/* The unit of the table if this rank holds it and trains it, else SLC_NONE. The reduction of its gradient is followed
 * by that of the rows' gradients, which the operation below adds to it: on all blocks, once a step. The caller sets
 * hooks and waits. */
uint32_t slc_stage_rows_table(const sluice_runtime *rt);
slc_op slc_stage_rows_reduce(const sluice_runtime *rt, const slc_step_state *step);
