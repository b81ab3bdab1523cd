/* Copies memory in several plain ways: which of them is the fastest depends on the processor, on its C library and on
 * the size.
 * tests/command/measure/perf_test.sh covers this file. */
#include "bench/perf/plain_copy.h"

#include "lib/base/clock.h"
#include "lib/base/integer.h"
#include "lib/kernels/copy/copy.h"

#include <string.h>

static void by_memcpy(sluice_stream *stream, const slc_plain_piece *piece)
{
    (void)stream;
    memcpy(piece->to, piece->from, piece->bytes);
}

/* Copies by pieces, for which the C library chooses the loop that it uses for what fits a cache. */
static void by_pieces(sluice_stream *stream, const slc_plain_piece *piece)
{
    const uint64_t most = 128 << 10;
    (void)stream;
    for (uint64_t at = 0; at < piece->bytes; at += most)
        memcpy((char *)piece->to + at, (const char *)piece->from + at, slc_least(piece->bytes - at, most));
}

static void past_the_cache(sluice_stream *stream, const slc_plain_piece *piece)
{
    (void)slc_copy_past_cache(stream, piece->to, piece->from, piece->bytes); /* it cannot fail on the host */
}

typedef void copy_way(sluice_stream *stream, const slc_plain_piece *piece);
static copy_way *const ways[SLC_PLAIN_WAYS] = {by_memcpy, by_pieces, past_the_cache};

sluice_status slc_plain_copy(sluice_world *world, sluice_stream *stream, const slc_plain_piece *pieces, uint64_t count,
                             uint32_t iterations, double seconds[SLC_PLAIN_WAYS])
{
    sluice_status status = sluice_world_barrier(world);
    for (int w = 0; !status && w < SLC_PLAIN_WAYS; w++) {
        uint64_t start = slc_clock_ns();
        for (uint32_t i = 0; i < iterations; i++)
            for (uint64_t p = 0; p < count; p++) ways[w](stream, &pieces[p]);
        if (count) seconds[w] += slc_seconds(slc_clock_ns() - start);
        status = sluice_world_barrier(world); /* no rank reads another's memory any more */
    }
    return status;
}

sluice_status slc_plain_copy_fastest(sluice_world *world, double seconds[SLC_PLAIN_WAYS], double *fastest)
{
    sluice_status status = sluice_world_all_reduce(world, seconds, SLC_PLAIN_WAYS);
    *fastest = seconds[0];
    for (int w = 1; w < SLC_PLAIN_WAYS; w++)
        if (seconds[w] < *fastest) *fastest = seconds[w];
    return status;
}
