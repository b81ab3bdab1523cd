/* Times iterations: by the host's clock, or on a GPU by events in the stream in which operations work. */
#pragma once

#include "lib/device/device.h"

typedef struct {
    sluice_stream *stream; /* NULL: the host's clock tells */
    slc_event *events;     /* [most + 1]: when they began, and the end of each */
    uint32_t most, noted;  /* noted: ends since begin */
    /* Times since slc_iterations_clear. On the host the communication thread writes them while operations run. */
    uint64_t began_ns, ended_ns, shortest_ns, longest_ns;
} slc_iterations;

/* Makes room for `most` iterations, at most, between begin and end. `stream` outlives *out, for which the caller calls
 * slc_iterations_fini, also after an error. Errors: MEMORY, those of the device. */
sluice_status slc_iterations_init(sluice_stream *stream, uint32_t most, slc_iterations *out);
void slc_iterations_fini(slc_iterations *iterations); /* a zeroed one is allowed */

/* Forgets the shortest and the longest. */
void slc_iterations_clear(slc_iterations *iterations);
/* slc_iterations_begin: the first iteration begins now, and nothing is under way. slc_iterations_note: an iteration has
 * ended, or, on a GPU, all of its work is in the stream; it is called on the thread that issues the work.
 * slc_iterations_done: returns true if a GPU has done all that was noted; nobody may note meanwhile.
 * slc_iterations_end: is called when all iterations are done; *seconds becomes the time since begin, on a GPU until the
 * last end. */
sluice_status slc_iterations_begin(slc_iterations *iterations);
sluice_status slc_iterations_note(slc_iterations *iterations);
bool slc_iterations_done(const slc_iterations *iterations);
sluice_status slc_iterations_end(slc_iterations *iterations, double *seconds);
