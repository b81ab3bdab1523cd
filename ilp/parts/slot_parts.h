/* The parts that the slot model is made of, worked out before and apart from the solver. Private to ilp.
 *
 * Half rows. Memory is looked at twice in each slot: at its start (h = 2s) and at its end (h = 2s + 1). Bytes that move
 * at position p (2s inside slot s, 2s + 1 in the gap after it) move between h = p and h = p + 1. So values gathered at
 * p for a window that ends with slot t are in memory in [p + 1, 2t + 1], and a gradient reduced at p is in memory up to
 * p. Within one position reductions come before gathers, so there is never more between two half rows. Half rows and
 * positions continue beyond 2S into the next step; for memory they are taken modulo 2S. */
#pragma once

#include "ilp/parts/slot_request.h"
#include "lib/plan/strategy_table.h"

/* A family of flow variables: one operation of a unit in a micro-batch, under some strategies. */
typedef struct {
    slc_flow_kind kind;
    uint32_t unit, micro_batch, window;
    uint8_t strategies; /* it moves under these: bits 1 << slc_strategy */
    double seconds;     /* on the link's lane, for all of it */
    double thread_s; /* work of the thread for it that does not hold the link up: onebit's passes, the update of a SPLIT
                        unit; else 0 */
    bool awaited;    /* the thread waits for it: its lane is taken for `seconds` too */
    uint32_t first, last; /* legal positions, both inclusive */
} slc_flow_family;

/* Bytes in memory in half rows [from, to], for each fraction that moves (or for a strategy, if it is chosen). Empty if
 * to < from. */
typedef struct {
    int64_t from, to;
    double bytes;
} slc_lifetime;

enum { SLC_SPANS_MAX = 4 };

typedef struct {
    const slc_slot_request *request;
    const slc_job *job;
    const slc_times *times;
    uint32_t micro_batches; /* in the model: at most 3 unless unfolded; the middle one of three represents several */
    double middle;          /* how many micro-batches the middle one represents */
    bool bounding;          /* the parts are a relaxation of every valid plan, see SLC_BOUNDING */
    uint32_t slots;         /* S = micro_batches * 2L */
    uint32_t half_rows;     /* 2S */
    double agreement_s;     /* seconds of the step's agreement if the program places it (slc_agreement_init); else 0 */
    uint32_t complete; /* gap after the step's last slot in which any gradient grows: the agreement cannot be earlier */
    uint8_t *options;  /* [units] bits of the allowed strategies without those that another one dominates */
    double forgone_s;  /* seconds that the options left out could save at most */
    slc_flow_family *families;
    uint32_t family_count;
    bool two_lanes;         /* some family takes the thread's lane */
    uint32_t first_place;   /* with two lanes: first busy place at which they are compared */
    uint64_t *fixed_bytes;  /* [half_rows] bytes that are in memory whatever is chosen */
    uint64_t reading_bytes; /* bytes, besides resident ones, while parameters are read between steps */
    /* [evaluated_count], ascending: slots of an evaluation pass that may need most of all, and the bytes that are in
     * memory there whatever is chosen. None unless slc_evaluation_init finds them. */
    uint32_t *evaluated, evaluated_count;
    uint64_t *evaluated_bytes;
} slc_slot_model_parts;

typedef enum {
    SLC_FOLDED,    /* one middle micro-batch represents all of them, dominated strategies are left out */
    SLC_BOUNDING,  /* every micro-batch is modelled, and nothing is forbidden that a valid plan may do: for bounds */
    SLC_EVERYTHING /* as FOLDED, with every micro-batch and every allowed strategy */
} slc_slot_detail;

/* Checks the request and works everything out; `request` must outlive the parts. Errors: FORMAT, MEMORY. */
sluice_status slc_slot_parts_init(slc_slot_model_parts *parts, const slc_slot_request *request, slc_slot_detail detail);
void slc_slot_parts_fini(slc_slot_model_parts *parts);

/* Writes the families of one unit for all its options and returns how many there are (`out` NULL: only counts). */
uint32_t slc_unit_families(const slc_slot_model_parts *parts, uint32_t unit, slc_flow_family *out);

/* Writes the positions for which a family has columns, ascending, and returns how many. `out` has room for 2 * slots +
 * 4. */
uint32_t slc_flow_family_positions(const slc_slot_model_parts *parts, const slc_flow_family *family, uint32_t *out);
/* Writes the gaps at the ends of a family's range, one or two, and returns how many. Whatever memory costs, no other
 * gap costs less than all of these. */
uint32_t slc_flow_family_end_gaps(const slc_slot_model_parts *parts, const slc_flow_family *family, uint32_t out[2]);
/* Returns true if a slot (counted over micro-batches and steps) is a position for families whose range it lies in. It
 * has to be long enough for anything to be hidden in it. Only some such slots have columns unless every position is
 * asked for. */
bool slc_slot_is_offered(const slc_slot_model_parts *parts, uint32_t slot);
/* Returns the position of a family, a gap, at which it holds least memory. */
uint32_t slc_flow_family_serial_position(const slc_slot_model_parts *parts, const slc_flow_family *family);

/* Writes the bytes that a fraction of a family holds if it moves at a position, and returns the number of spans. */
uint32_t slc_flow_family_spans(const slc_slot_model_parts *parts, const slc_flow_family *family, uint32_t position,
                               slc_lifetime out[SLC_SPANS_MAX]);
/* Writes the bytes that a strategy holds whenever its families move, resident ones first, and returns the number of
 * spans. `out` has room for slc_strategy_spans_max. */
uint32_t slc_strategy_spans(const slc_slot_model_parts *parts, uint32_t unit, slc_strategy strategy, slc_lifetime *out);
uint32_t slc_strategy_spans_max(const slc_slot_model_parts *parts);
/* The bytes (> 0) of an activation that recomputing its layer frees in one micro-batch; false: none. */
bool slc_recompute_span(const slc_slot_model_parts *parts, uint32_t activation, uint32_t micro_batch,
                        slc_lifetime *out);
/* Finds the slots of evaluation that may need most and do not keep to the limit under all strategies. Errors: MEMORY.
 */
sluice_status slc_evaluation_init(slc_slot_model_parts *parts, uint64_t limit);
/* Bytes of a unit in a slot of an evaluation pass that gathers values right before their use. */
double slc_evaluation_bytes(const slc_slot_model_parts *parts, uint32_t unit, slc_strategy strategy, uint32_t slot);
/* The layer whose recomputation drops this activation. */
uint32_t slc_activation_layer(const slc_job *job, uint32_t activation);

/* Busy places, at which the two lanes are compared: each slot (unless the thread's lane is only taken in gaps: see
 * first_place), and all gaps together, since exposed work costs the same in any gap. */
static inline uint32_t slc_busy_places(const slc_slot_model_parts *parts)
{
    return parts->slots + 1;
}
static inline uint32_t slc_busy_place(const slc_slot_model_parts *parts, uint32_t position)
{
    return position & 1 ? parts->slots : position / 2 % parts->slots;
}

/* Seconds of the thread's lane that all of a family takes. */
static inline double slc_flow_family_thread_s(const slc_flow_family *family)
{
    return family->thread_s + (family->awaited ? family->seconds : 0);
}

/* Seconds that all of a family takes when nothing runs at the same time. */
static inline double slc_flow_family_alone_s(const slc_flow_family *family)
{
    return family->seconds + family->thread_s;
}

/* Every step has one agreement of the ranks on the link. It is exposed if a unit of the first layer is reduced after
 * the step's last slot and updated, after the agreement, before the next step's first slot. Otherwise it may run during
 * any slot. If it is a thousandth of the step or more, the program chooses where (parts->agreement_s); if it is less,
 * it is charged what it costs at least. */
void slc_agreement_init(slc_slot_model_parts *parts);
/* Seconds that the agreement costs besides parts->agreement_s. */
double slc_agreement_s(const slc_slot_model_parts *parts);
/* Seconds of the step whatever is chosen: those of its slots, and slc_agreement_s. */
double slc_fixed_s(const slc_slot_model_parts *parts);

/* One of the strategies under which a family moves; what a family keeps is the same for all of them. */
static inline slc_strategy slc_flow_family_strategy(const slc_flow_family *family)
{
    return (slc_strategy)__builtin_ctz(family->strategies);
}
/* dp has families of its own. */
static inline bool slc_flow_family_is_dp(const slc_flow_family *family)
{
    return slc_flow_family_strategy(family) == SLC_DP;
}

/* A unit's update comes between its ordered reductions, which are those of the last micro-batch, and its ordered
 * gathers, which bring the updated values: up to any position, no more may be gathered than has been reduced. Both
 * functions return true if the family is one of them. */
static inline bool slc_flow_family_is_ordered_reduction(const slc_slot_model_parts *parts,
                                                        const slc_flow_family *family)
{
    return family->kind == SLC_FLOW_REDUCE && family->micro_batch == parts->micro_batches - 1;
}
static inline bool slc_flow_family_is_ordered_gather(const slc_slot_model_parts *parts, const slc_flow_family *family)
{
    if (!parts->job->units[family->unit].trainable) return false;
    return family->kind == SLC_FLOW_GATHER_VALUE ||
           (family->kind == SLC_FLOW_WINDOW && !family->micro_batch && !family->window);
}

/* Returns how many real slots a modelled slot stands for. */
static inline double slc_slot_weight(const slc_slot_model_parts *parts, uint32_t slot)
{
    return slot / slc_job_slots(parts->job) == 1 ? parts->middle : 1;
}
static inline bool slc_is_template(const slc_slot_model_parts *parts)
{
    return parts->micro_batches < parts->job->micro_batches;
}
static inline double slc_slot_seconds(const slc_slot_model_parts *parts, uint32_t slot)
{
    return parts->times->slot_s[slot % slc_job_slots(parts->job)];
}
/* 0: no, 1: yes, 2: free */
static inline uint8_t slc_recompute_of(const slc_slot_model_parts *parts, uint32_t layer)
{
    return parts->request->recompute ? parts->request->recompute[layer] : 0;
}
static inline bool slc_has(uint8_t strategies, slc_strategy strategy)
{
    return strategies >> strategy & 1;
}
/* The strategies that are allowed for a unit, as slc_unit_strategy gives them. */
static inline uint8_t slc_allowed_of(const slc_slot_request *request, uint32_t unit)
{
    uint8_t allowed = 0;
    for (int k = 0; k < SLC_STRATEGIES; k++)
        if (slc_has(request->allowed[unit], (slc_strategy)k))
            allowed |= (uint8_t)(1 << slc_unit_strategy(request->job, &request->job->units[unit], (slc_strategy)k));
    return allowed;
}
/* Returns true if the unit's gradient must be reduced within its own step. For bounds: only a barrier is a reason, for
 * the parts of a split parameter that no first layer looks up may be reduced while the next step already computes. */
static inline bool slc_reduced_in_step(const slc_slot_model_parts *parts, const slc_unit *unit)
{
    if (parts->bounding) return parts->job->barrier;
    return slc_updated_last(parts->job, unit) || slc_looks_up(unit);
}
/* The first position, a gap, at which an update of the unit may begin. */
uint32_t slc_first_update(const slc_slot_model_parts *parts, const slc_unit *unit);
