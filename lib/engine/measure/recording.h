/* A recording of what ran when, for timelines. It is off unless asked for. There are two rings of fixed size, one
 * written by the thread that computes, one by the communication thread; a moment is a clock reading and some words. The
 * 2 x SLC_RECORDING_MOMENTS moments are not counted in the budget. */
#pragma once

#include "lib/base/clock.h"
#include "lib/plan/plan.h"

#include <sluice/trace.h>
#include <stddef.h>

enum { SLC_RECORDING_MOMENTS = 1 << 15 }; /* per lane; older ones are written over */

typedef enum { SLC_MOMENT_COMPUTE, SLC_MOMENT_COMMUNICATION, SLC_MOMENT_LANES } slc_moment_lane;

typedef enum {
    SLC_MOMENT_WAITS,      /* a slot's begin was called, or an update on the compute lane is next */
    SLC_MOMENT_BEGINS,     /* the slot or update has waited and claimed; an operation's waits are over and it is open,
                              and so a message's */
    SLC_MOMENT_WORKS,      /* an update begins to compute on the communication thread */
    SLC_MOMENT_WORKED,     /* that update has computed */
    SLC_MOMENT_ENDS,       /* the slot or update has ended; an operation and all before it are over; a message is */
    SLC_MOMENT_STEP_WAITS, /* on the compute lane: the step's end waits for an operation */
    SLC_MOMENT_STEP_WAITED,
    SLC_MOMENT_RECOMPUTED /* a slot has run its forward again; a mark (measure/marks.h), never in a recording */
} slc_moment_kind;

typedef struct {
    uint64_t ns;         /* slc_clock_ns */
    uint32_t plan, pass; /* plan: as in sluice_step_report; pass: of the training program, counted up */
    uint32_t item;
    uint32_t kind; /* slc_moment_kind */
} slc_moment;

typedef struct slc_recording {
    slc_moment *moments[SLC_MOMENT_LANES];
    uint64_t written[SLC_MOMENT_LANES]; /* ever */
} slc_recording;

sluice_status slc_recording_create(slc_recording **out);
void slc_recording_destroy(slc_recording *recording); /* NULL is allowed */

/* Adds a moment, of now or of a time. Each lane is written by one thread. `recording` NULL: does nothing. */
static inline void slc_recording_put_at(slc_recording *recording, slc_moment_lane lane, slc_moment moment, uint64_t ns)
{
    if (!recording) return;
    moment.ns = ns;
    recording->moments[lane][recording->written[lane]++ % SLC_RECORDING_MOMENTS] = moment;
}

static inline void slc_recording_put(slc_recording *recording, slc_moment_lane lane, slc_moment moment)
{
    if (recording) slc_recording_put_at(recording, lane, moment, slc_clock_ns());
}

/* Copies the moments of a lane to `out`, oldest first, and returns how many: at most SLC_RECORDING_MOMENTS. Nobody may
 * write meanwhile. */
size_t slc_recording_read(const slc_recording *recording, slc_moment_lane lane, slc_moment *out);

/* The recording of a runtime and its plan. Called between steps with everything complete (sluice_runtime_sync). The
 * pointers are the runtime's, valid until its next call. */
typedef struct {
    const slc_recording *recording; /* NULL: none */
    const slc_job *job;
    const slc_plan *plan;
    uint32_t plan_number;
    uint32_t stages, stage; /* of a pipeline, whose stages have jobs and plans of their own; 0: there is none */
} slc_recorded;
slc_recorded slc_engine_recorded(const sluice_runtime *rt);
/* Checks that a trace can be made now, with a place for its result. Errors: ORDER (before commit, in a step, nothing is
 * recorded), ARGUMENT. */
sluice_status slc_engine_recorded_check(sluice_runtime *rt, const void *result);
