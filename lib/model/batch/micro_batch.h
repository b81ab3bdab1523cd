/* A micro-batch on its way through a model: the arrays that it brings, and the losses that come back. Copies to and
 * from the device may be done after the call that queued them has returned, so what they read and write is memory of
 * the model's own (slc_batch_memory), of which a device that works later has two, used in turn. Before one is used
 * again the host waits until the copies are done. */
#pragma once

#include "lib/model/state.h"

/* Makes the memory, once the model is registered; slc_micro_batch_destroy frees it, after a failure too. Errors:
 * MEMORY, those of slc_device_open and slc_event_create. */
sluice_status slc_micro_batch_create(sluice_model *m);
void slc_micro_batch_destroy(sluice_model *m);
/* Counts this memory in the runtime's budget, before commit, if the budget is of the host's memory. */
sluice_status slc_micro_batch_reserve(sluice_model *m);

/* Says whether the model can take it. Errors: ARGUMENT. */
sluice_status slc_micro_batch_check(const sluice_model *m, const sluice_batch *batch);
/* ARGUMENT for one that is longer than the shape of the step. */
sluice_status slc_micro_batch_check_shape(const sluice_model *model, const sluice_batch *batch);

/* Takes the next memory, waits until it is free, keeps there what the caller may free when the call returns, and sets
 * m->memory, m->in, m->padding_place and the sizes of the micro-batch. Tells the runtime which rows of a shared token
 * table are looked up. Errors: those of sluice_rows_set. */
sluice_status slc_micro_batch_take(sluice_model *m, const sluice_batch *batch);
/* Makes the micro-batch that was taken as number `number` of those that the memories hold the current one again. */
void slc_micro_batch_return_to(sluice_model *m, uint32_t number);
/* Lets the head take only the rows that have targets, where these are fewer. For training. */
void slc_micro_batch_pick(sluice_model *m);
/* Tells the runtime if the current micro-batch has a shape that none has had; after it has been taken, and picked if it
 * trains. */
sluice_status slc_micro_batch_expect_launches(sluice_model *m, bool trains);
/* Notes that the last copy from or to m->memory is queued. */
sluice_status slc_micro_batch_queued(sluice_model *m);
/* Waits for these copies. */
sluice_status slc_micro_batch_wait(slc_batch_memory *memory);

/* ---- Losses ---- */

/* The loss of the micro-batch, whose copies are done: 0 without a target. */
double slc_micro_batch_loss(const slc_batch_memory *memory);
/* Adds the losses of all micro-batches that went through backward to m->losses, in their order; waits for them. */
sluice_status slc_losses_collect(sluice_model *m);
/* Begins a new mean. */
void slc_losses_forget(sluice_model *m);
