/* The ends of a job's ranks, in one line. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { SLC_END_UNKNOWN = -1 };

typedef struct {
    int place;   /* 1: the first rank that failed, 2: the next; 0: it did not fail */
    bool killed; /* by signal number `number`; else `number` is its exit code */
    int number;  /* SLC_END_UNKNOWN: it has ended, and nobody knows how */
} slc_rank_end;

/* Writes who failed after the first `after` failures, and how: the earliest first, equal ends together, as "rank 2 was
 * killed by signal 9 (Killed); ranks 0-1 ended with exit code 1". Returns how many kinds of end it told. */
int slc_rank_ends_line(const slc_rank_end *ends, int ranks, int after, char *out, size_t bytes);
