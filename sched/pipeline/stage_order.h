/* The order of a stage's step, and the plan that is made of it.
 *
 * A receive stands slc_pipeline_ahead tasks before the one that reads it, and a send after the task that follows the
 * one which made it, so memory for messages is in the packed figure too. */
#pragma once

#include "sched/order/order.h"
#include "sched/pipeline/stage_job.h"

/* Writes the stage's step: slots in the order of the schedule; after a unit's last gradient its reduction and its
 * update; at the end the agreement, updates that wait for it, and gathers of values. The caller frees it by
 * slc_order_fini. Errors: MEMORY. */
sluice_status slc_stage_order(const slc_stage_job *stage, slc_order *order);

/* Makes the stage's plan, which the caller destroys: its order with lifetimes, places and waits, validated by code that
 * shares nothing with this. It has no items for messages: they are in memory as slc_job.turns says. Errors: MEMORY;
 * FORMAT (a defect of ours). */
sluice_status slc_stage_plan(const slc_stage_job *stage, slc_plan **out);

/* Bytes that a rank of the stage needs, as packed, with what the binary reserves. Errors: MEMORY; FORMAT (a defect of
 * ours). */
sluice_status slc_stage_bytes(const slc_stage_job *stage, uint64_t *bytes);
