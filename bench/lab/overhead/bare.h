/* Data parallelism by hand, as by somebody who writes this one loop and nothing else: what a rank does under strategy
 * dp and schedule serial. After each backward the layer's gradients are summed and its parameters updated, then ranks
 * agree on whether a gradient was NaN; there are no claims, no checks and no measuring. The weights equal the engine's
 * to the bit. */
#pragma once

#include "bench/lab/overhead/model.h"
#include "lib/comm/comm.h"
#include "lib/plan/plan.h"

typedef struct slc_bare slc_bare;

/* Makes memory and attaches it; everything is zero. Collective. `job` is the engine's for the same model; it, `model`
 * and `optimizer` must outlive the result, and nothing else may be attached meanwhile. The caller closes *out. Errors:
 * MEMORY, those of lib/comm. */
sluice_status slc_bare_open(sluice_world *world, slc_overhead_model *model, slc_overhead_optimizer *optimizer,
                            const slc_job *job, slc_bare **out);
sluice_status slc_bare_step(slc_bare *bare, double learning_rate);
uint64_t slc_bare_hash(const slc_bare *bare); /* hash of the owned weights */
void slc_bare_close(slc_bare *bare);          /* NULL is allowed */
