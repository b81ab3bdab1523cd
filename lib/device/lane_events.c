/* streams_test.c covers this file. */
#include "lib/device/lane_events.h"

#include "lib/base/status.h"

#include <stdlib.h>

sluice_status slc_lane_events_create(slc_device *device, uint32_t places, slc_lane_events *out)
{
    *out = (slc_lane_events){0};
    if (!slc_device_runs_ahead(device)) return SLUICE_OK;
    out->events = calloc(places, sizeof *out->events);
    if (!out->events) return slc_error(SLUICE_ERR_MEMORY, "%u events of a lane", places);
    out->places = places;
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < places; i++) status = slc_event_create(device, &out->events[i]);
    if (status) slc_lane_events_destroy(out);
    return status;
}

void slc_lane_events_destroy(slc_lane_events *ring)
{
    for (uint32_t i = 0; i < ring->places; i++) slc_event_destroy(&ring->events[i]);
    free(ring->events);
    *ring = (slc_lane_events){0};
}

sluice_status slc_lane_events_record(slc_lane_events *ring, sluice_stream *stream, uint32_t n)
{
    return ring->events ? slc_event_record(stream, &ring->events[n % ring->places]) : SLUICE_OK;
}

sluice_status slc_lane_events_wait(const slc_lane_events *ring, sluice_stream *stream, uint32_t count)
{
    return ring->events ? slc_stream_wait_event(stream, &ring->events[(count - 1) % ring->places]) : SLUICE_OK;
}

sluice_status slc_lane_events_synchronize(const slc_lane_events *ring, uint32_t count)
{
    return ring->events ? slc_event_synchronize(&ring->events[(count - 1) % ring->places]) : SLUICE_OK;
}
