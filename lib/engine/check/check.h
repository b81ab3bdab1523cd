/* SLUICE_ENGINE_CHECK: mistakes that would silently give wrong results become an error with a name, or NaN at once.
 *
 * Memory that nobody holds is filled with NaN, in the arena and in what the binary gets. The binary gets memory of its
 * own instead of the plan's: values and gradients are copies that are lent for one slot, at another address in the same
 * slot of the next micro-batch; activations and workspaces move at the end of every step, as a re-plan may move them. A
 * write where nobody holds memory, or beyond a buffer's end, is found when that memory is used next. Calls and their
 * options, and what was written to parameters, are compared across ranks.
 *
 * The check costs copies, scans and memory outside of the budget, and changes no bit of the weights. Private to
 * lib/engine. */
#pragma once

#include "lib/device/device.h"
#include "lib/plan/plan.h"

#include <sluice/runtime.h>

typedef struct slc_check slc_check;

/* *out stays NULL if the setting is off. Errors: ARGUMENT (the setting), UNSUPPORTED (on this device), MEMORY. */
sluice_status slc_check_create(const slc_device *device, slc_check **out);
void slc_check_destroy(slc_check *check); /* NULL is allowed */

/* The calls below need rt->check, but for those that say so. */

/* ---- memory.c ---- */
/* Called when the job is made: allocates the memory. Errors: MEMORY. Does nothing without rt->check. */
sluice_status slc_check_commit(sluice_runtime *rt);
/* Called when a plan has been placed: fills free memory with NaN, puts activations and workspaces where the check has
 * them. */
void slc_check_place(sluice_runtime *rt);
/* Called when all lives of a step are over. Errors: ORDER (something was written outside of its life). Does nothing
 * without rt->check. */
sluice_status slc_check_lives(const sluice_runtime *rt);
/* Moves activations and workspaces, if no re-plan has just done it. Does nothing without rt->check. */
void slc_check_move(sluice_runtime *rt);
/* Called when a claim has just been made, or is about to end, on the thread that runs the item. Errors: ORDER. */
sluice_status slc_check_claim(sluice_runtime *rt, const slc_claim *claim, bool begins);
/* Fills memory that will be written before it is read with NaN. */
void slc_check_fill(void *memory, uint64_t bytes);

/* begin opens a slot, of a micro-batch that the step runs, for lending; end takes back what was lent. Errors: ORDER.
 * They do nothing without rt->check. */
sluice_status slc_check_slot_begin(sluice_runtime *rt, const slc_item *slot, uint32_t micro_batch);
sluice_status slc_check_slot_end(sluice_runtime *rt);
/* Lends, until the slot ends, a copy of a parameter's value or gradient, which lies at `memory`. */
void *slc_check_lend(sluice_param *param, bool gradient, void *memory, uint64_t bytes);

/* ---- calls.c ---- */
/* Checks that every rank makes this call, with these options (NULL: none), and has written the same. Collective.
 * Errors: MISMATCH names the difference and the rank. Does nothing without rt->check. */
sluice_status slc_check_call(sluice_runtime *rt, const char *call, const sluice_param *param,
                             const sluice_step_options *options);
/* Notes that this rank has written elements of a parameter, of its values (`state` NULL) or a state. */
void slc_check_written(sluice_param *param, const char *state, uint64_t first, uint64_t count, const float *src);

/* ---- The data of both ---- */

typedef struct {
    const sluice_param *param;
    bool gradient;
    unsigned char *copy;
    void *original;
    uint64_t bytes;
} slc_lent;

/* Memory for one slot's copies, values first and then gradients; NaN but for what is lent. */
typedef struct {
    unsigned char *base;
    uint64_t used[2]; /* of values, of gradients */
    slc_lent *lent;
    uint32_t count;
} slc_lending;

/* Everything that a rank has written of a parameter so far. */
typedef struct {
    uint64_t hash, writes;
} slc_written;

struct slc_check {
    slc_lending lendings[2];
    uint64_t value_bytes, gradient_bytes, lent_most; /* the most that a layer needs */
    uint32_t runs;                                   /* passes that have begun */
    uint32_t now;                                    /* which of lendings the slot uses */

    unsigned char *lasting[2]; /* activations, then the regions of workspaces, each followed by a gap */
    uint64_t lasting_bytes, *activation_at, *region_at;
    uint32_t lasting_now;

    slc_written *written; /* of each parameter */
};
