/* A stream that is kept busy, to show what other streams take from it, and it from them: pieces of work are queued one
 * after the other, a few ahead of the device, and the end of each is noted. The number of pieces that were done between
 * two events is then known, whichever streams these are of. For devices that run ahead; on the host a clock tells it.
 */
#pragma once

#include "lib/device/device.h"

typedef struct slc_pieces slc_pieces;

/* The first piece begins now. The stream outlives *out, which the caller destroys. One thread uses it. Errors:
 * UNSUPPORTED (the host), MEMORY, those of the device. */
sluice_status slc_pieces_create(sluice_stream *stream, slc_pieces **out);
void slc_pieces_destroy(slc_pieces *pieces); /* NULL is allowed */

/* Notes that the work which the caller has queued since the last call is a piece. Waits while too many before it are
 * not done, so that the queue stays short. Errors: MEMORY, those of the device. */
sluice_status slc_pieces_note(slc_pieces *pieces);

/* Waits until all pieces are done. */
sluice_status slc_pieces_wait(slc_pieces *pieces);

/* Tell what pieces took, after slc_pieces_wait. between: *count is the number of pieces that were done between two
 * events, both done and later than create, with the shares of those that an event cuts. mean: seconds of a piece, but
 * for the first, before which the stream was idle; 0 if there are fewer than two. */
sluice_status slc_pieces_between(const slc_pieces *pieces, const slc_event *from, const slc_event *to, double *count);
double slc_pieces_mean_s(const slc_pieces *pieces);
