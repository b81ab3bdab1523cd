/* From one plan of a job to another. The values, masters and optimizer states that a rank keeps move to their new
 * places in the same arena, in place and to the bit. Arrays that the new plan holds whole and the old one did not are
 * gathered afterwards. Only lists of a few bytes per block are allocated. Private to lib/engine. */
#pragma once

#include "lib/device/device.h"
#include "lib/plan/plan.h"

#include <stddef.h>

/* Bytes that lie at `from` and shall lie at `to`. */
typedef struct {
    uint64_t from, to, bytes;
} slc_move;

/* Carries all moves out inside base[0, bytes), memory of the stream's device, in stream order. Sources are disjoint,
 * destinations are disjoint; a source may overlap any destination. Bytes that no destination covers are undefined
 * afterwards. `moves` is used up. `room`, outside of that memory, is used until the moves are done: memory of the host,
 * pinned where the device is a GPU; room_bytes > 0. */
sluice_status slc_moves_run(sluice_stream *stream, void *base, uint64_t bytes, slc_move *moves, size_t count,
                            void *room, uint64_t room_bytes);
/* Carries all moves out from one memory to another one, in stream order. */
sluice_status slc_moves_copy(sluice_stream *stream, void *to, const void *from, const slc_move *moves, size_t count);

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
    slc_segment larger; /* what takes the arena's place; zeroed: the new plan fits the arena */
} slc_transition;

/* Lists what `rank` must do. Both plans are of `job`, in any of its phases. Arrays that a rank has for compressed
 * exchanges move where the unit is onebit in both plans. Errors: MEMORY; FORMAT (a plan lacks a resident buffer). */
sluice_status slc_transition_init(const slc_job *job, const slc_plan *from, const slc_plan *to, uint32_t rank,
                                  slc_transition *out);
void slc_transition_fini(slc_transition *transition);
