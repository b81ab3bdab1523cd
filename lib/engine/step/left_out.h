/* Layers that a step leaves out, and what only they use. Private to lib/engine. */
#pragma once

#include "lib/engine/state.h"
#include "lib/plan/plan.h"

/* Makes memory for the layers that steps leave out, once for each of the two steps that may be under way, and for those
 * that steps draw. Errors: MEMORY. */
sluice_status slc_left_out_create(sluice_runtime *rt);
void slc_left_out_destroy(sluice_runtime *rt);

/* Refuses layers that cannot be left out, or drawn, and probabilities that are none. Errors: ARGUMENT, UNSUPPORTED. */
sluice_status slc_left_out_check(const sluice_runtime *rt, const sluice_step_options *options);
/* Takes over the layers of a step that begins, left out or drawn, and numbers the updates of all parameters. */
void slc_left_out_take(sluice_runtime *rt, slc_step_state *step, const sluice_step_options *options);
/* The step has been applied: counts what it left out. */
void slc_left_out_count(sluice_runtime *rt, const slc_step_state *step);

/* Returns true if all parameters of a unit are left out; then nothing of it is moved or updated. */
bool slc_left_out_unit(const sluice_runtime *rt, const slc_step_state *step, uint32_t unit);
/* Returns true if a slot or an operation is left out, with its micro-batch or with its layer or unit. */
bool slc_left_out_item(const sluice_runtime *rt, const slc_step_state *step, const slc_item *item);
