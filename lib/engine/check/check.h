/* SLUICE_ENGINE_CHECK: what would be a wrong result without a word becomes an error with a name, or NaN at once.
 *
 * Memory that nobody holds is filled with NaN, in the arena and in what the binary gets. The binary
 * gets memory of its own instead of the plan's: values and gradients are copies that are lent for one slot, at another
 * address in the same slot of the next micro-batch; activations and workspaces move at the end of every step, as a
 * re-plan may move them. What is written where nobody holds memory, or behind a buffer's end, is found when that memory
 * is used next. Calls and their options, and what was written to parameters, are compared across ranks.
 *
 * It costs copies, scans and memory outside of the budget, and changes no bit of the weights. Private to lib/engine. */
#ifndef SLC_ENGINE_CHECK_H
#define SLC_ENGINE_CHECK_H

#include "lib/engine/runtime.h"

/* NULL where the setting is off. Errors: ARGUMENT (the setting), UNSUPPORTED (on this device), MEMORY. */
sluice_status slc_check_create(const slc_device *device, slc_check **out);
void slc_check_destroy(slc_check *check); /* NULL is allowed */

/* All that follows needs rt->check, but for the calls that say so. */

/* ---- check_memory.c ---- */
/* The job is made: takes the memory. Errors: MEMORY. Does nothing without rt->check. */
sluice_status slc_check_commit(sluice_runtime *rt);
/* A plan has been placed: free memory is NaN, activations and workspaces are where the check has them. */
void slc_check_place(sluice_runtime *rt);
/* All lives of a step are over. Errors: ORDER (what was written outside of its life). Does nothing without rt->check.
 */
sluice_status slc_check_lives(const sluice_runtime *rt);
/* Activations and workspaces move, where no re-plan has just done it. Does nothing without rt->check. */
void slc_check_move(sluice_runtime *rt);
/* A claim has just been made, or is about to end. Errors: ORDER. Any thread that runs the item. */
sluice_status slc_check_claim(sluice_runtime *rt, const slc_claim *claim, bool begins);
/* Memory that is written before it is read, filled with NaN. */
void slc_check_fill(void *memory, uint64_t bytes);

/* Opens a slot for lending, which slot_end ends: what is lent goes back. Errors: ORDER. Do nothing without rt->check.
 */
sluice_status slc_check_slot_begin(sluice_runtime *rt, const slc_item *slot);
sluice_status slc_check_slot_end(sluice_runtime *rt);
/* The copy of a parameter's value or gradient, which lies at `memory`, until the slot ends. */
void *slc_check_lend(sluice_param *param, bool gradient, void *memory, uint64_t bytes);

/* ---- check_calls.c ---- */
/* Collective: every rank makes this call, with these options (NULL: none), and has written the same. Errors: MISMATCH
 * names what differs and the rank. Does nothing without rt->check. */
sluice_status slc_check_call(sluice_runtime *rt, const char *call, const sluice_param *param,
                             const sluice_step_options *options);
/* This rank has written elements of a parameter, of its values (`state` NULL) or a state. */
void slc_check_written(sluice_param *param, const char *state, uint64_t first, uint64_t count, const float *src);

/* ---- What both keep ---- */

typedef struct {
    const sluice_param *param;
    bool gradient;
    unsigned char *copy;
    void *original;
    uint64_t bytes;
} slc_lent;

/* Memory for one slot's copies, values and then gradients; NaN but for what is lent. */
typedef struct {
    unsigned char *base;
    uint64_t used[2]; /* of values, of gradients */
    slc_lent *lent;
    uint32_t count;
} slc_lending;

/* What a rank has written of a parameter so far. */
typedef struct {
    uint64_t hash, writes;
} slc_written;

struct slc_check {
    slc_lending lendings[2];
    uint64_t value_bytes, gradient_bytes, lent_most; /* of the layer that has most */
    uint32_t runs;                                   /* passes that have begun */
    uint32_t now;                                    /* which of lendings the slot has */

    unsigned char *lasting[2]; /* activations, then the regions of workspaces, with a gap behind each */
    uint64_t lasting_bytes, *activation_at, *region_at;
    uint32_t lasting_now;

    slc_written *written; /* of each parameter */
};

#endif
