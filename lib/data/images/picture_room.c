/* The memory of a decoded image. picture_test.c covers this file. */
#include "lib/data/images/picture.h"

#include "lib/base/status.h"

#include <stdlib.h>

enum { SIDE_MAX = 65535, PIXELS_MAX = 1 << 28 };

sluice_status slc_picture_room(const char *path, const slc_raster *raster, uint8_t **samples)
{
    uint64_t pixels = (uint64_t)raster->width * raster->height;
    if (!pixels || raster->width > SIDE_MAX || raster->height > SIDE_MAX || pixels > PIXELS_MAX)
        return slc_error(SLUICE_ERR_FORMAT, "%s: is %u x %u pixels; images have 1 to %d a side, and at most %d in all",
                         path, raster->width, raster->height, SIDE_MAX, PIXELS_MAX);
    *samples = malloc(pixels * raster->channels);
    if (*samples) return SLUICE_OK;
    return slc_error(SLUICE_ERR_MEMORY, "%s: %u x %u pixels", path, raster->width, raster->height);
}
