/* A recording of what ran when, for timelines. It is off unless asked for. There are two rings of fixed size, one
 * written by the thread that computes, one by the communication thread; a record is a clock reading and some words. The
 * 2 x SLC_RECORDS records are not counted in the budget. */
#ifndef SLC_ENGINE_RECORDING_H
#define SLC_ENGINE_RECORDING_H

#include "lib/base/clock.h"
#include "lib/plan/plan.h"

#include <sluice/trace.h>
#include <stddef.h>

enum { SLC_RECORDS = 1 << 15 }; /* per lane; older ones are written over */

typedef enum { SLC_RECORD_COMPUTE, SLC_RECORD_COMMUNICATION, SLC_RECORD_LANES } slc_record_lane;

typedef enum {
    SLC_RECORD_WAITS,      /* a slot's begin was called, or an update on the compute lane is next */
    SLC_RECORD_BEGINS,     /* the slot or update has waited and claimed; an operation's waits are over and it is open */
    SLC_RECORD_WORKS,      /* an update begins to compute on the communication thread */
    SLC_RECORD_WORKED,     /* that update has computed */
    SLC_RECORD_ENDS,       /* the slot or update has ended; an operation and all before it are over */
    SLC_RECORD_STEP_WAITS, /* on the compute lane: the step's end waits for an operation */
    SLC_RECORD_STEP_WAITED,
    SLC_RECORD_RECOMPUTED /* a slot has run its forward again; a mark (measure/marks.h), never in a recording */
} slc_record_kind;

typedef struct {
    uint64_t ns;         /* slc_clock_ns */
    uint32_t plan, pass; /* plan: as in sluice_step_report; pass: of the training program, counted up */
    uint32_t item;
    uint32_t kind; /* slc_record_kind */
} slc_record;

typedef struct {
    slc_record *records[SLC_RECORD_LANES];
    uint64_t written[SLC_RECORD_LANES]; /* ever */
} slc_recording;

sluice_status slc_recording_create(slc_recording **out);
void slc_recording_destroy(slc_recording *recording); /* NULL is allowed */

/* Adds a record of now, or of a time. Each lane is written by one thread. `recording` NULL: does nothing. */
static inline void slc_record_put_at(slc_recording *recording, slc_record_lane lane, slc_record record, uint64_t ns)
{
    if (!recording) return;
    record.ns = ns;
    recording->records[lane][recording->written[lane]++ % SLC_RECORDS] = record;
}

static inline void slc_record_put(slc_recording *recording, slc_record_lane lane, slc_record record)
{
    if (recording) slc_record_put_at(recording, lane, record, slc_clock_ns());
}

/* Copies the records of a lane to `out`, oldest first, and returns how many: at most SLC_RECORDS. Nobody may write
 * meanwhile. */
size_t slc_recording_read(const slc_recording *recording, slc_record_lane lane, slc_record *out);

/* Begins to record. Called after commit, between steps. Errors: MEMORY, ORDER. */
sluice_status slc_engine_record(sluice_runtime *rt);

/* The recording of a runtime and its plan. Called between steps with everything complete (sluice_runtime_sync). The
 * pointers are the runtime's, valid until its next call. */
typedef struct {
    const slc_recording *recording; /* NULL: none */
    const slc_job *job;
    const slc_plan *plan;
    uint32_t plan_number;
} slc_recorded;
slc_recorded slc_engine_recorded(const sluice_runtime *rt);
/* Can a trace be made now, with a place for its result? Errors: ORDER (before commit, in a step, nothing is recorded),
 * ARGUMENT. */
sluice_status slc_engine_recorded_check(sluice_runtime *rt, const void *result);

#endif
