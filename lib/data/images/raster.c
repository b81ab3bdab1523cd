/* Resizing by a separable filter whose support grows with the image if it is made smaller, so that nothing is
 * skipped: as Pillow's Image.resize does (https://pillow.readthedocs.io, "Filters"), without rounding in between.
 * picture_test.c covers this file. */
#include "lib/data/images/raster.h"

#include "lib/base/status.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The sources of each row or column of the result: the first one, how many there are, and their weights, which add up
 * to 1. */
typedef struct {
    uint32_t *first, *count;
    float *weights; /* `most` for each */
    uint32_t most;
} taps;

typedef float four __attribute__((vector_size(16)));

static double triangle(double x)
{
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

/* Keys, "Cubic convolution interpolation for digital image processing", 1981, equation 4, with a = -1/2. */
static double cubic(double x)
{
    x = fabs(x);
    if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
    return x < 2 ? ((-.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

static void free_taps(taps *t)
{
    free(t->first);
    free(t->count);
    free(t->weights);
}

static void weigh(taps *t, uint32_t i, double scale, double stretch, double reach, uint32_t size, bool smooth)
{
    double centre = (i + .5) * scale, sum = 0;
    double low = floor(centre - reach + .5), high = floor(centre + reach + .5);
    uint32_t first = low > 0 ? (uint32_t)low : 0, end = high < size ? (uint32_t)high : size;
    float *weights = t->weights + (size_t)i * t->most;
    for (uint32_t k = first; k < end; k++) {
        double x = (k + .5 - centre) / stretch, weight = smooth ? cubic(x) : triangle(x);
        weights[k - first] = (float)weight;
        sum += weight;
    }
    for (uint32_t k = first; k < end; k++) weights[k - first] = (float)(weights[k - first] / sum);
    t->first[i] = first;
    t->count[i] = end - first;
}

static sluice_status make_taps(uint32_t size, uint32_t side, slc_image_filter filter, taps *t)
{
    double scale = (double)size / side, stretch = scale > 1 ? scale : 1;
    double reach = (filter == SLC_FILTER_BICUBIC ? 2 : 1) * stretch;
    t->most = filter == SLC_FILTER_NEAREST ? 1 : 2 * (uint32_t)ceil(reach) + 1;
    t->first = malloc(side * sizeof *t->first);
    t->count = malloc(side * sizeof *t->count);
    t->weights = malloc((size_t)side * t->most * sizeof *t->weights);
    if (!t->first || !t->count || !t->weights) return slc_error(SLUICE_ERR_MEMORY, "resizing an image");
    for (uint32_t i = 0; i < side; i++)
        if (filter == SLC_FILTER_NEAREST) {
            t->first[i] = (uint32_t)((i + .5) * scale);
            t->count[i] = 1;
            t->weights[i] = 1;
        } else {
            weigh(t, i, scale, stretch, reach, size, filter == SLC_FILTER_BICUBIC);
        }
    return SLUICE_OK;
}

/* Sums up row i of the result, still with all columns of the source: `out` gets as many numbers as a row of the source
 * has samples. Columns are summed a block at a time, in registers. */
static void sum_down(const slc_raster *raster, const taps *down, uint32_t i, float *out)
{
    enum { BLOCK = 32 };
    const size_t length = (size_t)raster->width * raster->channels;
    const uint8_t *from = raster->samples + down->first[i] * length;
    const float *weights = down->weights + (size_t)i * down->most;
    size_t at = 0;
    for (; at + BLOCK <= length; at += BLOCK) {
        float sums[BLOCK] = {0};
        for (uint32_t k = 0; k < down->count[i]; k++)
            for (int b = 0; b < BLOCK; b++) sums[b] += weights[k] * from[k * length + at + (size_t)b];
        memcpy(out + at, sums, sizeof sums);
    }
    for (; at < length; at++) {
        float sum = 0;
        for (uint32_t k = 0; k < down->count[i]; k++) sum += weights[k] * from[k * length + at];
        out[at] = sum;
    }
}

static void take_luma(float *row, uint32_t width)
{
    for (uint32_t x = 0; x < width; x++) row[x] = .299f * row[3 * x] + .587f * row[3 * x + 1] + .114f * row[3 * x + 2];
}

/* One row of each channel's plane, from one of interleaved channels. Three channels and the number behind them are
 * added at once, as one vector; behind the row's end is one number that counts for nothing. */
static void sum_across(const float *row, uint32_t channels, const taps *across, uint32_t side, size_t plane, float *out)
{
    for (uint32_t j = 0; j < side; j++) {
        const float *weights = across->weights + (size_t)j * across->most;
        const float *from = row + (size_t)across->first[j] * channels;
        four sums = {0};
        for (uint32_t k = 0; channels == 3 && k < across->count[j]; k++) {
            four numbers;
            memcpy(&numbers, from + 3 * k, sizeof numbers);
            sums += weights[k] * numbers;
        }
        for (uint32_t k = 0; channels == 1 && k < across->count[j]; k++) sums[0] += weights[k] * from[k];
        for (uint32_t c = 0; c < channels; c++) out[c * plane + j] = sums[c];
    }
}

/* Makes pixels of samples, in place; a cubic filter may have left the range. */
static void normalise(const slc_image_shape *shape, uint32_t channel, float white, const float *samples, float *out)
{
    float mean = shape->mean[channel], deviation = shape->deviation[channel];
    for (size_t i = 0; i < (size_t)shape->side * shape->side; i++) {
        float value = samples[i] / white;
        out[i] = ((value < 0 ? 0 : value > 1 ? 1 : value) - mean) / deviation;
    }
}

static void convert(const slc_raster *raster, const slc_image_shape *shape, const taps *down, const taps *across,
                    float *row, float *out)
{
    const size_t plane = (size_t)shape->side * shape->side;
    const bool luma = raster->channels == 3 && shape->channels == 1;
    const uint32_t planes = luma ? 1 : raster->channels;
    for (uint32_t i = 0; i < shape->side; i++) {
        sum_down(raster, down, i, row);
        if (luma) take_luma(row, raster->width);
        sum_across(row, planes, across, shape->side, plane, out + (size_t)i * shape->side);
    }
    for (uint32_t c = shape->channels; c-- > 0;) /* from the last: the first is the source of grey images */
        normalise(shape, c, (float)raster->white, out + (c < planes ? c : 0) * plane, out + c * plane);
}

sluice_status slc_raster_pixels(const slc_raster *raster, const slc_image_shape *shape, float *out)
{
    taps down = {0}, across = {0};
    float *row = calloc((size_t)raster->width * raster->channels + 1, sizeof *row);
    sluice_status status = row ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "resizing an image");
    if (!status) status = make_taps(raster->height, shape->side, shape->filter, &down);
    if (!status) status = make_taps(raster->width, shape->side, shape->filter, &across);
    if (!status) convert(raster, shape, &down, &across, row, out);
    free_taps(&down);
    free_taps(&across);
    free(row);
    return status;
}
