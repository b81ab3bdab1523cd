/* A plan carried out by hand, as by somebody who knows this one plan and nothing else: its operations and their waits
 * are worked out once and handed to lib/comm step after step; optimizer kernels are called on fixed ranges. Everything
 * that the engine carries out is carried out, the search of gradients for NaN and the agreement included, but there are
 * no claims, no checks and no measuring. The weights equal the engine's to the bit. */
#pragma once

#include "bench/lab/overhead/model.h"
#include "lib/comm/comm.h"
#include "lib/plan/plan.h"

typedef struct slc_bare slc_bare;

/* Lays memory out as the plan does and attaches it; everything is zero. Collective. `job` (one micro-batch, at most
 * 2040 operations), `plan`, `model` and `optimizer` must outlive the result, and nothing else may be attached
 * meanwhile. The caller closes *out. Errors: ARGUMENT, MEMORY, those of lib/comm. */
sluice_status slc_bare_open(sluice_world *world, slc_overhead_model *model, slc_overhead_optimizer *optimizer,
                            const slc_job *job, const slc_plan *plan, slc_bare **out);
sluice_status slc_bare_step(slc_bare *bare, double learning_rate);
sluice_status slc_bare_sync(slc_bare *bare);  /* applies everything, also the last step's late operations */
uint64_t slc_bare_hash(const slc_bare *bare); /* hash of the owned weights */
void slc_bare_close(slc_bare *bare);          /* NULL is allowed */
