/* Lanes of two ranks in one process, which use each other's memory at the same addresses: the thread sanitizer sees all
 * that they do. Each rank is told directly, instead of by rendezvous and attaching, where its neighbour's memory is. */
#pragma once

#include "lib/comm/lane/lane.h"

enum { LANE_RANKS = 2 };

typedef struct {
    int rank;
    slc_control_page page;
    slc_neighbour peers[LANE_RANKS];
    int list[LANE_RANKS];
    slc_neighbours neighbours;
    slc_failure failure;
    slc_transport transport;
    slc_history history;
    slc_segment segment; /* the test makes it before it opens a rank */
    slc_comm comm;
} lane_rank;

/* Opens the lane of a rank among all of them. An error fails the test. */
void lane_rank_open(lane_rank *const all[LANE_RANKS], int rank, slc_device *device);
/* Closes the lane, and destroys the segment. */
void lane_rank_close(lane_rank *r);
