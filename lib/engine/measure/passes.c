/* The computations of an exchange, timed on a tensor made up for it in memory that nobody uses, because plans consider
 * onebit before any unit has been onebit. On a device that runs ahead events tell the times, and the tensor grows until
 * a pass lasts long enough for them. measure_link_test.c covers this file. */
#include "lib/engine/measure/measure.h"

#include "lib/base/clock.h"
#include "lib/plan/measured/fit_link.h"
#include "lib/kernels/adamw/adamw.h"
#include "lib/kernels/compress/compress_group.h"

enum { LARGEST = 1 << 20, LARGEST_AHEAD = 1 << 24, FIRST_AHEAD = 1 << 14, SMALLEST = 1 << 12, REPETITIONS = 5 };
static const double long_enough_s = 50e-6; /* of the shortest pass on a device that runs ahead */

/* A tensor and everything that its exchange needs. */
typedef struct {
    sluice_stream *stream;
    slc_compress_shape shape;
    float *gradient, *momentum, *value, *exp_avg_sq;
    slc_residue worker, server;
    unsigned char *packets, *results;
    uint64_t stride;
    bool ahead;
    slc_event begin, end; /* of a pass, if the device runs ahead */
} bench;

/* Hands out memory; without any it only counts. */
static void *hand_out(unsigned char *memory, uint64_t *used, uint64_t bytes)
{
    void *at = memory ? memory + *used : NULL;
    *used += (bytes + 63) / 64 * 64;
    return at;
}

static uint64_t lay_out(bench *b, unsigned char *memory)
{
    const slc_compress_shape *shape = &b->shape;
    uint64_t used = 0, chunk = slc_compress_chunk(shape), scales = slc_compress_scales(shape);
    b->stride = slc_compress_stride(shape);
    b->gradient = hand_out(memory, &used, shape->count * sizeof(float));
    b->momentum = hand_out(memory, &used, shape->count * sizeof(float));
    b->value = hand_out(memory, &used, shape->count * sizeof(float));
    b->exp_avg_sq = hand_out(memory, &used, shape->count * sizeof(float));
    b->worker.sum = hand_out(memory, &used, shape->ranks * chunk * sizeof(float));
    b->worker.scale = hand_out(memory, &used, shape->ranks * scales * sizeof(float));
    b->server.sum = hand_out(memory, &used, chunk * sizeof(float));
    b->server.scale = hand_out(memory, &used, scales * sizeof(float));
    b->worker.bins = hand_out(memory, &used, SLC_NORM_BINS * sizeof(int64_t));
    b->server.bins = hand_out(memory, &used, SLC_NORM_BINS * sizeof(int64_t));
    b->packets = hand_out(memory, &used, shape->ranks * b->stride);
    b->results = hand_out(memory, &used, shape->ranks * b->stride);
    return used;
}

static sluice_status compress(const bench *b)
{
    const slc_compress_input input = {.gradient_dtype = SLUICE_FP32,
                                      .momentum_dtype = SLUICE_FP32,
                                      .gradient = b->gradient,
                                      .momentum = b->momentum,
                                      .gradient_factor = 1,
                                      .factor = 0.9,
                                      .rest = 0.1};
    return slc_compress_worker(b->stream, &b->shape, &input, &b->worker, b->packets, b->stride);
}

/* Averages one chunk, from as many packets as there are ranks. */
static sluice_status average(const bench *b)
{
    enum { RANKS_MAX = 64 };
    const void *packets[RANKS_MAX];
    for (uint32_t r = 0; r < b->shape.ranks; r++) packets[r] = b->packets + r * b->stride;
    const slc_compress_served chunk = {
        .shape = &b->shape, .packets = packets, .server = &b->server, .bins = b->server.bins, .packet = b->results};
    sluice_status status = slc_fill_zero(b->stream, b->server.bins, SLC_NORM_BINS * sizeof *b->server.bins);
    if (!status) status = slc_compress_server(b->stream, &chunk, 0, slc_compress_chunk(&b->shape));
    return status ? status : slc_compress_server_end(b->stream, &chunk);
}

static sluice_status apply(const bench *b)
{
    const slc_adamw_settings settings = slc_adamw_usual_settings();
    const slc_frozen_range range = {.count = b->shape.count,
                                    .value = b->value,
                                    .momentum = b->momentum,
                                    .momentum_dtype = SLUICE_FP32,
                                    .exp_avg_sq = b->exp_avg_sq,
                                    .mask = true};
    const slc_compress_results results = {
        .shape = &b->shape, .packets = b->results, .stride = b->stride, .count = b->shape.count};
    return slc_compress_apply(b->stream, &settings, &results, &range, NULL);
}

/* Seconds of one pass. */
static sluice_status time_pass(bench *b, sluice_status (*pass)(const bench *), double *seconds)
{
    const uint64_t began_ns = slc_clock_ns();
    sluice_status status = b->ahead ? slc_event_record(b->stream, &b->begin) : SLUICE_OK;
    if (!status) status = pass(b);
    if (!status && b->ahead) status = slc_event_record(b->stream, &b->end);
    if (!status) status = slc_stream_synchronize(b->stream);
    *seconds = slc_seconds(slc_clock_ns() - began_ns);
    return status || !b->ahead ? status : slc_event_elapsed(&b->begin, &b->end, seconds);
}

/* Fills the arrays. They are zeroed; on the host some get other numbers, with which a pass takes its usual time. */
static sluice_status fill(bench *b, unsigned char *memory)
{
    sluice_status status = slc_fill_zero(b->stream, memory, lay_out(b, memory));
    if (!status) status = slc_stream_synchronize(b->stream);
    for (uint64_t i = 0; !status && !b->ahead && i < b->shape.count; i++) b->gradient[i] = b->exp_avg_sq[i] = 1;
    return status;
}

/* Times all passes on a tensor of the shape, and gives the shortest one's seconds. */
static sluice_status time_passes(bench *b, unsigned char *memory, double s_per_element[SLC_MEASURE_PASSES],
                                 double *shortest_s)
{
    sluice_status (*const passes[SLC_MEASURE_PASSES])(const bench *) = {compress, apply, average};
    double seconds[SLC_MEASURE_PASSES][REPETITIONS];
    sluice_status status = fill(b, memory);
    const double elements[] = {(double)b->shape.count, (double)b->shape.count, (double)slc_compress_chunk(&b->shape)};
    for (int i = 0; !status && i < REPETITIONS; i++)
        for (int p = 0; !status && p < SLC_MEASURE_PASSES; p++) status = time_pass(b, passes[p], &seconds[p][i]);
    *shortest_s = 0;
    for (int p = 0; !status && p < SLC_MEASURE_PASSES; p++) {
        const double median_s = slc_fit_median(seconds[p], REPETITIONS);
        if (!p || median_s < *shortest_s) *shortest_s = median_s;
        s_per_element[p] = median_s / elements[p];
    }
    return status;
}

/* Measures the passes on the largest tensor that fits, or on a device that runs ahead on a short one that grows until
 * they take long enough. */
static sluice_status measure(bench *b, unsigned char *memory, uint64_t bytes, double s_per_element[SLC_MEASURE_PASSES])
{
    double shortest_s = 0;
    b->shape.count = b->ahead ? FIRST_AHEAD : LARGEST;
    while (b->shape.count >= SMALLEST && lay_out(b, NULL) > bytes) b->shape.count /= 2;
    if (b->shape.count < SMALLEST) return SLUICE_OK;
    sluice_status status = time_passes(b, memory, s_per_element, &shortest_s);
    while (!status && b->ahead && shortest_s < long_enough_s && b->shape.count < LARGEST_AHEAD) {
        b->shape.count *= 2;
        if (lay_out(b, NULL) > bytes) break;
        status = time_passes(b, memory, s_per_element, &shortest_s);
    }
    return status;
}

sluice_status slc_measure_passes(sluice_stream *stream, uint32_t ranks, void *memory, uint64_t bytes,
                                 double s_per_element[SLC_MEASURE_PASSES])
{
    /* A single rank exchanges nothing, but measures for others. More ranks only cost the server more bits. */
    bench b = {.stream = stream,
               .shape = {.ranks = ranks < 2    ? 2
                                  : ranks > 64 ? 64
                                               : ranks},
               .ahead = slc_device_runs_ahead(stream->device)};
    sluice_status status = slc_event_create(stream->device, &b.begin);
    if (!status) status = slc_event_create(stream->device, &b.end);
    if (!status) status = measure(&b, memory, bytes, s_per_element);
    slc_event_destroy(&b.begin);
    slc_event_destroy(&b.end);
    return status;
}
