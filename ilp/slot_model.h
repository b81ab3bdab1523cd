/* The slot model: strategies, recomputation and the place of every byte of communication, as one mixed integer program
 * (design: "Planning"), solved on GLPK. It knows slots and gaps, not packing or single operations: its answer is a
 * guide from which sched makes real orders, and its bounds tell how far from the best any plan can be.
 *
 * Positions. Slots of the step are numbered s = 0..S-1 over all micro-batches (S = M * 2L). Position 2s is inside slot
 * s, position 2s + 1 the gap behind it. Positions count from the start of the step whose gradient is reduced or whose
 * values are gathered for; 2S and above lie in the next step (position p there is p - 2S of its own count).
 *   REDUCE        from behind the unit's last gradient slot of the micro-batch; in the last one until before the unit's
 *                 first use in the next step (slc_updated_last, and ROWS: at the latest in the gap behind the step's
 *                 last slot), with `each` in the others until before its gradient begins again (SPLIT and its ROWS:
 *                 until before the look-up of the next micro-batch, whose gather of rows stands behind both)
 *   GATHER_VALUE  oss, sdp: after its reduction (slc_updated_last: from the gap behind the last slot in which any
 *                 gradient grows), before the unit's first use in the next step: below 2 (S + first slot). dp with
 *                 `each`: the gather of its gradient, which does not wait for the barrier
 *   EXCHANGE      onebit: both passes and the exchange, from behind the unit's last gradient slot (where it waits for
 *                 the agreement: from the gap behind the last slot in which any gradient grows) until before its first
 *                 use in the next step. A real one moves whole: a fraction here says where most of it lies
 *   WINDOW        fsdp, for each micro-batch and window: before its first slot, and not before the window before it
 *                 (the last one of the micro-batch before) has begun, so that a unit is gathered twice at most; of ROWS
 *                 not before the micro-batch before is over. For window 0 of micro-batch 0 after the reduction of the
 *                 step before, and not before the gap at that step's end: its positions are counted from that step's
 *                 start, as GATHER_VALUE's
 * At one position reductions come before gathers. Of more than three micro-batches the middle ones are alike: what
 * reaches over an edge between two of them does so over each.
 *
 * Priced beside transfers: an update with the reduction (behind a barrier: with the gather) where it holds the lane up;
 * the agreement where it is the barrier. A SPLIT unit's update: with the gather of rows for the next step; where a
 * network moves the bytes and the first layer looks up, in the thread's lane, which waits for the reduction of rows and
 * for that gather too: the three stand exposed, one behind the other. Both passes of an exchange: on the link where the
 * communication thread itself moves the bytes; else in a lane of their own beside it: what both do in a slot, and what
 * both do exposed in all gaps, takes as long as the longer of them. What an exchange has in flight lies there at the
 * end of a slot that it moves in. Memory rows: start and end of each slot, and the moment between two steps at which
 * parameters are read through the staging buffer. Not in the model: evaluation, alignment, packing. */
#ifndef SLC_SLOT_MODEL_H
#define SLC_SLOT_MODEL_H

#include "lib/plan/cancel.h"
#include "lib/plan/times.h"

typedef enum { SLC_FLOW_REDUCE, SLC_FLOW_GATHER_VALUE, SLC_FLOW_WINDOW, SLC_FLOW_EXCHANGE } slc_flow_kind;
enum { SLC_FLOW_KINDS = SLC_FLOW_EXCHANGE + 1 };

typedef struct {
    slc_flow_kind kind;
    uint32_t unit;
    uint32_t micro_batch, window; /* REDUCE: micro_batch (the last, or with `each` every one); WINDOW: both */
    uint32_t position;
    double fraction; /* of the unit's blocks; those of one (kind, unit, micro_batch, window) add up to 1 */
} slc_flow;

typedef struct {
    const slc_job *job;
    const slc_times *times;
    const uint8_t *allowed;   /* [units] strategies: bit 1 << slc_strategy; one bit alone fixes it. What a unit may not
                                 be becomes slc_unit_strategy */
    const uint8_t *recompute; /* [L] 0: no, 1: yes, 2: free. NULL: none */
    uint64_t limit;           /* bytes of the arena: the right side of the memory rows */
    double time_limit_s;      /* <= 0: none */
    double gap;               /* of the whole step's time at which the search stops: 0.003 */
    uint32_t tie;             /* neighbouring equal units share their choices in groups of at most this; 1: none; 0: by
                                 size (none up to 512 slots) */
    bool every_position;      /* windows hold every legal position, not a geometric choice of them; small models
                                 always do */
    uint32_t whole_blocks;    /* > 0: every unit is cut in this many equal blocks that move whole (small cases) */
    bool relaxed;             /* the LP relaxation only: a bound, no strategies */
    bool in_series;           /* onebit's passes hold the link up in any case: no bound, but another answer */
    const slc_cancel *cancel; /* NULL: none */
} slc_slot_request;

typedef struct {
    bool found;               /* else only the bound holds */
    slc_strategy *strategies; /* [units] */
    bool *recompute;          /* [L] */
    slc_flow *flows;          /* by kind, unit, micro-batch, window, position */
    uint32_t flow_count;
    double step_s;    /* the model's objective, without the tie-breaking term */
    double bound_s;   /* no answer of this model (its windows and ties) is below */
    double relaxed_s; /* the same of the LP alone; 0: out of time */
    double solve_s;
    const char *how; /* "branch and bound", "rounding", ...: a constant */
} slc_slot_solution;

/* What solves it ("GLPK 5.0"); NULL: this build has nothing that does, and the three calls below are UNSUPPORTED. */
const char *slc_slot_model_solver(void);

/* Errors: BUDGET (no answer exists within `limit`; the message says by how much in the model), MEMORY, FORMAT (the
 * solver failed: its words), INTERRUPTED (cancelled). Running out of time is no error: the best found so far, or
 * found = false. */
sluice_status slc_slot_model_solve(const slc_slot_request *request, slc_slot_solution *out);
void slc_slot_solution_fini(slc_slot_solution *solution);

/* Lower bounds on the step of any answer with every legal position, no ties and no micro-batch standing for others.
 * *relaxed_s: the LP, in which choices may be taken in part. *bound_s: the least of the nodes that branch and bound
 * over the choices has left when it ends or time is up; never below the LP. Out of time before that: the compute alone.
 */
sluice_status slc_slot_model_bound(const slc_slot_request *request, double *relaxed_s, double *bound_s);

/* The least `limit` for which the model has an answer, and that answer, without overlap (its step_s is what that
 * takes). With request->time_limit_s: the least found until then. request->limit is not read. */
sluice_status slc_slot_model_least_memory(const slc_slot_request *request, uint64_t *limit, slc_slot_solution *out);

/* The model's own account of an answer, worked out apart from the solver: the step's time for given strategies,
 * recomputation and flows, and the largest memory row. For checks and for enumeration. Errors: FORMAT (what rule the
 * answer breaks). */
sluice_status slc_slot_model_evaluate(const slc_slot_request *request, const slc_slot_solution *answer, double *step_s,
                                      uint64_t *most_bytes);

#endif
