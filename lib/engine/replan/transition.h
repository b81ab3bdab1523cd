/* From one plan of a job to another. The values, masters and optimizer states that a rank keeps move to their new
 * places in the same arena, in place and to the bit. Arrays that the new plan holds whole and the old one did not are
 * gathered afterwards. Only lists of a few bytes per block are allocated. Private to lib/engine. */
#ifndef SLC_ENGINE_TRANSITION_H
#define SLC_ENGINE_TRANSITION_H

#include "lib/plan/plan.h"

#include <stddef.h>

/* Bytes that lie at `from` and shall lie at `to`. */
typedef struct {
    uint64_t from, to, bytes;
} slc_move;

/* Carries all moves out inside base[0, bytes), host memory. Sources are disjoint, destinations are disjoint; a source
 * may overlap any destination. Bytes that no destination covers are undefined afterwards. `moves` is used up. */
void slc_moves_run(unsigned char *base, uint64_t bytes, slc_move *moves, size_t count);

/* A buffer of the new plan of which each rank has only its own part at first (whole layout). */
typedef struct {
    uint32_t unit;
    uint64_t offset;
    sluice_dtype dtype;
} slc_regather;

/* Bytes that only the new plan keeps; they are zeroed. */
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

/* Lists what `rank` must do. Both plans are of `job`, in any of its phases. Arrays that a rank has for compressed
 * exchanges move where the unit is onebit in both plans. Errors: MEMORY; FORMAT (a plan lacks a resident buffer). */
sluice_status slc_transition_init(const slc_job *job, const slc_plan *from, const slc_plan *to, uint32_t rank,
                                  slc_transition *out);
void slc_transition_fini(slc_transition *transition);

#endif
