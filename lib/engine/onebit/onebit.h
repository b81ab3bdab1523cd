/* Units under the strategy onebit at run time: what their operations are. Private to lib/engine.
 *
 * A step has a mode (lib/optim/compressed.h), the same on every rank and for all onebit units. AVERAGE: their gradients
 * are reduced as dp's and the optimizer updates all of them; what compresses and exchanges does nothing. EXCHANGE: this
 * rank's own gradients, compressed. LOCAL: nothing travels. A skipped step (nan = skip) leaves everything as it was. */
#ifndef SLC_ENGINE_ONEBIT_H
#define SLC_ENGINE_ONEBIT_H

#include "lib/engine/runtime.h"

/* Of a trainable unit. */
typedef struct slc_onebit {
    slc_compress_group group; /* its tensors, fixed at commit */
    slc_residue *workers, *servers;
    void *packets, *results; /* from here on: only while the unit is onebit */
    float *local[SLC_LOCAL_MAX];
    float **parts[SLC_LOCAL_MAX]; /* of each tensor, in `local` */
    sluice_update *tensors;       /* of the operation that runs */
} slc_onebit;

/* For a unit whose parameters are placed; fills its exchange sizes. `fuses`: one shape for all. Errors: MEMORY. */
sluice_status slc_onebit_create(sluice_runtime *rt, uint32_t unit, bool fuses);
void slc_onebit_destroy(slc_onebit *onebit); /* NULL is allowed */

/* Finds the buffers of a onebit unit in a plan that has just been placed. */
void slc_onebit_locate(sluice_runtime *rt, uint32_t unit);

/* Of this rank's own gradients in onebit units, scaled as if they were averaged over one rank, before clipping. */
double slc_own_norm(const slc_step_state *step);

/* On the communication thread. `inspect` and `compress` note what is not finite for the agreement. */
sluice_status slc_onebit_inspect(sluice_runtime *rt, uint32_t unit, slc_step_state *step);
sluice_status slc_onebit_compress(sluice_runtime *rt, uint32_t unit, slc_step_state *step);
sluice_status slc_onebit_update(sluice_runtime *rt, uint32_t unit, const slc_step_state *step);

/* The exchange as an operation; its waits and hooks are the caller's. */
slc_op slc_onebit_exchange(const sluice_runtime *rt, uint32_t unit, const slc_step_state *step);

/* Zeroes the residues of all onebit units; when everything is complete. */
sluice_status slc_onebit_reset_errors(sluice_runtime *rt);

/* ---- onebit_state.c ---- */
/* A state of this rank's own, of a parameter in a onebit unit; errors are formed, not lazy, so with `data` only when
 * everything is complete. `data` NULL: the count alone. False: it has none of that name. */
bool slc_onebit_state(const sluice_param *param, const char *name, float **data, uint64_t *count);
/* Adds a name to a list of them in a message. */
void slc_append_name(char *names, size_t size, const char *name);
/* The names of those that it has now. Returns how many. */
enum { SLC_ONEBIT_STATES_MAX = 2 + SLC_LOCAL_MAX };
uint32_t slc_onebit_state_names(const sluice_param *param, const char *names[SLC_ONEBIT_STATES_MAX]);

#endif
