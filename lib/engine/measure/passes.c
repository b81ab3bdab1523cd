/* The computations of an exchange, timed on a tensor made up for it in memory that nobody uses, because plans consider
 * onebit before any unit has been onebit. measure_link_test.c covers this file. */
#include "lib/engine/measure/measure.h"

#include "lib/base/clock.h"
#include "lib/plan/measured/fit_link.h"
#include "lib/kernels/adamw/adamw.h"
#include "lib/kernels/compress/compress_group.h"

#include <string.h>

enum { LARGEST = 1 << 20, SMALLEST = 1 << 12, REPETITIONS = 5 };

/* A tensor and everything that its exchange needs. */
typedef struct {
    sluice_stream *stream;
    slc_compress_shape shape;
    float *gradient, *momentum, *value, *exp_avg_sq;
    slc_residue worker, server;
    unsigned char *packets, *results;
    uint64_t stride;
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
    int64_t bins[SLC_NORM_BINS] = {0};
    for (uint32_t r = 0; r < b->shape.ranks; r++) packets[r] = b->packets + r * b->stride;
    const slc_compress_served chunk = {
        .shape = &b->shape, .packets = packets, .server = &b->server, .bins = bins, .packet = b->results};
    sluice_status status = slc_compress_server(b->stream, &chunk, 0, slc_compress_chunk(&b->shape));
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
    bool finite = true;
    return slc_compress_apply(b->stream, &settings, &results, &range, &finite);
}

sluice_status slc_measure_passes(sluice_stream *stream, uint32_t ranks, void *memory, uint64_t bytes,
                                 double s_per_element[SLC_MEASURE_PASSES])
{
    sluice_status (*const passes[SLC_MEASURE_PASSES])(const bench *) = {compress, apply, average};
    /* A single rank exchanges nothing, but measures for others. More ranks only cost the server more bits. */
    bench b = {.stream = stream, .shape = {.ranks = ranks < 2 ? 2 : ranks > 64 ? 64 : ranks}};
    sluice_status status = SLUICE_OK;
    b.shape.count = LARGEST;
    while (b.shape.count >= SMALLEST && lay_out(&b, NULL) > bytes) b.shape.count /= 2;
    if (b.shape.count < SMALLEST) return SLUICE_OK;
    memset(memory, 0, lay_out(&b, memory));
    for (uint64_t i = 0; i < b.shape.count; i++) b.gradient[i] = b.exp_avg_sq[i] = 1;
    const double elements[] = {(double)b.shape.count, (double)b.shape.count, (double)slc_compress_chunk(&b.shape)};
    double seconds[SLC_MEASURE_PASSES][REPETITIONS];
    for (int i = 0; !status && i < REPETITIONS; i++)
        for (int p = 0; !status && p < SLC_MEASURE_PASSES; p++) {
            uint64_t began_ns = slc_clock_ns();
            status = passes[p](&b);
            if (!status) status = slc_stream_synchronize(stream);
            seconds[p][i] = slc_seconds(slc_clock_ns() - began_ns);
        }
    for (int p = 0; !status && p < SLC_MEASURE_PASSES; p++)
        s_per_element[p] = slc_fit_median(seconds[p], REPETITIONS) / elements[p];
    return status;
}
