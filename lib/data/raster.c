/* Reads Netpbm's binary formats, and resizes as PyTorch does. */
#include "lib/data/raster.h"

#include "lib/base/status.h"

#include <ctype.h>
#include <stdlib.h>

enum { HEADER_BYTES = 512, SIDE_MAX = 65535 };

/* ---- PGM and PPM ---- */

/* Reads a number after white space and comments; returns false if there is none from 1 to `most`. */
static bool read_number(const uint8_t *bytes, size_t count, size_t *at, uint32_t most, uint32_t *out)
{
    uint32_t number = 0;
    size_t before = *at;
    while (*at < count && (isspace(bytes[*at]) || bytes[*at] == '#')) {
        if (bytes[*at] == '#')
            while (*at < count && bytes[*at] != '\n') ++*at;
        else
            ++*at;
    }
    size_t digits = *at;
    if (digits == before) return false;
    for (; *at < count && isdigit(bytes[*at]); ++*at) {
        number = number * 10 + (bytes[*at] - '0');
        if (number > most) return false;
    }
    *out = number;
    return *at > digits && number > 0;
}

sluice_status slc_pnm_header(const char *path, const uint8_t *bytes, size_t count, slc_raster *out, size_t *begin)
{
    size_t at = 2;
    if (count < 3 || bytes[0] != 'P' || (bytes[1] != '5' && bytes[1] != '6'))
        return slc_error(SLUICE_ERR_FORMAT, "%s: is no binary PGM or PPM (P5, P6)", path);
    *out = (slc_raster){.channels = bytes[1] == '5' ? 1 : 3};
    if (!read_number(bytes, count, &at, SIDE_MAX, &out->width) ||
        !read_number(bytes, count, &at, SIDE_MAX, &out->height) || !read_number(bytes, count, &at, 255, &out->white) ||
        at == count || !isspace(bytes[at]))
        return slc_error(SLUICE_ERR_FORMAT,
                         "%s: its header has no width and height up to %d and largest sample up to 255", path,
                         SIDE_MAX);
    *begin = at + 1;
    return SLUICE_OK;
}

sluice_status slc_pnm_read(const char *path, slc_raster *out, uint8_t **samples)
{
    uint8_t head[HEADER_BYTES];
    slc_file file;
    size_t begin = 0, bytes = 0;
    sluice_status status = slc_file_open(path, &file);
    if (status) return status;
    size_t count = file.bytes < sizeof head ? (size_t)file.bytes : sizeof head;
    status = slc_file_read(&file, 0, count, head);
    if (!status) status = slc_pnm_header(path, head, count, out, &begin);
    if (!status) bytes = (size_t)out->height * out->width * out->channels;
    if (!status && file.bytes != begin + bytes)
        status = slc_error(SLUICE_ERR_FORMAT, "%s: has %llu bytes; %u x %u samples of %u channels need %zu", path,
                           (unsigned long long)file.bytes, out->width, out->height, out->channels, begin + bytes);
    if (!status && samples) {
        *samples = malloc(bytes);
        status = *samples ? slc_file_read(&file, begin, bytes, *samples)
                          : slc_error(SLUICE_ERR_MEMORY, "%s: %zu bytes", path, bytes);
        out->samples = *samples;
        if (status) free(*samples);
    }
    slc_file_close(&file);
    return status;
}

/* ---- Pixels ---- */

/* The sources of an output row or column: two places, and the weight of the second. */
typedef struct {
    uint32_t low, high;
    float weight;
} source;

static source source_of(uint32_t i, uint32_t side, uint32_t size, bool nearest)
{
    double at = (i + .5) * size / side;
    if (nearest) return (source){(uint32_t)at, (uint32_t)at, 0};
    at = at < .5 ? 0 : at - .5;
    uint32_t low = (uint32_t)at;
    return (source){low, low + 1 < size ? low + 1 : low, (float)(at - low)};
}

static float sample(const slc_raster *raster, uint32_t y, uint32_t x, uint32_t channel, uint32_t channels)
{
    const uint8_t *at = raster->samples + ((size_t)y * raster->width + x) * raster->channels;
    if (raster->channels == 1) return at[0];
    if (channels == 1) return .299f * at[0] + .587f * at[1] + .114f * at[2];
    return at[channel];
}

void slc_raster_pixels(const slc_raster *raster, const slc_image_shape *shape, float *out)
{
    float scale = 1 / (raster->white * shape->deviation), shift = shape->mean / shape->deviation;
    for (uint32_t c = 0; c < shape->channels; c++)
        for (uint32_t i = 0; i < shape->side; i++) {
            source y = source_of(i, shape->side, raster->height, shape->nearest);
            for (uint32_t j = 0; j < shape->side; j++) {
                source x = source_of(j, shape->side, raster->width, shape->nearest);
                float top = (1 - x.weight) * sample(raster, y.low, x.low, c, shape->channels) +
                            x.weight * sample(raster, y.low, x.high, c, shape->channels);
                float bottom = (1 - x.weight) * sample(raster, y.high, x.low, c, shape->channels) +
                               x.weight * sample(raster, y.high, x.high, c, shape->channels);
                *out++ = ((1 - y.weight) * top + y.weight * bottom) * scale - shift;
            }
        }
}
