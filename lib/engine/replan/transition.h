/* From one plan of a job to another: what a rank keeps of values, masters and optimizer states moves to its new place
 * in the same arena, in place and to the bit; what the new plan holds whole and the old one did not is gathered
 * afterwards. Nothing but lists of a few bytes a block is allocated. Private to lib/engine. */
#ifndef SLC_ENGINE_TRANSITION_H
#define SLC_ENGINE_TRANSITION_H

#include "lib/plan/plan.h"

#include <stddef.h>

/* Bytes that lie at `from` and shall lie at `to`. */
typedef struct {
    uint64_t from, to, bytes;
} slc_move;

/* Carries all moves out inside base[0, bytes), host memory. Sources are disjoint, destinations are disjoint; each may
 * overlap any of the others. What no destination covers is undefined afterwards. `moves` is used up. */
void slc_moves_run(unsigned char *base, uint64_t bytes, slc_move *moves, size_t count);

/* A buffer of the new plan of which each rank has only its own part at first (whole layout). */
typedef struct {
    uint32_t unit;
    uint64_t offset;
    sluice_dtype dtype;
} slc_regather;

/* Bytes that only the new plan keeps: zero at first. */
typedef struct {
    uint64_t offset, bytes;
} slc_zeroed;

typedef struct {
    slc_move *moves;
    size_t move_count;
    slc_regather *gathers;
    size_t gather_count;
    slc_zeroed *zeroed;
    size_t zeroed_count;
} slc_transition;

/* What `rank` must do. Both plans are of `job`, in any of its phases: what a unit keeps for compressed exchanges moves
 * where it is onebit in both plans, as it is on this rank. Errors: MEMORY; FORMAT (a plan lacks a resident buffer). */
sluice_status slc_transition_init(const slc_job *job, const slc_plan *from, const slc_plan *to, uint32_t rank,
                                  slc_transition *out);
void slc_transition_fini(slc_transition *transition);

#endif
