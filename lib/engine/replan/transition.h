/* A transition leads from one plan of a job to another. The values, masters and optimizer states that a rank keeps move
 * to their new places in the same arena, in place and to the bit. Arrays that the new plan holds whole and the old one
 * did not are gathered afterwards. Only lists of a few bytes per block are allocated.
 *
 * The new plan may be of other units, made of the same layers' parameters. A rank then owns other elements of these. An
 * array that every rank has whole moves piece by piece. An array that is spread over the ranks is collected first
 * (collect.c), into memory that holds nothing between steps: a part for each array of a new unit, as a shard, from
 * where it moves as everything else does. Private to lib/engine. */
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
 * pinned if the device is a GPU; room_bytes > 0. */
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

/* The values, the masters and the optimizer's states of a unit have these numbers. */
enum { SLC_KEPT_VALUE, SLC_KEPT_MASTER, SLC_KEPT_STATES };

/* An array with a value for each element of a unit, as a plan keeps it. */
typedef struct {
    uint64_t offset;
    bool shard; /* only the owned parts, in the shard layout */
    sluice_dtype dtype;
} slc_kept_array;

/* Elements [first, first + count) of a unit are elements from first_before on of a unit of before. */
typedef struct {
    uint32_t unit, before;
    uint64_t first, first_before, count;
} slc_unit_piece;

/* The units of the plan before, of which the units of a new grouping are made. */
typedef struct {
    const slc_job *job_before;
    const uint32_t *same; /* [units] the unit of before with the same parameters; SLC_NONE: it is made of pieces */
    const slc_unit_piece *pieces; /* by unit */
    size_t piece_count;
} slc_unit_origins;

/* Memory for what this rank owns of an array of a new unit, of which some rank has only parts. */
typedef struct {
    uint32_t unit, array;
    uint64_t offset, bytes;
} slc_collected_array;

typedef struct {
    slc_collected_array *collected; /* by unit, then by array */
    size_t collected_count;
    slc_move *moves;
    size_t move_count;
    slc_regather *gathers;
    size_t gather_count;
    slc_zeroed *zeroed;
    size_t zeroed_count;
    slc_segment larger; /* what takes the arena's place; zeroed: the new plan fits the arena */
} slc_transition;

/* Lists what `rank` must do. Both plans are of `job`, in any of its phases. Arrays that a rank has for compressed
 * exchanges move if the unit is onebit in both plans. Errors: MEMORY; FORMAT (a plan lacks a resident buffer). */
sluice_status slc_transition_init(const slc_job *job, const slc_plan *from, const slc_plan *to, uint32_t rank,
                                  slc_transition *out);
/* Lists what `rank` must do if the new plan's job has other units; `from` is a plan of origins->job_before. Units are
 * collected below `room_bytes` of the arena. Errors: as above; MEMORY too if the plan that runs leaves no room for
 * that, the same on every rank. */
sluice_status slc_transition_regroup(const slc_job *job, const slc_unit_origins *origins, const slc_plan *from,
                                     const slc_plan *to, uint64_t room_bytes, uint32_t rank, slc_transition *out);
void slc_transition_fini(slc_transition *transition);

/* Returns true if a unit has array number `array`. */
bool slc_has_kept_array(const slc_job *job, uint32_t unit, uint32_t array);
/* Finds it in a plan. Errors: FORMAT (the plan lacks it). */
sluice_status slc_find_kept_array(const slc_job *job, const slc_plan *plan, uint32_t unit, uint32_t array,
                                  slc_kept_array *out);
