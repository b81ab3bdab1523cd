/* Passes the output of a rank on, a whole line at a time, with "[rank] " in front. */
#ifndef SLC_BENCH_PREFIX_H
#define SLC_BENCH_PREFIX_H

#include <stddef.h>

enum { SLC_PREFIX_LINE_BYTES = 1 << 16 }; /* a longer line is passed on in pieces */

typedef struct {
    int rank;
    int from; /* owned; -1 once it is at its end */
    int to;   /* not owned */
    int lost; /* errno of a write that failed: the ranks' work does not end for that */
    size_t used;
    char *line; /* the last, unfinished one */
} slc_prefix_stream;

void slc_prefix_init(slc_prefix_stream *stream, int rank, int from, int to);
void slc_prefix_fini(slc_prefix_stream *stream);
/* Reads once, blocking only when nothing is there, and writes the lines that are complete; at the end the last too. */
void slc_prefix_pass_on(slc_prefix_stream *stream);

#endif
