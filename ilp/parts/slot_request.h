/* The request to the slot model, and its answer: strategies, recomputation and flows (slot_model.h has their meaning).
 */
#pragma once

#include "lib/plan/effort/cancel.h"
#include "lib/plan/times.h"
#include "lib/plan/effort/work.h"

/* UPDATE is in no answer: only if bounds are worked out do updates have places of their own. */
typedef enum {
    SLC_FLOW_REDUCE,
    SLC_FLOW_GATHER_VALUE,
    SLC_FLOW_WINDOW,
    SLC_FLOW_EXCHANGE,
    SLC_FLOW_UPDATE
} slc_flow_kind;
enum { SLC_FLOW_KINDS = SLC_FLOW_EXCHANGE + 1 };

typedef struct {
    slc_flow_kind kind;
    uint32_t unit;
    uint32_t micro_batch, window; /* REDUCE: micro_batch (the last one, with `each` every one); WINDOW: both */
    uint32_t position;
    double fraction; /* of the unit's blocks; the fractions of one (kind, unit, micro_batch, window) add up to 1 */
} slc_flow;

/* True if both flows are parts of one operation, at whatever positions. */
static inline bool slc_flow_same_operation(const slc_flow *a, const slc_flow *b)
{
    return a->kind == b->kind && a->unit == b->unit && a->micro_batch == b->micro_batch && a->window == b->window;
}

typedef struct {
    const slc_job *job;
    const slc_times *times; /* with slc_times.keeps: those of slots are means already (slc_times_weigh_slots), those of
                               operations are not */
    const uint8_t *allowed; /* [units] bits 1 << slc_strategy; a single bit fixes the strategy. Each bit means
                               slc_unit_strategy of it */
    const uint8_t *bounded; /* [units] the same, for the plans that proven_s is a bound of: at least what is allowed.
                               NULL: what is allowed */
    const uint8_t *recompute; /* [L] 0: no, 1: yes, 2: free. NULL: no layer recomputes */
    uint64_t limit;           /* bytes of the arena: the right side of the memory rows */
    double effort_s;          /* nominal seconds of work at which the search ends; <= 0: it ends by itself */
    slc_work *work;           /* counts the work, and may have a ceiling; NULL: nobody asks */
    double gap;               /* share of the whole step's time at which the search stops: 0.003 */
    uint32_t tie; /* neighbouring equal units share their choices in groups of at most this many; 1: none; 0: by size
                     (none up to 512 slots) */
    bool every_position;   /* families may use every legal position, not a geometric selection of them; small models
                              always   do */
    uint32_t whole_blocks; /* > 0: every unit is cut into this many equal blocks that move whole (small cases) */
    bool relaxed;          /* only the LP relaxation: a bound, no strategies */
    bool proves;           /* a quick bound of all valid plans is wanted too: proven_s */
    bool in_series;        /* onebit's passes hold the link up in any case; this gives no bound, but another answer */
    const slc_cancel *cancel; /* NULL: none */
} slc_slot_request;

typedef struct {
    bool found;               /* false: only the bound is valid */
    slc_strategy *strategies; /* [units] */
    bool *recompute;          /* [L] */
    slc_flow *flows;          /* sorted by kind, unit, micro-batch, window, position */
    uint32_t flow_count;
    double step_s;    /* the model's objective, without the tie-breaking term */
    double bound_s;   /* lower bound of all answers of this model (its positions and ties) */
    double relaxed_s; /* lower bound of the LP alone; 0: not found within the effort */
    double proven_s;  /* lower bound of the step of any valid plan of `bounded` within the limit; 0: not asked for, or
                         the program was too large */
    double proving_s; /* nominal seconds that it took, which request->work does not count */
    double solve_s;
    const char *how; /* "branch and bound", "rounding", ...: a constant */
} slc_slot_solution;

/* Frees what the answer holds. */
void slc_slot_solution_fini(slc_slot_solution *solution);
