/* One image as rows of samples, and as a model's channels. Private to lib/data. Any thread. */
#ifndef SLC_DATA_RASTER_H
#define SLC_DATA_RASTER_H

#include "lib/base/file.h"
#include "lib/data/images.h"

typedef struct {
    uint32_t height, width, channels; /* 1 or 3, interleaved; sides at most 65535 */
    uint32_t white;                   /* 1 to 255 */
    const uint8_t *samples;
} slc_raster;

/* The header of binary PGM or PPM in the first bytes of a file; *begin: of the samples. `path` is for messages. Errors:
 * FORMAT. The samples are not looked at. */
sluice_status slc_pnm_header(const char *path, const uint8_t *bytes, size_t count, slc_raster *out, size_t *begin);

/* A file's header and size, and its samples too if `samples` is not NULL: the caller frees those. */
sluice_status slc_pnm_read(const char *path, slc_raster *out, uint8_t **samples);

/* out: channels x side x side. */
void slc_raster_pixels(const slc_raster *raster, const slc_image_shape *shape, float *out);

#endif
