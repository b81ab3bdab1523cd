/* One image as rows of samples, and its conversion to a model's channels. Private to lib/data/images. Any thread. */
#pragma once

#include "lib/base/file/file.h"
#include "lib/data/images/image_shape.h"

typedef struct {
    uint32_t height, width, channels; /* channels: 1 or 3, interleaved; height and width are at most 65535 */
    uint32_t white;                   /* the sample of white, 1 to 255 */
    const uint8_t *samples;
} slc_raster;

/* Reads the header of a binary PGM or PPM file from its first bytes; *begin is the offset of the samples, which are not
 * looked at. `path` is for messages. Errors: FORMAT. */
sluice_status slc_pnm_header(const char *path, const uint8_t *bytes, size_t count, slc_raster *out, size_t *begin);

/* Reads a file's header and checks its size; reads its samples too if `samples` is not NULL. The caller frees the
 * samples. */
sluice_status slc_pnm_read(const char *path, slc_raster *out, uint8_t **samples);

/* Resizes and converts. out: channels x side x side. Errors: MEMORY. */
sluice_status slc_raster_pixels(const slc_raster *raster, const slc_image_shape *shape, float *out);
