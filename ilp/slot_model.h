/* The slot model: strategies, recomputation and the place of every byte of communication, as one mixed integer program
 * (design: "Planning"), solved with GLPK. It knows slots and gaps, but neither packing nor single operations: its
 * answer is a guide from which sched makes real orders. An order may do a little that the model forbids, so bounds of
 * all plans come from a relaxation of it (slc_slot_model_bound, proven_s), which forbids nothing of that.
 *
 * Positions. The slots of a step are numbered s = 0..S-1 over all micro-batches (S = M * 2L). Position 2s is inside
 * slot s, position 2s + 1 is the gap after it. Positions count from the start of the step whose gradient is reduced or
 * whose values are gathered; 2S and above are in the next step (position p there is p - 2S in that step's own count).
 *   REDUCE        after the unit's last gradient slot of the micro-batch. In the last micro-batch it may move until
 *                 before the unit's first use in the next step (slc_updated_last, and ROWS: at the latest in the gap
 *                 after the step's last slot); in others, with `each`, until before its gradient begins again (SPLIT
 *                 and its ROWS: until before the look-up of the next micro-batch, whose gather of rows follows both)
 *   GATHER_VALUE  oss, sdp: after its reduction (slc_updated_last: from the gap after the last slot in which any
 *                 gradient grows), before the unit's first use in the next step: below 2 (S + first slot). dp with
 *                 `each`: the gather of its gradient, which does not wait for the barrier
 *   EXCHANGE      onebit: both passes and the exchange, from after the unit's last gradient slot (if it waits for the
 *                 agreement: from the gap after the last slot in which any gradient grows) until before its first use
 *                 in the next step. A real exchange moves whole: a fraction here says where most of it is
 *   WINDOW        fsdp, for each micro-batch and window: before its first slot, and not before its micro-batch (the
 *                 first one of a micro-batch: not before the last window of the previous one) has begun; ROWS: not
 * before the previous micro-batch has ended. Window 0 of micro-batch 0 comes after the reduction of the previous step,
 * and not before the gap at that step's end: its positions count from that step's start, as those of GATHER_VALUE do At
 * one position reductions come before gathers. If there are more than three micro-batches, the middle ones are alike:
 * whatever reaches over the border between two of them does so over each such border.
 *
 * Costs besides transfers. An update is charged with the reduction (with a barrier: the gather) if it holds the
 * link up. The ranks' agreement is exposed if it is the barrier; else it takes room in slots, or is exposed. A SPLIT
 * unit's update is charged with the gather of rows for the next step. If a network moves the bytes and the first layer
 * looks up, that update is in the thread's lane, which also waits for the reduction of rows and for that gather: the
 * three are exposed, one after another. Both passes of an exchange are on the link if the communication thread itself
 * moves the bytes; else they have a lane of their own: the work of both lanes in a slot, and the exposed work of both
 * in all gaps, takes as long as the longer of the two. The buffers of an exchange are in memory at the end of a slot
 * that it moves in.
 *
 * Memory rows: the start and the end of each slot, the moment between two steps at which parameters are read through
 * the staging buffer, and the slots of an evaluation pass, which gathers each window right before its use and keeps
 * what training would recompute. Not in the model: alignment, packing. */
#pragma once

#include "ilp/parts/slot_request.h"

/* The solver ("GLPK 5.0"); NULL: this build has none, and the three calls below return UNSUPPORTED. */
const char *slc_slot_model_solver(void);

/* Solves the model. A job of more than 128 layers is solved with neighbouring layers joined: step_s and bound_s are
 * then those of the joined job, and the flows may fill a slot with a little more than it has room for; proven_s is a
 * bound of the real job all the same. The caller calls slc_slot_solution_fini. Errors: BUDGET (no answer exists within
 * `limit`; the message says by how much in the model), MEMORY, FORMAT (the solver failed: its message), INTERRUPTED
 * (cancelled). To end because the effort is spent is no error: the answer is the best found so far, or found = false.
 */
sluice_status slc_slot_model_solve(const slc_slot_request *request, slc_slot_solution *out);

/* Finds lower bounds on the step of any valid plan, and so of any answer: with every position, no ties, every
 * micro-batch modelled, and nothing forbidden that an order may do.
 * *relaxed_s becomes the optimum of the LP, in which choices may be taken in part. *bound_s becomes the least of the
 * nodes that branch and bound over the choices has left when it ends or the effort is spent; it is never below the LP.
 * If the effort is spent before a bound is found, that bound is the compute alone. A job of more than 128 layers has
 * one bound, by prices of its joined layers; it is 0 if these have no room, or if their program would take too much of
 * the effort. */
sluice_status slc_slot_model_bound(const slc_slot_request *request, double *relaxed_s, double *bound_s);

/* Finds the least `limit` for which the model has an answer, and that answer, without overlap (step_s is its time).
 * With request->effort_s: the least found until it is spent. request->limit is not read. */
sluice_status slc_slot_model_least_memory(const slc_slot_request *request, uint64_t *limit, slc_slot_solution *out);

/* The model's own account of an answer, worked out apart from the solver: the step's time for given strategies,
 * recomputation and flows, and the largest memory row (most_bytes NULL: without that, which takes far longer). For
 * checks and for enumeration. Errors: FORMAT (the rule that the answer breaks). */
sluice_status slc_slot_model_evaluate(const slc_slot_request *request, const slc_slot_solution *answer, double *step_s,
                                      uint64_t *most_bytes);
