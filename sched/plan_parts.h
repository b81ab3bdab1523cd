/* The steps of slc_plan_make, one file each. Private to sched. */
#ifndef SLC_PLAN_PARTS_H
#define SLC_PLAN_PARTS_H

#include "lib/plan/plan.h"

/* Fills buffers and statics. Where a strategy's reduced gradient may not stay in the gradient's own place it gets a
 * buffer of its own: with each, always; with a barrier, for sdp and fsdp. */
sluice_status slc_plan_add_buffers(const slc_job *job, slc_plan *plan);
bool slc_needs_reduced(const slc_job *job, const slc_unit *unit, slc_strategy strategy);
bool slc_gradient_is_transient(slc_strategy strategy);

/* Fills the claims of one program from its order. */
sluice_status slc_plan_add_claims(const slc_job *job, slc_plan *plan, bool evaluate);

/* Fills `after` of every item: data, hazards of resident buffers, tickets. */
sluice_status slc_plan_add_waits(const slc_job *job, slc_plan *plan, bool slots_wait_for_all, bool evaluate);

/* Where things stand in a program: item numbers, SLC_NONE where there is none. */
uint32_t slc_find_slot(const slc_program *program, uint32_t micro_batch, uint32_t slot);
uint32_t slc_find_operation(const slc_program *program, slc_item_kind kind, uint32_t micro_batch, uint32_t unit,
                            uint32_t index);

#endif
