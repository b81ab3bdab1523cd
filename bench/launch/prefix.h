/* Passes the output of a rank on, a whole line at a time, with "[rank] " in front. Nothing here waits: if the queue has
 * no room, the rank's lines stay here, then in its pipe, and in the end the rank waits. One thread. */
#pragma once

#include "bench/launch/output_queue.h"

enum { SLC_PREFIX_LINE_BYTES = 1 << 16 }; /* a longer line is passed on in pieces */

typedef struct {
    int rank;
    int from;             /* owned, non-blocking; -1: it has ended */
    slc_output_queue *to; /* not owned */
    bool blocked;         /* a complete line waits for room */
    size_t left;          /* bytes that are still to be read from `from` */
    size_t used;
    char *line; /* bytes that were read: lines that wait, and the last, unfinished one */
} slc_prefix_stream;

/* Takes ownership of `from` if it succeeds. Errors: MEMORY. */
sluice_status slc_prefix_init(slc_prefix_stream *stream, int rank, int from, slc_output_queue *to);
void slc_prefix_fini(slc_prefix_stream *stream);
/* Returns whether to wait for input; if not, and the stream is not at its end, it waits for room in the queue. */
static inline bool slc_prefix_wants_input(const slc_prefix_stream *stream)
{
    return stream->from >= 0 && !stream->blocked;
}
/* Passes on the lines that waited if there is room now, then reads once and passes on the complete lines; at the end
 * also the last, unfinished one. */
void slc_prefix_pass_on(slc_prefix_stream *stream);
/* Call it when the rank has ended: its last output is what lies in the pipe now. A process that has left its group and
 * holds the other end open may write later, and nobody waits for that. */
void slc_prefix_limit_to_what_is_there(slc_prefix_stream *stream);
bool slc_prefix_is_at_end(const slc_prefix_stream *stream);
