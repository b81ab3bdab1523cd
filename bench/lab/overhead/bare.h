/* A plan carried out by hand, as somebody would who knows this one plan and nothing else: its operations with their
 * waits, worked out once, handed to lib/comm step after step; optimizer kernels called on fixed ranges. No claims, no
 * checks, no measuring. The weights are those of the engine, to the bit. */
#ifndef SLC_BENCH_OVERHEAD_BARE_H
#define SLC_BENCH_OVERHEAD_BARE_H

#include "bench/lab/overhead/model.h"
#include "lib/comm/comm.h"
#include "lib/plan/plan.h"

typedef enum {
    SLC_BARE_SAME, /* all that the engine has carried out: the plan's operations, gradients looked at for NaN, agreement
                    */
    SLC_BARE_PLAIN, /* collectives, updates and compute only: nobody looks for NaN */
    SLC_BARE_LOOSE  /* PLAIN without gates between the two lanes: all compute, then all operations */
} slc_bare_kind;

typedef struct slc_bare slc_bare;

/* Lays memory out as the plan does and attaches it; everything is zero. Collective. `job` (one micro-batch, at most
 * 1024 operations), `plan`, `model` and `optimizer` must outlive it; nothing else may be attached meanwhile. Errors:
 * ARGUMENT, MEMORY, of lib/comm. */
sluice_status slc_bare_open(sluice_world *world, slc_overhead_model *model, slc_overhead_optimizer *optimizer,
                            const slc_job *job, const slc_plan *plan, slc_bare_kind kind, slc_bare **out);
sluice_status slc_bare_step(slc_bare *bare, double learning_rate);
sluice_status slc_bare_sync(slc_bare *bare);  /* everything applied, what is late of the last step too */
uint64_t slc_bare_hash(const slc_bare *bare); /* of the owned weights */
void slc_bare_close(slc_bare *bare);          /* NULL is allowed */

#endif
