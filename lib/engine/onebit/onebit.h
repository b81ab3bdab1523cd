/* Units under the strategy onebit at run time, and their operations. Private to lib/engine.
 *
 * A step has a mode (lib/optim/compressed.h), the same on every rank and for all onebit units. AVERAGE: their gradients
 * are reduced as dp's and the optimizer updates all of them; operations that compress and exchange do nothing.
 * EXCHANGE: this rank's own gradients are exchanged, compressed. LOCAL: nothing travels. A skipped step (nan = skip)
 * leaves everything as it was. */
#pragma once

#include "lib/comm/comm.h"
#include "lib/engine/step_state.h"
#include "lib/kernels/compress/compress_group.h"
#include "lib/optim/compressed.h"

#include <sluice/runtime.h>

/* Tensors that are exchanged together. */
typedef struct {
    slc_compress_group group;
    slc_residue *workers, *servers;
    float **parts[SLC_LOCAL_MAX]; /* where each tensor begins in slc_onebit.local */
} slc_onebit_tensors;

typedef struct slc_onebit {
    slc_onebit_tensors all;     /* of the unit; the group is fixed at commit */
    slc_onebit_tensors kept[2]; /* what the two steps that may be under way keep of them; no group: all, or none */
    void *packets, *results;    /* these and the following are valid only while the unit is onebit */
    float *local[SLC_LOCAL_MAX];
    sluice_update *tensors; /* of the operation that runs */
} slc_onebit;

/* Called for a unit whose parameters have their places; fills its exchange sizes. `fuses`: one shape serves all
 * tensors. Errors: MEMORY. */
sluice_status slc_onebit_create(sluice_runtime *rt, uint32_t unit, bool fuses);
void slc_onebit_destroy(slc_onebit *onebit); /* NULL is allowed */

/* Finds the buffers of a onebit unit in a plan that has just been placed. */
void slc_onebit_locate(sluice_runtime *rt, uint32_t unit);

/* Takes over what a step that begins leaves out of units that layers share. Errors: MEMORY. */
sluice_status slc_onebit_keep(sluice_runtime *rt, const slc_step_state *step);

/* These run on the communication thread. `inspect` and `compress` note for the agreement what is not finite. */
sluice_status slc_onebit_inspect(sluice_runtime *rt, uint32_t unit, slc_step_state *step);
sluice_status slc_onebit_compress(sluice_runtime *rt, uint32_t unit, slc_step_state *step);
sluice_status slc_onebit_update(sluice_runtime *rt, uint32_t unit, const slc_step_state *step);

/* The exchange as an operation; its waits and hooks are the caller's. */
slc_op slc_onebit_exchange(const sluice_runtime *rt, uint32_t unit, const slc_step_state *step);

/* Zeroes the residues of all onebit units. Everything is complete. */
sluice_status slc_onebit_reset_errors(sluice_runtime *rt);

/* ---- arrays.c ---- */
/* Finds an array that this rank has for itself, of a parameter in a onebit unit. False: there is none of that name.
 * `data` NULL: only the count. With `data` everything must be complete, because errors are brought up to date. */
bool slc_onebit_state(const sluice_param *param, const char *name, float **data, uint64_t *count);
/* Adds a name to a list of them in a message. */
void slc_append_name(char *names, size_t size, const char *name);
/* The names of the arrays that a parameter has now. Returns how many. */
enum { SLC_ONEBIT_STATES_MAX = 2 + SLC_LOCAL_MAX };
uint32_t slc_onebit_state_names(const sluice_param *param, const char *names[SLC_ONEBIT_STATES_MAX]);
