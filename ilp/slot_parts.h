/* Behind ilp/slot_model.h: what the model consists of, before and apart from the solver.
 *
 * Half rows. Memory is looked at twice in each slot: at its start (h = 2s) and at its end (h = 2s + 1). What moves at
 * position p (2s inside slot s, 2s + 1 in the gap behind it) moves between h = p and h = p + 1. So values gathered at p
 * for a window that ends with slot t lie in [p + 1, 2t + 1], and a gradient reduced at p lies up to p. Within one
 * position reductions come before gathers, so nothing larger stands between two half rows. Half rows and positions
 * count on beyond 2S into the next step; as memory they are taken modulo 2S. */
#ifndef SLC_SLOT_PARTS_H
#define SLC_SLOT_PARTS_H

#include "ilp/slot_model.h"

/* All that one flow variable family moves: one operation of a unit in a micro-batch, under some strategies. */
typedef struct {
    slc_flow_kind kind;
    uint32_t unit, micro_batch, window;
    uint8_t strategies;   /* moved under these: bits 1 << slc_strategy */
    double seconds;       /* on the link's lane, for all of it */
    double thread_s;      /* what the thread computes for it beside the link: onebit's passes, the update of a SPLIT
                             unit; else 0 */
    bool awaited;         /* the thread has nothing to do meanwhile: its lane is taken for `seconds` too */
    uint32_t first, last; /* legal positions, both inclusive */
} slc_stream;

/* Bytes that lie in memory in half rows [from, to] for each fraction moved (or, of a strategy, if it is chosen).
 * Empty when to < from. */
typedef struct {
    int64_t from, to;
    double bytes;
} slc_span;

enum { SLC_SPANS_MAX = 4 };

typedef struct {
    const slc_slot_request *request;
    const slc_job *job;
    const slc_times *times;
    uint32_t micro_batches; /* modelled: at most 3 unless unfolded; the middle one of three stands for the others */
    double middle;          /* how many it stands for */
    uint32_t slots;         /* S = micro_batches * 2L */
    uint32_t half_rows;     /* 2S */
    uint32_t complete; /* the gap behind the step's last slot in which any gradient grows: no agreement is before it */
    uint8_t *options;  /* [units] strategies left of those allowed: none that another one dominates */
    double forgone_s;  /* what the options left out could save at most */
    slc_stream *streams;
    uint32_t stream_count;
    bool two_lanes;         /* some stream takes the thread's lane */
    uint32_t first_place;   /* with two lanes: where they are weighed against each other, from this busy place on */
    uint64_t *fixed_bytes;  /* [half_rows] what is there whatever is chosen */
    uint64_t reading_bytes; /* beside the resident ones while parameters are read between steps */
} slc_slot_model_parts;

typedef enum {
    SLC_FOLDED,    /* the middle micro-batches stand for each other, dominated strategies are left out */
    SLC_UNFOLDED,  /* every micro-batch is modelled: for bounds */
    SLC_EVERYTHING /* and every allowed strategy */
} slc_slot_detail;

/* Checks the request and works all this out. Errors: FORMAT, MEMORY. */
sluice_status slc_slot_parts_init(slc_slot_model_parts *parts, const slc_slot_request *request, slc_slot_detail detail);
void slc_slot_parts_fini(slc_slot_model_parts *parts);

/* The streams of one unit for all its options; returns how many (out NULL: only counts). */
uint32_t slc_unit_streams(const slc_slot_model_parts *parts, uint32_t unit, slc_stream *out);

/* Where a stream's columns stand, ascending; returns how many. `out` holds 2 * slots + 4. */
uint32_t slc_stream_positions(const slc_slot_model_parts *parts, const slc_stream *stream, uint32_t *out);
/* Where it holds least memory: one of them, a gap. */
uint32_t slc_stream_serial_position(const slc_slot_model_parts *parts, const slc_stream *stream);

/* What a fraction of a stream moved at a position holds; what a strategy holds whatever moves when. Return counts. */
uint32_t slc_stream_spans(const slc_slot_model_parts *parts, const slc_stream *stream, uint32_t position,
                          slc_span out[SLC_SPANS_MAX]);
/* `out` holds 2 + 3 * modelled micro-batches * windows at most: slc_strategy_spans_max. */
uint32_t slc_strategy_spans(const slc_slot_model_parts *parts, uint32_t unit, slc_strategy strategy, slc_span *out);
uint32_t slc_strategy_spans_max(const slc_slot_model_parts *parts);
/* Of one activation, what recomputing its layer frees in one micro-batch (bytes > 0); false: nothing. */
bool slc_recompute_span(const slc_slot_model_parts *parts, uint32_t activation, uint32_t micro_batch, slc_span *out);
/* The layer whose recomputation drops this activation. */
uint32_t slc_activation_layer(const slc_job *job, uint32_t activation);

/* Where two lanes are weighed against each other: each slot (unless the thread's is taken in gaps alone: first_place),
 * and all gaps together (what is exposed costs the same wherever it stands). */
static inline uint32_t slc_busy_places(const slc_slot_model_parts *parts)
{
    return parts->slots + 1;
}
static inline uint32_t slc_busy_place(const slc_slot_model_parts *parts, uint32_t position)
{
    return position & 1 ? parts->slots : position / 2 % parts->slots;
}

/* What of the thread's lane all of a stream takes. */
static inline double slc_stream_thread_s(const slc_stream *stream)
{
    return stream->thread_s + (stream->awaited ? stream->seconds : 0);
}

/* What all of a stream takes when nothing runs beside it. */
static inline double slc_stream_alone_s(const slc_stream *stream)
{
    return stream->seconds + stream->thread_s;
}

/* Seconds of the agreement where it stands exposed: a unit of the first layer is reduced behind the step's last slot
 * and updated, behind the agreement, before the next one's first. Else it may be beside slots. */
double slc_agreement_s(const slc_slot_model_parts *parts);

/* How many real slots a modelled slot stands for. */
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
/* What becomes of the strategies that are allowed: see slc_unit_strategy. */
static inline uint8_t slc_allowed_of(const slc_slot_request *request, uint32_t unit)
{
    uint8_t allowed = 0;
    for (int k = 0; k < SLC_STRATEGIES; k++)
        if (slc_has(request->allowed[unit], (slc_strategy)k))
            allowed |= (uint8_t)(1 << slc_unit_strategy(request->job, &request->job->units[unit], (slc_strategy)k));
    return allowed;
}
/* Is all of the step's gradient reduced within the step? */
static inline bool slc_reduced_in_step(const slc_job *job, const slc_unit *unit)
{
    return slc_updated_last(job, unit) || unit->role == SLC_UNIT_ROWS;
}

#endif
