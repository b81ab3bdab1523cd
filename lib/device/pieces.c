/* Times are counted from an event at the begin, and are read when an event's place is needed again. */
#include "lib/device/pieces.h"

#include "lib/base/status.h"

#include <stdlib.h>

enum { AHEAD = 4, FIRST_ROOM = 256 };

struct slc_pieces {
    sluice_stream *stream;
    slc_event begin, ends[AHEAD];
    double *at_s; /* the end of each piece that was read */
    uint64_t noted, read, room;
};

sluice_status slc_pieces_create(sluice_stream *stream, slc_pieces **out)
{
    *out = NULL;
    if (!slc_device_runs_ahead(stream->device))
        return slc_error(SLUICE_ERR_UNSUPPORTED, "pieces of work: the host's are told by its clock");
    slc_pieces *pieces = calloc(1, sizeof *pieces);
    if (!pieces) return slc_error(SLUICE_ERR_MEMORY, "pieces of work");
    pieces->stream = stream;
    sluice_status status = slc_event_create(stream->device, &pieces->begin);
    for (int i = 0; !status && i < AHEAD; i++) status = slc_event_create(stream->device, &pieces->ends[i]);
    if (!status) status = slc_event_record(stream, &pieces->begin);
    if (!status) status = slc_event_synchronize(&pieces->begin);
    if (status)
        slc_pieces_destroy(pieces);
    else
        *out = pieces;
    return status;
}

void slc_pieces_destroy(slc_pieces *pieces)
{
    if (!pieces) return;
    slc_event_destroy(&pieces->begin);
    for (int i = 0; i < AHEAD; i++) slc_event_destroy(&pieces->ends[i]);
    free(pieces->at_s);
    free(pieces);
}

static sluice_status make_room(slc_pieces *pieces)
{
    if (pieces->read < pieces->room) return SLUICE_OK;
    const uint64_t room = pieces->room ? 2 * pieces->room : FIRST_ROOM;
    double *at_s = realloc(pieces->at_s, room * sizeof *at_s);
    if (!at_s) return slc_error(SLUICE_ERR_MEMORY, "times of %llu pieces", (unsigned long long)room);
    pieces->at_s = at_s;
    pieces->room = room;
    return SLUICE_OK;
}

static sluice_status read_oldest(slc_pieces *pieces)
{
    slc_event *end = &pieces->ends[pieces->read % AHEAD];
    sluice_status status = make_room(pieces);
    if (!status) status = slc_event_synchronize(end);
    if (!status) status = slc_event_elapsed(&pieces->begin, end, &pieces->at_s[pieces->read]);
    if (!status) pieces->read++;
    return status;
}

sluice_status slc_pieces_note(slc_pieces *pieces)
{
    sluice_status status = pieces->noted - pieces->read == AHEAD ? read_oldest(pieces) : SLUICE_OK;
    if (!status) status = slc_event_record(pieces->stream, &pieces->ends[pieces->noted % AHEAD]);
    if (!status) pieces->noted++;
    return status;
}

sluice_status slc_pieces_wait(slc_pieces *pieces)
{
    sluice_status status = SLUICE_OK;
    while (!status && pieces->read < pieces->noted) status = read_oldest(pieces);
    return status;
}

sluice_status slc_pieces_between(const slc_pieces *pieces, const slc_event *from, const slc_event *to, double *count)
{
    double from_s = 0, to_s = 0, begun_s = 0;
    *count = 0;
    sluice_status status = slc_event_elapsed(&pieces->begin, from, &from_s);
    if (!status) status = slc_event_elapsed(&pieces->begin, to, &to_s);
    for (uint64_t i = 0; !status && i < pieces->read; i++) {
        const double end_s = pieces->at_s[i], first_s = begun_s > from_s ? begun_s : from_s;
        const double last_s = end_s < to_s ? end_s : to_s;
        if (last_s > first_s) *count += (last_s - first_s) / (end_s - begun_s);
        begun_s = end_s;
    }
    return status;
}

double slc_pieces_mean_s(const slc_pieces *pieces)
{
    if (pieces->read < 2) return 0;
    return (pieces->at_s[pieces->read - 1] - pieces->at_s[0]) / (double)(pieces->read - 1);
}
