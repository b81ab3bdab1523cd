/* A lane is a thread that issues items in order, counts them, and posts the count. On a device that runs ahead of the
 * host the count says that an item is issued, not that it is done; a ring of events says the latter. A thread that
 * depends on an item waits for the count as on any device, then lets its own stream wait for the item's event.
 *
 * A place of the ring is used again after `places` items. A stream that waits for an item whose place has been used
 * again waits for that later item, which is issued too: it may wait longer than it must, but never for ever, because
 * issued work depends on work that was issued before it. */
#pragma once

#include "lib/device/device.h"

typedef struct {
    slc_event *events; /* NULL: an item that is issued is done */
    uint32_t places;
} slc_lane_events;

/* Makes a ring of `places` events, a power of two, if the device runs ahead; elsewhere there is nothing to make, and
 * the functions below do nothing. Errors: MEMORY, those of the device. slc_lane_events_destroy clears the struct, and
 * does nothing to a zeroed one. */
sluice_status slc_lane_events_create(slc_device *device, uint32_t places, slc_lane_events *out);
void slc_lane_events_destroy(slc_lane_events *ring);

/* Notes that all work of item number n is in `stream`. The lane's thread calls it before it posts the count n + 1,
 * because a stream that waits for an event that was never recorded waits for nothing. */
sluice_status slc_lane_events_record(slc_lane_events *ring, sluice_stream *stream, uint32_t n);
/* Lets `stream`, or the host, wait until the items before number `count`, which the lane has posted, are done. Any
 * thread. */
sluice_status slc_lane_events_wait(const slc_lane_events *ring, sluice_stream *stream, uint32_t count);
sluice_status slc_lane_events_synchronize(const slc_lane_events *ring, uint32_t count);
