/* Any bytes must be read as a table of images, as PGM or PPM, or be refused with a line; all that is read must lie
 * inside them. The first byte chooses the format: IDX with its labels (the second byte: where these begin), CSV or
 * Netpbm. */
#include "lib/data/images/images.h"
#include "lib/data/images/images_parts.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t *copy(const uint8_t *data, size_t size)
{
    uint8_t *bytes = malloc(size + !size); /* exactly as long as the data, so that a read beyond its end is found */
    if (bytes && size) memcpy(bytes, data, size);
    return bytes;
}

static void read_all(slc_images *images)
{
    const slc_image_shape shape = {.channels = 3, .side = 3, .mean = {.5f, .5f, .5f}, .deviation = {.5f, .5f, .5f}};
    for (uint64_t i = 0; i < images->count; i++) {
        float pixels[27];
        int32_t label;
        if (slc_images_read(images, &shape, i, pixels, &label)) abort();
        if (label < 0 || (uint32_t)label >= images->classes) abort();
    }
}

static void check_table(uint8_t kind, const uint8_t *bytes, size_t size, size_t split)
{
    slc_images *images = calloc(1, sizeof *images);
    uint8_t *first = copy(bytes, split), *second = copy(bytes + split, size - split);
    sluice_status status = SLUICE_ERR_MEMORY;
    if (images && first && second)
        status = kind ? slc_images_from_csv("fuzz", first, split, images)
                      : slc_images_from_idx("fuzz", first, split, "labels", second, size - split, images);
    if (!status) read_all(images);
    if (status && !*sluice_last_error()) abort();
    free(first);
    free(second);
    slc_images_close(images);
}

static void check_raster(const uint8_t *bytes, size_t size)
{
    slc_raster raster;
    size_t begin;
    uint8_t *own = copy(bytes, size);
    if (own && !slc_pnm_header("fuzz", own, size, &raster, &begin))
        if (begin > size || !raster.width || !raster.height || !raster.white || raster.white > 255) abort();
    free(own);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3) return 0;
    uint8_t kind = data[0] % 3, split = data[1];
    data += 2, size -= 2;
    if (kind == 2)
        check_raster(data, size);
    else
        check_table(kind, data, size, kind || split > size ? size : split);
    return 0;
}
