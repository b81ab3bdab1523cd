/* All replicas of two stages send at the same time, as they do in a step. tests/engine/pipeline_test.c covers this
 * file. */
#include "lib/base/clock.h"
#include "lib/base/integer.h"
#include "lib/base/status.h"
#include "lib/engine/measure/measure.h"
#include "lib/engine/runtime.h"
#include "lib/plan/measured/fit_link.h"

#include <math.h>

enum { SHORT_BYTES = 64, LEAST_BYTES = 256, USUAL_BYTES = 64 << 10, MESSAGES = 9 };

/* Returns the bytes of a step's longest message from or to a stage of this rank, or USUAL_BYTES if that is more. */
static uint64_t longest_message(const sluice_runtime *rt)
{
    uint64_t longest = USUAL_BYTES;
    for (uint32_t c = 0; c < rt->job.channel_count; c++) {
        uint64_t bytes = 0;
        for (uint32_t i = 0; i < rt->stage.carried_count[c]; i++)
            bytes += rt->job.activations[rt->stage.carried[c][i]].bytes;
        longest = slc_most(longest, bytes / slc_most(rt->stage.carried_count[c] / rt->stage.transfers[c], 1));
    }
    return longest;
}

/* Makes one transfer. *seconds is the time until the message is there. */
static sluice_status transfer(sluice_runtime *rt, uint32_t channel, void *data, uint64_t bytes, double *seconds)
{
    const slc_channel_transfer message = {.data = data, .bytes = bytes, .what = "measurement"};
    const uint64_t began_ns = slc_clock_ns();
    rt->stage.next_transfer[channel]++;
    sluice_status status = slc_channel_submit(rt->stage.channels[channel], &message, 1, NULL);
    if (!status) status = slc_channel_wait(rt->stage.channels[channel], rt->stage.next_transfer[channel]);
    *seconds = slc_seconds(slc_clock_ns() - began_ns);
    return status;
}

static double shortest(const double *seconds)
{
    double least_s = seconds[0];
    for (uint32_t i = 1; i < MESSAGES; i++) least_s = fmin(least_s, seconds[i]);
    return least_s;
}

/* Raises found[0] to the seconds of a short message, found[1] to those of each byte more of a long one. For the latter
 * the fastest messages count, in which no other work held a thread up. */
static sluice_status measure_channel(sluice_runtime *rt, uint32_t channel, void *data, uint64_t bytes, double found[2])
{
    double short_s[MESSAGES], long_s[MESSAGES];
    sluice_status status = transfer(rt, channel, data, bytes, long_s); /* memory is touched for the first time */
    for (uint32_t i = 0; !status && i < MESSAGES; i++) {
        status = transfer(rt, channel, data, SHORT_BYTES, &short_s[i]);
        if (!status) status = transfer(rt, channel, data, bytes, &long_s[i]);
    }
    if (status) return status;
    const double byte_s = (shortest(long_s) - shortest(short_s)) / (double)(bytes - SHORT_BYTES);
    found[0] = fmax(found[0], slc_fit_median(short_s, MESSAGES));
    found[1] = fmax(found[1], byte_s);
    return SLUICE_OK;
}

sluice_status slc_measure_channels(sluice_runtime *rt, slc_link_line *out)
{
    uint64_t offset, room;
    void *data;
    double found[2] = {0};
    *out = (slc_link_line){0};
    sluice_status status = slc_measure_find_stretch(rt, &offset, &room);
    double sizes[2] = {-(double)room, (double)longest_message(rt)};
    if (!status) status = slc_measure_slowest(rt, sizes, 2);
    if (status) return status;
    const uint64_t bytes = slc_least((uint64_t)-sizes[0], (uint64_t)sizes[1]) / 64 * 64;
    if (bytes < LEAST_BYTES) return SLUICE_OK;
    status = slc_arena_claim(rt->memory.arena, SLC_MEMORY_REPLANNING, "measured messages", offset, bytes, &data);
    for (uint32_t cut = 0; !status && cut + 1 < rt->stage.stages * rt->stage.now->cut.chunks; cut++) {
        status = sluice_world_barrier(rt->world);
        for (uint32_t c = 0; !status && c < rt->job.channel_count; c++)
            if (rt->job.channels[c].number == 2 * cut) status = measure_channel(rt, c, data, bytes, found);
    }
    if (!status) status = slc_measure_slowest(rt, found, 2);
    if (!status) *out = (slc_link_line){found[0], found[1] > 0 ? 1 / found[1] : 0};
    sluice_status released = slc_arena_release(rt->memory.arena, offset, bytes);
    return status ? status : released;
}
