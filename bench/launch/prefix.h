/* Passes the output of a rank on, a whole line at a time, with "[rank] " in front. Nothing here waits: where the queue
 * has no room the rank's lines stay here, then in its pipe, and in the end the rank waits. */
#ifndef SLC_BENCH_PREFIX_H
#define SLC_BENCH_PREFIX_H

#include "bench/launch/output_queue.h"

enum { SLC_PREFIX_LINE_BYTES = 1 << 16 }; /* a longer line is passed on in pieces */

typedef struct {
    int rank;
    int from;             /* owned, not blocking; -1 once it is at its end */
    slc_output_queue *to; /* not owned */
    bool blocked;         /* a line of `line` waits for room */
    size_t left;          /* bytes that are still of interest in `from` */
    size_t used;
    char *line; /* what was read: lines that wait, and the last, unfinished one */
} slc_prefix_stream;

/* Takes `from` when it succeeds. Errors: MEMORY. */
sluice_status slc_prefix_init(slc_prefix_stream *stream, int rank, int from, slc_output_queue *to);
void slc_prefix_fini(slc_prefix_stream *stream);
/* Whether to wait for something to read; else, if it is not at its end, for room in the queue. */
static inline bool slc_prefix_wants_input(const slc_prefix_stream *stream)
{
    return stream->from >= 0 && !stream->blocked;
}
/* Passes on what waited if there is room now, then reads once and passes on the lines that are complete; at the end the
 * last too. */
void slc_prefix_pass_on(slc_prefix_stream *stream);
/* The rank has ended: what lies in the pipe is its last output. What left its group and holds the other end open can
 * write later, and nobody waits for that. */
void slc_prefix_limit_to_what_is_there(slc_prefix_stream *stream);
bool slc_prefix_is_at_end(const slc_prefix_stream *stream);

#endif
