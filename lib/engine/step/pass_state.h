/* A program that is made ready to run, and how far its passes have come. Private to lib/engine. */
#pragma once

#include "lib/base/gate.h"
#include "lib/comm/comm.h"
#include "lib/device/lane_events.h"
#include "lib/engine/step_state.h"
#include "lib/plan/plan.h"

#include <sluice/runtime.h>

typedef struct slc_pass slc_pass;

/* The argument of an operation's functions on the communication thread. */
typedef struct {
    sluice_runtime *rt;
    slc_pass *pass;
    uint32_t item;
    slc_step_state *step;
    uint32_t number; /* of its pass */
    /* The recording that notes it; NULL: none. The program may begin to record while the operation is under way. */
    struct slc_recording *recording;
    bool of_rows; /* it adds the gradients of rows to the table that the item has reduced (step/stage_rows.h) */
    bool goes_on; /* that is the next operation */
} slc_operation;

/* A message of a stage's pass (step/messages.h). */
typedef struct {
    sluice_runtime *rt;
    slc_pass *pass;
    uint32_t item;
    uint32_t number; /* of its pass */
} slc_message;

/* The items of a program that run in passes of one kind, by lane. */
typedef struct {
    uint32_t *operations; /* items that are operations, in order; the last reduction of a table comes twice, see
                             slc_operation.of_rows */
    uint32_t count;
    uint32_t late_end;  /* how many of them there are up to the last late one */
    uint32_t *computed; /* items of the compute lane, in order */
    uint32_t computed_count;
    uint32_t *ordinal; /* each item's position in its lane (the later of two), a message's in its channel; SLC_NONE: it
                          does not run */
} slc_lane_order;

/* Bits that say what waits for an item of the compute lane: any operation; messages of channel c are
 * SLC_AWAITING_CHANNEL << c. */
#define SLC_AWAITING_CHANNEL UINT64_C(1)
#define SLC_AWAITING_OPERATION (UINT64_C(1) << 63)
_Static_assert(SLC_STAGE_CHANNELS_MAX < 63, "each channel has a bit");

/* Extents are told apart up to so many parts of the longest sequence. */
enum { SLC_PASS_EXTENTS = 1 << 16 };

/* A program made ready to run: which claims begin and end at each item, operations in lane order. */
struct slc_pass {
    const slc_program *program;
    bool evaluate;
    uint32_t slot_count;
    uint32_t *slots; /* items that are slots, in order */
    slc_lane_order order[SLC_PASS_KINDS];
    uint32_t *begins, *begin_first; /* claims that begin at item i: begins[begin_first[i] .. begin_first[i+1]) */
    uint32_t *ends, *end_first;
    slc_operation *contexts[2]; /* of each operation, in passes of either parity; a late operation has the step of the
                                   other parity */
    char **what;                /* of each operation, for messages */
    uint64_t *awaiting;         /* [items] of the compute lane: what may start when it has ended, as SLC_AWAITING_* */

    /* Messages of a stage of a pipeline; without one there are none. */
    uint32_t *messages; /* items that are messages, in order */
    uint32_t message_count;
    slc_message *message_contexts[2];                  /* of each message, in passes of either parity */
    slc_gate_count *counts[2];                         /* what items wait for: item i's begin at first_count[i] */
    uint32_t *first_count;                             /* [items] */
    bool *unhurried;                                   /* [items] only the compute lane waits for this message */
    uint32_t sent;                                     /* messages of the running pass that are submitted */
    uint32_t transfer_base[2][SLC_STAGE_CHANNELS_MAX]; /* counts of each channel at the beginning of a pass */

    /* The pass that runs [0], and the one before [1]. */
    slc_pass_kind kind[2];
    uint32_t computed_base[2], operation_base[2]; /* counts of either lane at its beginning */
    bool has_previous;
    uint32_t parity;
    uint32_t number;    /* of the running pass, counted up */
    uint32_t submitted; /* operations of the running pass that are submitted */
    uint32_t computed;  /* items of the compute lane that it has finished */
    uint32_t quiet;     /* operations that can end before the next item of the compute lane does */

    /* Launches that steps have made in this program (slc_pass_note_launches). */
    bool *launched;                          /* [layers] it has run */
    uint64_t extents[SLC_PASS_EXTENTS / 64]; /* a bit for each part of the longest sequence: a step had that length */
    uint32_t launches_last;                  /* the last pass that launches something for the first time */
};

/* Counts over all passes. */
typedef struct {
    slc_gate computed;        /* finished items of the compute lane: slots, and updates that run there */
    uint32_t computed_posted; /* the same count, for the caller's thread */
    uint32_t next_operation;  /* number that the next submitted operation will get */
    slc_lane_events events;   /* of the compute lane's items, on a device that runs ahead */
} slc_lanes;

/* The compute lane's events: as many as operations may be in flight. */
enum { SLC_LANE_PLACES = 2048 };

/* Returns true if the running pass may launch kernels for the first time. It may if it is one of the first two of its
 * program, or one of the first two from a step on that runs a layer for the first time or has sequences of another
 * length: the late items of such a step run in the second. The training binary may have announced launches too, by
 * slc_pass_expect_launches. On a GPU a first launch may wait for all that the GPU has to do, and NCCL may wait for
 * the launch: so with several ranks no collective is under way then. */
static inline bool slc_pass_is_new(const slc_pass *pass)
{
    return pass->number <= 2 || pass->number <= pass->launches_last;
}

/* Returns true if the last step has left late items. */
static inline bool slc_pass_pending(const slc_pass *pass)
{
    const slc_lane_order *late = &pass->order[SLC_PASS_DRAIN];
    return pass->has_previous && (late->count || late->computed_count);
}
