/* tests/command/measure/perf_test.sh covers this file. The GPU's part is in
 * tests/command/gpu/several_gpus_link_test.sh. */
#include "bench/perf/iterations.h"

#include "lib/base/clock.h"
#include "lib/base/status.h"

#include <stdlib.h>

sluice_status slc_iterations_init(sluice_stream *stream, uint32_t most, slc_iterations *out)
{
    *out = (slc_iterations){0};
    slc_iterations_clear(out);
    if (!slc_device_runs_ahead(stream->device)) return SLUICE_OK;
    out->stream = stream;
    out->events = calloc((size_t)most + 1, sizeof *out->events);
    if (!out->events) return slc_error(SLUICE_ERR_MEMORY, "events of %u iterations", most);
    out->most = most;
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i <= most; i++) status = slc_event_create(stream->device, &out->events[i]);
    return status;
}

void slc_iterations_fini(slc_iterations *iterations)
{
    for (uint32_t i = 0; iterations->events && i <= iterations->most; i++) slc_event_destroy(&iterations->events[i]);
    free(iterations->events);
    *iterations = (slc_iterations){0};
}

void slc_iterations_clear(slc_iterations *iterations)
{
    iterations->shortest_ns = UINT64_MAX;
    iterations->longest_ns = 0;
}

static void add_time(slc_iterations *iterations, uint64_t took_ns)
{
    if (took_ns < iterations->shortest_ns) iterations->shortest_ns = took_ns;
    if (took_ns > iterations->longest_ns) iterations->longest_ns = took_ns;
}

sluice_status slc_iterations_begin(slc_iterations *iterations)
{
    iterations->noted = 0;
    iterations->began_ns = iterations->ended_ns = slc_clock_ns();
    return iterations->stream ? slc_event_record(iterations->stream, &iterations->events[0]) : SLUICE_OK;
}

sluice_status slc_iterations_note(slc_iterations *iterations)
{
    if (iterations->stream)
        return iterations->noted < iterations->most
                   ? slc_event_record(iterations->stream, &iterations->events[++iterations->noted])
                   : SLUICE_OK;
    const uint64_t now = slc_clock_ns();
    add_time(iterations, now - iterations->ended_ns);
    iterations->ended_ns = now;
    return SLUICE_OK;
}

bool slc_iterations_done(const slc_iterations *iterations)
{
    return !iterations->stream || slc_event_done(&iterations->events[iterations->noted]);
}

sluice_status slc_iterations_end(slc_iterations *iterations, double *seconds)
{
    *seconds = slc_seconds(slc_clock_ns() - iterations->began_ns);
    if (!iterations->stream) return SLUICE_OK;
    double one_s = 0;
    sluice_status status = SLUICE_OK;
    for (uint32_t i = 0; !status && i < iterations->noted; i++) {
        status = slc_event_elapsed(&iterations->events[i], &iterations->events[i + 1], &one_s);
        add_time(iterations, one_s > 0 ? (uint64_t)(1e9 * one_s) : 0);
    }
    if (!status) status = slc_event_elapsed(&iterations->events[0], &iterations->events[iterations->noted], seconds);
    return status;
}
