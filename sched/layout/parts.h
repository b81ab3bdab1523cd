/* The steps of slc_plan_make, one file each. Private to sched. */
#pragma once

#include "lib/memory/pack.h"
#include "lib/plan/strategy_table.h"
#include "sched/scheduler.h"
#include "sched/simulate/forecast.h"

#include <stddef.h>

/* Finds items by what they are: item numbers, SLC_NONE if there is none. */
typedef struct {
    const slc_program *program;
    uint32_t slots_per_micro_batch;
    size_t slot_count, operation_count;
    uint32_t *slots;              /* item of each slot, micro-batch by micro-batch */
    const slc_item **operations;  /* sorted by kind, micro-batch, unit and index, then by first block */
    uint32_t *users, *first_user; /* units by the layers that use them; [layers + 1] where those of each layer begin */
} slc_places;

/* The runs of one operation on one unit, by ascending blocks; count 0 if there are none. Borrowed from slc_places. */
typedef struct {
    const slc_item **items;
    size_t count;
} slc_runs;

sluice_status slc_places_init(slc_places *places, const slc_job *job, const slc_program *program);
void slc_places_fini(slc_places *places);
uint32_t slc_find_slot(const slc_places *places, uint32_t micro_batch, uint32_t slot);
slc_runs slc_find_runs(const slc_places *places, slc_item_kind kind, uint32_t micro_batch, uint32_t unit,
                       uint32_t index);
/* The runs of another operation on the blocks of `mine`, of the same unit; those of one operation share none. */
slc_runs slc_find_sharing(const slc_places *places, slc_item_kind kind, uint32_t micro_batch, const slc_item *mine);

/* Fills the plan's buffers and statics from the strategy table. Errors: MEMORY. */
sluice_status slc_plan_add_buffers(const slc_job *job, slc_plan *plan);

/* Fills the claims of the program whose places these are. Errors: MEMORY; FORMAT (a buffer's life has no start or
 * end). */
sluice_status slc_plan_add_claims(const slc_job *job, slc_plan *plan, const slc_places *places);

/* Fills `after` of every item: data, reuse of resident buffers, tickets. Errors: MEMORY. */
sluice_status slc_plan_add_waits(const slc_job *job, slc_plan *plan, bool slots_wait_for_all, bool evaluate);

/* Fills `after` of the training program's items as if any free memory would do: an item waits until so much of what
 * earlier items held is released that the sum of all live bytes is at most `limit`. Such waits need no offsets; a plan
 * cannot be run with them, but the simulator can. `places` are those of the training program. Errors: MEMORY. */
sluice_status slc_plan_add_waits_by_sum(const slc_job *job, slc_plan *plan, const slc_places *places,
                                        bool slots_wait_for_all, uint64_t limit);

/* Fills the waits of the program whose places these are, in place of those that there are, and counts the work. Errors:
 * MEMORY. */
sluice_status slc_plan_renew_waits_of(const slc_scheduling *in, const slc_scheduler *scheduler,
                                      const slc_places *places, slc_plan *plan);

/* Fills the waits of the evaluation in place of those that there are, and counts the work. Errors: MEMORY. */
sluice_status slc_plan_renew_evaluation_waits(const slc_scheduling *in, const slc_scheduler *scheduler, slc_plan *plan);

/* Returns the number of items and claims of both programs, by which work on a plan is counted. */
static inline double slc_plan_length(const slc_plan *plan)
{
    return (double)plan->train.item_count + plan->train.claim_count + plan->evaluate.item_count +
           plan->evaluate.claim_count;
}

/* Removes the waits again. */
void slc_program_forget_waits(slc_program *program);

/* Returns true if every item of the training order, whose places these are, comes after everything that it needs. The
 * plan has items and strategies. */
bool slc_plan_order_is_legal(const slc_job *job, const slc_plan *plan, const slc_places *places);

/* Rounds the bytes of a buffer up, so that it ends where the next buffer may begin. */
static inline uint64_t slc_aligned(uint64_t bytes)
{
    return (bytes + SLC_PACK_ALIGNMENT - 1) / SLC_PACK_ALIGNMENT * SLC_PACK_ALIGNMENT;
}

/* The effort of packing: when it is good enough, and how much to try. */
typedef struct {
    uint64_t limit;  /* if the lower bound is above this, arena_bytes is that bound and no offset is filled */
    uint64_t enough; /* an arena of this size is small enough; 0: make it as small as possible */
    uint32_t tries;  /* orders to try beyond the usual ones while it is above `enough` */
    bool apart; /* no packing at all: every buffer has memory of its own, and arena_bytes is the lower bound. Shows how
                   fast a plan would be if no two buffers shared memory */
    slc_work *work;        /* counts; NULL: nobody asks */
    const uint32_t *until; /* [training claims] the last item for which each is kept apart from others, items of the
                              next pass counted on; NULL: as the order says */
} slc_packing_effort;

/* Fills offsets, arena_bytes and lower_bound. */
sluice_status slc_plan_pack(slc_plan *plan, const slc_packing_effort *effort);

/* Leaves each buffer at the offset [buffers] that it has in another plan (NULL: that it has already). A few buffers
 * that overlap there, or end above the limit, move to gaps between the others, or on top of these. Fills offsets and
 * arena_bytes, which becomes UINT64_MAX if more than a few would have to move. lower_bound becomes 0, for it is not
 * looked for. Errors: MEMORY. */
sluice_status slc_plan_place(slc_plan *plan, const uint64_t *offsets, uint64_t limit, slc_work *work);

/* Fills lower_bound. Errors: MEMORY. */
sluice_status slc_plan_find_bound(slc_plan *plan, slc_work *work);

/* Lists the offsets, right above and right below the neighbours [count], to which one buffer of a packed plan could
 * move within effort->limit while all others stay. `places` has room for 2 * count. Errors: MEMORY. */
sluice_status slc_plan_places_beside(const slc_plan *plan, uint32_t buffer, const uint32_t *neighbours, uint32_t count,
                                     const slc_packing_effort *effort, uint64_t *places, uint32_t *found);

/* Steps in seconds that packing may look forward to. */
typedef struct {
    double least_s;   /* no packing of the plan makes its step shorter; 0: not known */
    double at_most_s; /* the longest step of interest; 0: every one is */
} slc_packing_aim;

/* Replaces the packing of a plan whose training has waits, and which fits in->limit, by one in which it waits less for
 * memory, if there is one, and renews the waits of the training; in->times must be there, and `places` are those of the
 * training program. *forecast becomes that of the plan. A plan whose step is above at_most_s all the same is left
 * without waits. Errors: MEMORY; FORMAT if the plan as it was cannot go on. */
sluice_status slc_plan_pack_in_time(const slc_scheduling *in, const slc_scheduler *scheduler, const slc_places *places,
                                    const slc_packing_effort *effort, const slc_packing_aim *aim, slc_plan *plan,
                                    slc_forecast *forecast);

/* Packs as slc_pack_within does, but keeps buffers that live at the same times next to each other. */
sluice_status slc_pack_bundled(slc_pack_buffer *buffers, uint32_t count, uint64_t target, uint32_t tries,
                               uint64_t *peak, uint64_t *looked_at);
