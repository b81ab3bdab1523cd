/* Parameters that a layer reads by rows: whether their rows are known yet. Private to lib/engine. */
#ifndef SLC_ENGINE_ROWS_H
#define SLC_ENGINE_ROWS_H

#include "lib/plan/plan.h"

#include <sluice/runtime.h>

/* Called when units are made. Errors: MEMORY. */
sluice_status slc_look_ups_commit(sluice_runtime *rt);
/* Called when a step begins, or the next pass of an evaluation: no rows are known. */
void slc_look_ups_forget(sluice_runtime *rt);
/* ORDER unless the rows of a micro-batch that begins are known. */
sluice_status slc_look_ups_check(const sluice_runtime *rt, uint32_t micro_batch);
/* How many of `count` operations may be submitted: those before the first gather whose rows are not known. */
uint32_t slc_look_ups_known(const sluice_runtime *rt, const slc_program *program, const uint32_t *operations,
                            uint32_t count);

#endif
