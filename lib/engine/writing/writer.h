/* A thread that writes a rank's part of a checkpoint while steps run. It reads values and states where they lie, so the
 * caller's thread waits before it lets updates change what is not written yet; the plan says which update comes after
 * which slot. A zeroed writer has nothing to write. Functions are for the caller's thread unless they say otherwise.
 * Private to lib/engine. */
#pragma once

#include "lib/base/error_line.h"
#include "lib/base/gate.h"
#include "lib/comm/comm.h"

#include <pthread.h>
#include <sluice/status.h>
#include <stdbool.h>

typedef struct {
    sluice_status (*job)(void *context);
    void *context;
    const uint32_t *last_slots;
    uint32_t ranges;
    slc_gate written, ended;
    pthread_t thread;
    bool at_work; /* begun, and not ended */
    bool has_thread;
    uint64_t held_ns; /* slc_writer_wait has waited so long for this job */
    uint64_t took_ns; /* the job has taken so long; valid when it has ended */
    sluice_status status;
    char line[SLC_ERROR_BYTES];
} slc_writer;

/* Runs `job`, on a thread of its own if `behind` and if a thread can be started, else at once. The memory that the job
 * reads is cut into `ranges`, which it writes in order: range i is changed by updates that come after slot
 * last_slots[i] of the last micro-batch (ascending; SLC_NONE: no update changes it). last_slots is borrowed until the
 * writer ends. */
void slc_writer_begin(slc_writer *writer, sluice_status (*job)(void *context), void *context,
                      const uint32_t *last_slots, uint32_t ranges, bool behind);
/* Says whether the job runs on a thread of its own; else the caller waits for it, and other ranks want to hear from the
 * job. Any thread may ask while the job runs. */
bool slc_writer_runs_behind(const slc_writer *writer);
/* The job's thread: says that the first `ranges` ranges are written. A job that ends has read everything. */
void slc_writer_wrote(slc_writer *writer, uint32_t ranges);

/* Waits until everything is written that may be changed after `slot`; SLC_NONE: everything that is read from memory.
 * The other ranks hear that this one writes. */
void slc_writer_wait(slc_writer *writer, uint32_t slot, slc_comm *comm);
bool slc_writer_has_ended(const slc_writer *writer);
/* Waits for the end of the job and returns its status, with its line. */
sluice_status slc_writer_end(slc_writer *writer, slc_comm *comm);
