/* Any bytes must be decoded as PNG or as JPEG, or be refused with a line. The first byte chooses. */
#include "lib/data/images/picture.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t png[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    if (size < 2) return 0;
    bool is_png = data[0] & 1;
    size_t head = is_png && data[0] & 2 ? sizeof png - 1 : 0, count = size - 1 + head;
    uint8_t *bytes = malloc(count), *samples; /* exactly as long, so that a read beyond the end is found */
    if (!bytes) return 0;
    memcpy(bytes, png, head);
    memcpy(bytes + head, data + 1, size - 1);
    slc_raster raster = {0};
    sluice_status status = is_png ? slc_png_decode("fuzz", bytes, count, &raster, &samples)
                                  : slc_jpeg_decode("fuzz", bytes, count, data[0] >> 2, &raster, &samples);
    if (!status) {
        if (!raster.width || !raster.height || (raster.channels != 1 && raster.channels != 3)) abort();
        volatile uint8_t last = samples[(size_t)raster.width * raster.height * raster.channels - 1];
        (void)last;
        free(samples);
    } else if (!*sluice_last_error()) {
        abort();
    }
    free(bytes);
    return 0;
}
