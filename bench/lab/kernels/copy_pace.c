/* Copies memory in several ways. The fastest way depends on the processor and on its C library: memcpy's own choice,
 * its choice for pieces that fit the cache, the string instruction, or stores past the cache.
 * tests/command/measure/kernels_test.sh covers this file. */
#include "bench/lab/kernels/copy_pace.h"

#include "lib/base/clock.h"

#include <string.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

static void by_memcpy(char *to, const char *from, uint64_t bytes)
{
    memcpy(to, from, bytes);
}

static void by_pieces(char *to, const char *from, uint64_t bytes)
{
    const uint64_t piece = 128 << 10;
    for (uint64_t at = 0; at < bytes; at += piece) memcpy(to + at, from + at, bytes - at < piece ? bytes - at : piece);
}

#if defined(__x86_64__)
static void by_string(char *to, const char *from, uint64_t bytes)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

static void past_the_cache(char *to, const char *from, uint64_t bytes) /* page aligned, in whole lines */
{
    for (uint64_t at = 0; at < bytes; at += 64)
        for (uint64_t i = at; i < at + 64; i += 16)
            _mm_stream_si128((__m128i *)(void *)(to + i), _mm_load_si128((const __m128i *)(const void *)(from + i)));
    _mm_sfence();
}
#endif

static const struct {
    const char *name;
    void (*copy)(char *to, const char *from, uint64_t bytes);
} ways[] = {
    {"memcpy", by_memcpy},
    {"memcpy by 128 KiB", by_pieces},
#if defined(__x86_64__)
    {"rep movsb", by_string},
    {"non-temporal stores", past_the_cache},
#endif
};
enum { WAYS = sizeof ways / sizeof *ways };

static double seconds(slc_copy_pace *pace, uint32_t way)
{
    const uint64_t start_ns = slc_clock_read_ns(pace->clock);
    ways[way].copy(pace->to.base, pace->from.base, pace->bytes);
    return slc_seconds(slc_clock_read_ns(pace->clock) - start_ns);
}

double slc_copy_pace_seconds(slc_copy_pace *pace)
{
    return seconds(pace, pace->way);
}

const char *slc_copy_pace_name(const slc_copy_pace *pace)
{
    return ways[pace->way].name;
}

static void find_way(slc_copy_pace *pace, uint32_t rounds)
{
    double best = 0;
    for (uint32_t round = 0; round < rounds; round++)
        for (uint32_t way = 0; way < WAYS; way++) {
            double took = seconds(pace, way);
            if (best == 0 || took < best) best = took, pace->way = way;
        }
}

sluice_status slc_copy_pace_open(slc_device *device, uint64_t bytes, uint32_t rounds, clockid_t clock,
                                 slc_copy_pace *out)
{
    *out = (slc_copy_pace){.bytes = bytes & ~UINT64_C(63), .clock = clock};
    sluice_status status = slc_segment_create(device, bytes, &out->from);
    if (status) return status;
    status = slc_segment_create(device, bytes, &out->to);
    if (status) {
        slc_segment_destroy(&out->from);
        return status;
    }
    memset(out->from.base, 1, bytes), memset(out->to.base, 2, bytes);
    find_way(out, rounds);
    return SLUICE_OK;
}

void slc_copy_pace_close(slc_copy_pace *pace)
{
    if (!pace->bytes) return;
    slc_segment_destroy(&pace->from);
    slc_segment_destroy(&pace->to);
    *pace = (slc_copy_pace){0};
}
