/* Resizing by a separable filter whose support grows with the image where it is made smaller, so that nothing is
 * skipped: as Pillow's Image.resize does (https://pillow.readthedocs.io, "Filters"), without rounding in between.
 * picture_test.c covers this file. */
#include "lib/data/images/raster.h"

#include "lib/base/status.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* For each row or column of the result: the first source, how many there are, and their weights, which add up to 1. */
typedef struct {
    uint32_t *first, *count;
    float *weights; /* `most` for each */
    uint32_t most;
} taps;

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

/* One row of a channel as numbers; where the model has one channel and the image three, their luma. */
static void take_row(const slc_raster *raster, uint32_t y, uint32_t channel, bool luma, float *out)
{
    const uint8_t *at = raster->samples + (size_t)y * raster->width * raster->channels;
    for (uint32_t x = 0; x < raster->width; x++, at += raster->channels)
        out[x] = luma ? .299f * at[0] + .587f * at[1] + .114f * at[2] : at[channel];
}

static float weighted(const taps *t, uint32_t i, const float *from, size_t distance)
{
    const float *weights = t->weights + (size_t)i * t->most;
    float sum = 0;
    from += t->first[i] * distance;
    for (uint32_t k = 0; k < t->count[i]; k++) sum += weights[k] * from[k * distance];
    return sum;
}

static void resize(const slc_raster *raster, uint32_t channel, bool luma, const taps *down, const taps *across,
                   uint32_t side, float *row, float *rows, float *out)
{
    for (uint32_t y = 0; y < raster->height; y++) {
        take_row(raster, y, channel, luma, row);
        for (uint32_t j = 0; j < side; j++) rows[(size_t)y * side + j] = weighted(across, j, row, 1);
    }
    for (uint32_t i = 0; i < side; i++)
        for (uint32_t j = 0; j < side; j++) out[(size_t)i * side + j] = weighted(down, i, rows + j, side);
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
                    float *row, float *rows, float *out)
{
    size_t plane = (size_t)shape->side * shape->side;
    bool luma = raster->channels == 3 && shape->channels == 1;
    uint32_t planes = raster->channels == 1 ? 1 : shape->channels;
    for (uint32_t c = 0; c < planes; c++)
        resize(raster, c, luma, down, across, shape->side, row, rows, out + c * plane);
    for (uint32_t c = shape->channels; c-- > 0;) /* from the last: the first is the source of grey images */
        normalise(shape, c, (float)raster->white, out + (c < planes ? c : 0) * plane, out + c * plane);
}

sluice_status slc_raster_pixels(const slc_raster *raster, const slc_image_shape *shape, float *out)
{
    taps down = {0}, across = {0};
    float *row = malloc(raster->width * sizeof *row);
    float *rows = malloc((size_t)raster->height * shape->side * sizeof *rows);
    sluice_status status = row && rows ? SLUICE_OK : slc_error(SLUICE_ERR_MEMORY, "resizing an image");
    if (!status) status = make_taps(raster->height, shape->side, shape->filter, &down);
    if (!status) status = make_taps(raster->width, shape->side, shape->filter, &across);
    if (!status) convert(raster, shape, &down, &across, row, rows, out);
    free_taps(&down);
    free_taps(&across);
    free(row);
    free(rows);
    return status;
}
