#include "tests/support/comm/lane_rank.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

enum { NOBODY = -1 };

void lane_rank_open(lane_rank *const all[LANE_RANKS], int rank, slc_device *device)
{
    lane_rank *r = all[rank];
    r->rank = rank;
    r->neighbours =
        (slc_neighbours){.rank = rank, .size = LANE_RANKS, .peers = r->peers, .list = r->list, .page = &r->page};
    r->neighbours.doorbell = NOBODY;
    for (int peer = 0; peer < LANE_RANKS; peer++) {
        r->peers[peer] = (slc_neighbour){.socket = peer == rank ? NOBODY : 0, .doorbell = NOBODY};
        r->peers[peer].page = &all[peer]->page;
        r->peers[peer].segment = all[peer]->segment;
        if (peer != rank) r->list[r->neighbours.count++] = peer;
    }
    slc_failure_init(&r->failure);
    assert_int_equal(slc_lane_init(&r->comm, rank, LANE_RANKS, &r->failure, &r->neighbours, &r->transport, &r->history),
                     SLUICE_OK);
    assert_int_equal(slc_stream_create(device, 1, &r->comm.attached.stream), SLUICE_OK);
    r->comm.attached.segment = &r->segment;
    r->comm.attached.base = r->segment.base;
    r->comm.attached.bytes = r->segment.bytes;
}

void lane_rank_close(lane_rank *r)
{
    slc_lane_fini(&r->comm);
    slc_failure_fini(&r->failure);
    slc_segment_destroy(&r->segment);
}
